package check

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// Bounds of a scenario file.
const (
	maxScenario = 4 << 20 // bytes
	maxKeys     = 16      // of a list of names in a message
)

// A node is a value of a scenario file and where it stands.
type node struct {
	place
	is     nodeKind
	fields []field
	items  []*node
	text   string  // of a text, and of a number as it is written
	number float64 // of a number
	truth  bool
}

// A place is a line and a column of the file, from 1; the column in characters.
type place struct{ line, column int }

type field struct {
	place
	key   string
	value *node
}

type nodeKind uint8

const (
	isNull nodeKind = iota
	isObject
	isList
	isText
	isInt
	isFloat
	isBool
)

func (n *node) field(key string) *node {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].key == key {
			return n.fields[i].value
		}
	}
	return nil
}

// got says what n is, for messages.
func (n *node) got() string {
	switch n.is {
	case isObject:
		return "an object"
	case isList:
		return "a list"
	case isText:
		return "the text " + quote(n.text)
	case isInt, isFloat:
		return "the number " + n.text
	case isBool:
		return strconv.FormatBool(n.truth)
	}
	return "nothing"
}

// A reading is one scenario file while it is read.
type reading struct {
	file string
	errs []*SyntaxError
}

func (r *reading) errorf(at place, format string, args ...any) {
	r.errs = append(r.errs, &SyntaxError{File: r.file, Line: at.line, Column: at.column, Problem: fmt.Sprintf(format, args...)})
}

// tree reads YAML, of which JSON is a part. It returns nil where it has added an error.
func (r *reading) tree(b []byte) *node {
	body, err := plainyaml.Parse(b, maxScenario)
	var wrong *plainyaml.Error
	switch {
	case errors.As(err, &wrong):
		r.errorf(place{wrong.Line, wrong.Column}, "%s", wrong.Problem)
		return nil
	case body == nil:
		r.errorf(place{1, 1}, "expected a scenario, got an empty file; begin with: version: 1")
		return nil
	}
	return r.node(body)
}

func placeOf(n ast.Node) place {
	at := plainyaml.PlaceOf(n)
	return place{at.Line, at.Column}
}

func (r *reading) node(n ast.Node) *node {
	out := &node{place: placeOf(n)}
	switch n := n.(type) {
	case *ast.MappingNode:
		out.is = isObject
		r.fields(out, n.Values)
	case *ast.MappingValueNode:
		out.is = isObject
		r.fields(out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.is = isList
		for _, v := range n.Values {
			out.items = append(out.items, r.node(v))
		}
	case *ast.StringNode:
		out.is, out.text = isText, n.Value
	case *ast.LiteralNode:
		out.is, out.text = isText, n.Value.Value
	case *ast.BoolNode:
		out.is, out.truth = isBool, n.Value
	case *ast.IntegerNode:
		out.is, out.text = isInt, n.Token.Value
		switch v := n.Value.(type) {
		case int64:
			out.number = float64(v)
		case uint64:
			out.number = float64(v)
		}
	case *ast.FloatNode:
		out.is, out.text, out.number = isFloat, n.Token.Value, n.Value
		if n.Value == math.Trunc(n.Value) && math.Abs(n.Value) < 1<<53 {
			out.is = isInt // as JSON Schema has it: 1.0 is a whole number
		}
	case *ast.NullNode:
	default:
		r.errorf(out.place, "expected plain YAML, got a %s", strings.ToLower(n.Type().String()))
	}
	return out
}

func (r *reading) fields(out *node, values []*ast.MappingValueNode) {
	if len(values) > 0 && out.column > placeOf(values[0].Key).column {
		out.place = placeOf(values[0].Key) // a block has the place of its first colon else
	}
	for _, v := range values {
		f := field{place: placeOf(v.Key)}
		switch key := v.Key.(type) {
		case *ast.StringNode:
			f.key = key.Value
		case *ast.IntegerNode:
			f.key = key.Token.Value
		default:
			r.errorf(f.place, "expected a key that is a text, got %s", v.Key.String())
			continue
		}
		if out.field(f.key) != nil {
			r.errorf(f.place, "%s: stands here twice", f.key)
			continue
		}
		f.value = r.node(v.Value)
		out.fields = append(out.fields, f)
	}
}
