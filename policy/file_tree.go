package policy

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// A node is a value of a file and where it stands.
type node struct {
	plainyaml.Place
	kind   canonjson.Kind
	text   string // of a text; of a number its JSON
	truth  bool
	items  []*node
	fields []keyed
}

type keyed struct {
	plainyaml.Place
	key   string
	value *node
}

func (n *node) field(key string) *node {
	for i := range n.fields {
		if n.fields[i].key == key {
			return n.fields[i].value
		}
	}
	return nil
}

// got says what n is, for messages.
func (n *node) got() string {
	switch n.kind {
	case canonjson.String:
		return "the text " + strconv.Quote(shorten(n.text))
	case canonjson.Number:
		return "the number " + shorten(n.text)
	case canonjson.Bool:
		return strconv.FormatBool(n.truth)
	case canonjson.Null:
		return "nothing"
	}
	return "an " + n.kind.String()
}

// json appends n as JSON.
func (n *node) json(dst []byte) []byte {
	switch n.kind {
	case canonjson.String:
		return canonjson.AppendString(dst, n.text)
	case canonjson.Number:
		return append(dst, n.text...)
	case canonjson.Bool:
		return strconv.AppendBool(dst, n.truth)
	case canonjson.Array:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.json(dst)
		}
		return append(dst, ']')
	case canonjson.Object:
		dst = append(dst, '{')
		for i, f := range n.fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = f.value.json(append(canonjson.AppendString(dst, f.key), ':'))
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// tree reads YAML, of which JSON is a part. It returns nil where it has added an error.
func (r *fileReader) tree(b []byte) *node {
	body, err := plainyaml.Parse(b, MaxFile)
	var wrong *plainyaml.Error
	switch {
	case errors.As(err, &wrong):
		r.errorf(wrong.Place, "%s", shorten(wrong.Problem))
		return nil
	case body == nil:
		return &node{Place: plainyaml.Place{Line: 1, Column: 1}}
	}
	before := len(r.errs)
	n := r.node(body)
	if len(r.errs) > before {
		return nil
	}
	return n
}

func (r *fileReader) node(n ast.Node) *node {
	out := &node{Place: plainyaml.PlaceOf(n)}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		out.kind, out.truth = canonjson.Bool, n.Value
	case *ast.StringNode:
		out.kind, out.text = canonjson.String, n.Value
	case *ast.LiteralNode:
		out.kind, out.text = canonjson.String, n.Value.Value
	case *ast.IntegerNode:
		out.kind = canonjson.Number
		switch v := n.Value.(type) {
		case int64:
			out.text = strconv.FormatInt(v, 10)
		case uint64:
			out.text = strconv.FormatUint(v, 10)
		}
	case *ast.FloatNode:
		out.kind, out.text = canonjson.Number, strconv.FormatFloat(n.Value, 'g', -1, 64)
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			r.errorf(out.Place, "expected a number that JSON has, got %s", n.Token.Value)
		}
	case *ast.SequenceNode:
		out.kind = canonjson.Array
		for _, v := range n.Values {
			out.items = append(out.items, r.node(v))
		}
	case *ast.MappingNode:
		r.mapping(out, n.Values)
	case *ast.MappingValueNode:
		r.mapping(out, []*ast.MappingValueNode{n})
	default:
		r.errorf(out.Place, "expected plain YAML, got a %s", strings.ToLower(n.Type().String()))
	}
	return out
}

func (r *fileReader) mapping(out *node, values []*ast.MappingValueNode) {
	out.kind = canonjson.Object
	for i, v := range values {
		f := keyed{Place: plainyaml.PlaceOf(v.Key)}
		if i == 0 && (f.Line < out.Line || f.Line == out.Line && f.Column < out.Column) {
			out.Place = f.Place // a block has the place of its first colon
		}
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.errorf(f.Place, "expected a key that is a text, got %s", shorten(v.Key.String()))
			continue
		}
		f.key = key.Value
		if out.field(f.key) != nil {
			r.errorf(f.Place, "%s: stands here twice", shorten(f.key))
			continue
		}
		f.value = r.node(v.Value)
		out.fields = append(out.fields, f)
	}
}
