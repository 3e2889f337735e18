package script

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"go.starlark.net/syntax"
)

// What a script may be before it runs.
const (
	maxSource = 1 << 20 // bytes of one file
	maxTree   = 5000    // nodes of the syntax tree within each other
)

// dialect is Starlark with what people who write agents know from Python.
var dialect = syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// parse reads a file, and refuses one whose tree is so deep that the compiler could not descend.
func parse(name string, src []byte) (*syntax.File, error) {
	if err := checkSource(name, src); err != nil {
		return nil, err
	}
	f, err := dialect.Parse(name, bytes.TrimPrefix(src, byteOrderMark), 0)
	if err != nil {
		return nil, err
	}
	var deep error
	depth := 0
	syntax.Walk(f, func(n syntax.Node) bool {
		if n == nil {
			depth--
			return false
		}
		if depth++; depth > maxTree && deep == nil {
			at, _ := n.Span()
			deep = &Error{Position: position(at), Message: fmt.Sprintf("more than %d expressions within each other", maxTree)}
		}
		if loop, ok := n.(*syntax.WhileStmt); ok {
			loop.Cond = withPlace(loop.Cond)
		}
		return deep == nil
	})
	return f, deep
}

var (
	byteOrderMark = []byte("\uFEFF") // which editors on Windows put before a text
	wasmMagic     = []byte("\x00asm")
)

// checkSource refuses what is too long, and what is no text: the parser takes a NUL for the end. It bounds by itself how deep it
// descends.
func checkSource(name string, src []byte) error {
	at := Position{File: name}
	var refuse string
	switch nul := bytes.IndexByte(src, 0); {
	case bytes.HasPrefix(src, wasmMagic):
		refuse = "this is WebAssembly: a module is called FILE.wasm"
	case len(src) > maxSource:
		refuse = fmt.Sprintf("a script has at most %d bytes, this one has more", maxSource)
	case nul >= 0:
		before := src[:nul]
		at.Line = 1 + bytes.Count(before, []byte("\n"))
		at.Col = 1 + utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):])
		refuse = "a NUL: a script is text"
	default:
		return nil
	}
	return &Error{Position: at, Message: refuse}
}

// withPlace is a condition that has a place when it runs: that of `while 1:` would be the line above it.
func withPlace(cond syntax.Expr) syntax.Expr {
	if lit, ok := unparen(cond).(*syntax.Literal); ok && lit.Value == int64(1) {
		return &syntax.Ident{NamePos: lit.TokenPos, Name: "True"}
	}
	return cond
}

func unparen(x syntax.Expr) syntax.Expr {
	for {
		p, ok := x.(*syntax.ParenExpr)
		if !ok {
			return x
		}
		x = p.X
	}
}

func position(p syntax.Position) Position {
	return Position{File: p.Filename(), Line: int(p.Line), Col: int(p.Col)}
}
