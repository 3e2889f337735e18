package policy

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// maxFlow is how deep a file is nested, and maxIndent how far to the right a level begins: the YAML parser takes memory by the
// square of the depth.
const (
	maxFlow   = 32
	maxIndent = 256
)

// A place is a line and a column, from 1.
type place struct{ line, column int }

// A node is a value of a file and where it stands.
type node struct {
	place
	kind   canonjson.Kind
	text   string // of a text; of a number its JSON
	truth  bool
	items  []*node
	fields []keyed
}

type keyed struct {
	place
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
	start := place{1, 1}
	if len(b) > MaxFile {
		r.errorf(start, "more than %d bytes: split the file", MaxFile)
		return nil
	}
	if !utf8.Valid(b) {
		r.errorf(start, "expected UTF-8, got bytes that are none")
		return nil
	}
	tokens := lexer.Tokenize(strings.TrimPrefix(string(b), "\ufeff"))
	if !r.flat(tokens) {
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		r.yamlError(err)
		return nil
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return &node{place: start}
	}
	if len(file.Docs) > 1 && file.Docs[1].Body != nil {
		r.errorf(placeOf(file.Docs[1].Body), "expected one document, got a second one")
		return nil
	}
	before := len(r.errs)
	n := r.node(file.Docs[0].Body)
	if len(r.errs) > before {
		return nil
	}
	return n
}

// flat refuses what the parser must not see: nesting without end, and aliases, which are copies of copies.
func (r *fileReader) flat(tokens token.Tokens) bool {
	depth := 0
	for _, t := range tokens {
		at := place{t.Position.Line, t.Position.Column}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			r.errorf(at, "anchors (&a) and aliases (*a) are not read here: write it out, or put a text in quotes")
			return false
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			if depth == 0 && t.Position.Column > maxIndent {
				depth = maxFlow + 1
			}
		}
		if depth > maxFlow {
			r.errorf(at, "nested deeper than any rule is")
			return false
		}
	}
	return true
}

func (r *fileReader) yamlError(err error) {
	at, problem := place{1, 1}, err.Error()
	var ye yaml.Error
	if errors.As(err, &ye) {
		problem = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			at = place{t.Position.Line, t.Position.Column}
		}
	}
	r.errorf(at, "expected YAML: %s", shorten(problem))
}

func placeOf(n ast.Node) place {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return place{t.Position.Line, t.Position.Column}
	}
	return place{1, 1}
}

func (r *fileReader) node(n ast.Node) *node {
	out := &node{place: placeOf(n)}
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
			r.errorf(out.place, "expected a number that JSON has, got %s", n.Token.Value)
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
		r.errorf(out.place, "expected plain YAML, got a %s", strings.ToLower(n.Type().String()))
	}
	return out
}

func (r *fileReader) mapping(out *node, values []*ast.MappingValueNode) {
	out.kind = canonjson.Object
	for i, v := range values {
		f := keyed{place: placeOf(v.Key)}
		if i == 0 && (f.line < out.line || f.line == out.line && f.column < out.column) {
			out.place = f.place // a block has the place of its first colon
		}
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.errorf(f.place, "expected a key that is a text, got %s", shorten(v.Key.String()))
			continue
		}
		f.key = key.Value
		if out.field(f.key) != nil {
			r.errorf(f.place, "%s: stands here twice", shorten(f.key))
			continue
		}
		f.value = r.node(v.Value)
		out.fields = append(out.fields, f)
	}
}
