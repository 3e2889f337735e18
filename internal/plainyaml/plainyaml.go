// Package plainyaml parses YAML that others wrote, and JSON with it, into the tree of github.com/goccy/go-yaml, without what makes
// YAML dangerous to read: anchors and aliases, which are copies of copies, and nesting without end, for which that parser takes
// memory by the square. What is wrong has a line and a column.
//
// A file is one document of UTF-8. What its values are to be, its callers know.
package plainyaml

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a document.
const (
	maxFlow   = 32  // brackets and braces within each other
	maxColumn = 256 // of what begins a level by its indentation
)

// A Place is a line and a column, from 1; the column in characters.
type Place struct{ Line, Column int }

// An Error is what is wrong, and where.
type Error struct {
	Place
	Problem string // what was expected and what came
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Problem) }

// Parse reads one document of at most so many bytes; nil is an empty one. The error is an *Error.
func Parse(b []byte, most int) (ast.Node, error) {
	top := Place{1, 1}
	switch {
	case len(b) > most:
		return nil, &Error{top, fmt.Sprintf("more than %d bytes: split the file", most)}
	case !utf8.Valid(b):
		return nil, &Error{top, "expected UTF-8, got bytes that are none"}
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(b), "\ufeff"))
	if err := bounded(tokens); err != nil {
		return nil, err
	}
	f, err := parser.Parse(tokens, 0)
	switch {
	case err != nil:
		return nil, placed(err)
	case len(f.Docs) > 1 && f.Docs[1].Body != nil:
		return nil, &Error{PlaceOf(f.Docs[1].Body), "expected one document, got a second one"}
	case len(f.Docs) == 0:
		return nil, nil
	}
	return f.Docs[0].Body, nil
}

// PlaceOf is where a value stands.
func PlaceOf(n ast.Node) Place {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return Place{t.Position.Line, t.Position.Column}
	}
	return Place{1, 1}
}

// bounded refuses what the parser must not see.
func bounded(tokens token.Tokens) error {
	depth := 0
	for _, t := range tokens {
		at := Place{t.Position.Line, t.Position.Column}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return &Error{at, "anchors (&a) and aliases (*a) are not read here: write it out, or put a text in quotes"}
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if depth == 0 && t.Position.Column > maxColumn {
				depth = maxFlow + 1
			}
		}
		if depth > maxFlow {
			return &Error{at, "nested deeper than any such file is"}
		}
	}
	return nil
}

// placed takes the place out of an error of the parser.
func placed(err error) *Error {
	out := &Error{Place{1, 1}, err.Error()}
	var ye yaml.Error
	if errors.As(err, &ye) {
		out.Problem = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			out.Place = Place{t.Position.Line, t.Position.Column}
		}
	}
	return out
}
