package plainyaml

import (
	"fmt"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A Node is a value of a file and where it stands. A block has the place of its first key or dash.
type Node struct {
	Place
	Kind   Kind
	Text   string  // of a Text; of a number and a Bool as it is written
	Number float64 // of an Int and a Float, which may be NaN or infinite
	Truth  bool
	Items  []*Node
	Fields []Field

	json string // of a number
}

// A Field is a key of an object and its value.
type Field struct {
	Place
	Key   string
	Value *Node
}

// A Kind is what a value is.
type Kind uint8

// Kinds of values. An Int is written without a point, a Float is every other number.
const (
	Null Kind = iota
	Object
	List
	Text
	Int
	Float
	Bool
)

// IsNumber reports whether n is one.
func (n *Node) IsNumber() bool { return n.Kind == Int || n.Kind == Float }

// Field is the value under key, or nil; a nil Node has none.
func (n *Node) Field(key string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Key == key {
			return n.Fields[i].Value
		}
	}
	return nil
}

// Got says what n is, for messages; quote puts a text into quotation marks.
func (n *Node) Got(quote func(string) string) string {
	switch n.Kind {
	case Object:
		return "an object"
	case List:
		return "a list"
	case Text:
		return "the text " + quote(n.Text)
	case Int, Float:
		return fmt.Sprintf("the number %.40s", n.Text)
	case Bool:
		return strconv.FormatBool(n.Truth)
	}
	return "nothing"
}

// AppendJSON appends n as JSON, with every digit of a whole number. NaN and what is infinite are no JSON: who takes Floats looks first.
func (n *Node) AppendJSON(dst []byte) []byte {
	switch n.Kind {
	case Text:
		return canonjson.AppendString(dst, n.Text)
	case Int, Float:
		return append(dst, n.json...)
	case Bool:
		return strconv.AppendBool(dst, n.Truth)
	case List:
		dst = append(dst, '[')
		for i, item := range n.Items {
			dst = item.AppendJSON(comma(dst, i))
		}
		return append(dst, ']')
	case Object:
		dst = append(dst, '{')
		for i, f := range n.Fields {
			dst = f.Value.AppendJSON(append(canonjson.AppendString(comma(dst, i), f.Key), ':'))
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// comma appends one before each but the first.
func comma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}
