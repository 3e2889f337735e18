package script

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"

	"go.starlark.net/syntax"
)

// What a script may be before it runs.
const (
	maxSource = 1 << 20 // bytes of one file
	maxTree   = 5000    // nodes of the syntax tree within each other
)

// hidden marks names that no script can spell: operators and methods that look at what they are about to allocate.
const hidden = "$"

// dialect is Starlark with what people who write agents know from Python.
var dialect = syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// parse reads a file and puts the checked operators in place.
func parse(name string, src []byte) (*syntax.File, error) {
	f, err := parseForNames(name, src)
	if err != nil {
		return nil, err
	}
	w := &rewriter{}
	f.Stmts = w.block(f.Stmts)
	if w.err != nil {
		return nil, w.err
	}
	return f, nil
}

// parseForNames reads a file as it stands, such as one of which only the names matter.
func parseForNames(name string, src []byte) (*syntax.File, error) {
	if err := checkSource(name, src); err != nil {
		return nil, err
	}
	return dialect.Parse(name, bytes.TrimPrefix(src, byteOrderMark), 0)
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

// rewriter puts calls of hidden functions in place of operators, methods and slices that may allocate much, and keeps every
// position, so that errors read as if it had not been there.
type rewriter struct {
	depth int
	temps int
	err   error
}

func (w *rewriter) down(n syntax.Node) (up func(), ok bool) {
	if w.depth >= maxTree && w.err == nil {
		at, _ := n.Span()
		w.err = &Error{Position: position(at), Message: fmt.Sprintf("more than %d expressions within each other", maxTree)}
	}
	if w.err != nil {
		return nil, false
	}
	w.depth++
	return func() { w.depth-- }, true
}

func (w *rewriter) block(list []syntax.Stmt) []syntax.Stmt {
	if len(list) == 0 {
		return list // an else that is not there is nil
	}
	out := make([]syntax.Stmt, 0, len(list))
	for _, s := range list {
		up, ok := w.down(s)
		if !ok {
			return out
		}
		out = append(out, w.stmt(s)...)
		up()
	}
	return out
}

func (w *rewriter) stmt(s syntax.Stmt) []syntax.Stmt {
	if a, ok := s.(*syntax.AssignStmt); ok {
		return w.assign(a)
	}
	if loop, ok := s.(*syntax.WhileStmt); ok {
		loop.Cond = withPlace(loop.Cond)
	}
	w.within(s)
	return []syntax.Stmt{s}
}

// within rewrites what stands in a node: expressions, blocks, the clauses of a comprehension.
func (w *rewriter) within(n syntax.Node) {
	fields := reflect.ValueOf(n).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).CanInterface() {
			continue
		}
		switch f := fields.Field(i).Addr().Interface().(type) {
		case *syntax.Expr:
			*f = w.expr(*f)
		case *[]syntax.Expr:
			for i := range *f {
				(*f)[i] = w.expr((*f)[i])
			}
		case *[]syntax.Stmt:
			*f = w.block(*f)
		case *[]syntax.Node:
			for _, clause := range *f {
				w.within(clause)
			}
		}
	}
}

// withPlace is a condition that has a place when it runs: that of `while 1:` would be the line above it.
func withPlace(cond syntax.Expr) syntax.Expr {
	if lit, ok := unparen(cond).(*syntax.Literal); ok && lit.Value == int64(1) {
		return &syntax.Ident{NamePos: lit.TokenPos, Name: "True"}
	}
	return cond
}

// operators are those that are checked.
var operators = map[syntax.Token]string{
	syntax.PLUS: "+", syntax.STAR: "*", syntax.PERCENT: "%", syntax.PIPE: "|", syntax.AMP: "&", syntax.CIRCUMFLEX: "^",
}

// assign turns `x op= y` into `x op= asked(x, y)`, which is y, and `a[i] op= y` into `t = a; u = i; t[u] op= asked(t[u], y)`.
func (w *rewriter) assign(s *syntax.AssignStmt) []syntax.Stmt {
	op, checked := operators[s.Op-syntax.PLUS_EQ+syntax.PLUS]
	if !checked || s.Op < syntax.PLUS_EQ {
		w.within(s)
		return []syntax.Stmt{s}
	}
	s.RHS = w.expr(s.RHS)
	switch lhs := unparen(s.LHS).(type) {
	case *syntax.Ident:
		s.RHS = call(op+"=", s.OpPos, &syntax.Ident{NamePos: lhs.NamePos, Name: lhs.Name}, s.RHS)
	case *syntax.IndexExpr:
		of, at := w.temp(s.OpPos), w.temp(s.OpPos)
		element := func() syntax.Expr { return &syntax.IndexExpr{X: of(), Lbrack: lhs.Lbrack, Y: at(), Rbrack: lhs.Rbrack} }
		keep := []syntax.Stmt{
			&syntax.AssignStmt{OpPos: s.OpPos, Op: syntax.EQ, LHS: of(), RHS: w.expr(lhs.X)},
			&syntax.AssignStmt{OpPos: s.OpPos, Op: syntax.EQ, LHS: at(), RHS: key(w.expr(lhs.Y), lhs.Lbrack)},
		}
		s.LHS, s.RHS = element(), call(op+"=", s.OpPos, element(), s.RHS)
		return append(keep, s)
	default:
		s.LHS = w.expr(lhs)
	}
	return []syntax.Stmt{s}
}

// temp is a variable that no script can spell; each call gives another node, as the resolver wants it.
func (w *rewriter) temp(at syntax.Position) func() syntax.Expr {
	w.temps++
	name := hidden + strconv.Itoa(w.temps)
	return func() syntax.Expr { return &syntax.Ident{NamePos: at, Name: name} }
}

// expr rewrites x and everything within; nil stays.
func (w *rewriter) expr(x syntax.Expr) syntax.Expr {
	if x == nil {
		return nil
	}
	up, ok := w.down(x)
	if !ok {
		return x
	}
	defer up()
	w.within(x)
	switch x := x.(type) {
	case *syntax.BinaryExpr:
		return w.binary(x)
	case *syntax.DotExpr:
		if _, checked := methods[x.Name.Name]; checked {
			return call("."+x.Name.Name, x.Dot, x.X)
		}
	case *syntax.SliceExpr:
		x.X = call("[:]", x.Lbrack, x.X)
	case *syntax.CallExpr:
		for _, arg := range x.Args { // *list is looked at before it is copied
			if arg, ok := arg.(*syntax.UnaryExpr); ok && (arg.Op == syntax.STAR || arg.Op == syntax.STARSTAR) {
				arg.X = call("[:]", arg.OpPos, arg.X)
			}
		}
	case *syntax.IndexExpr:
		x.Y = key(x.Y, x.Lbrack)
	case *syntax.DictEntry:
		x.Key = key(x.Key, x.Colon)
	case *syntax.Comprehension:
		if _, entry := x.Body.(*syntax.DictEntry); x.Curly && !entry {
			x.Body = key(x.Body, x.Lbrack)
		}
	}
	return x
}

// key is an expression whose value may be hashed, which descends as far as the value does.
func key(x syntax.Expr, at syntax.Position) syntax.Expr {
	if literal(x) {
		return x
	}
	return call("key", at, x)
}

func (w *rewriter) binary(x *syntax.BinaryExpr) syntax.Expr {
	if x.Op == syntax.IN || x.Op == syntax.NOT_IN {
		x.X = key(x.X, x.OpPos)
		return x
	}
	op, checked := operators[x.Op]
	if !checked || x.Op == syntax.PLUS && (number(x.X) || number(x.Y)) || literal(x.X) && literal(x.Y) && x.Op == syntax.PLUS {
		return x
	}
	return call(op, x.OpPos, x.X, x.Y)
}

func call(name string, at syntax.Position, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: hidden + name}, Lparen: at, Args: args, Rparen: at}
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

func literal(x syntax.Expr) bool {
	_, ok := unparen(x).(*syntax.Literal)
	return ok
}

// number says that x is a number as it stands: what is added to one stays small.
func number(x syntax.Expr) bool {
	l, ok := unparen(x).(*syntax.Literal)
	return ok && (l.Token == syntax.INT || l.Token == syntax.FLOAT)
}

func position(p syntax.Position) Position {
	return Position{File: p.Filename(), Line: int(p.Line), Col: int(p.Col)}
}
