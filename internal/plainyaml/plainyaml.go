// Package plainyaml reads YAML that others wrote, and JSON with it, into a tree whose values know their line and column, without what
// makes YAML dangerous or surprising to read: anchors and aliases, which are copies of copies, tags, keys that stand twice, and nesting
// without end.
//
// A file is one document of UTF-8. What its values are to be, its callers know.
package plainyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/internal/meant"
	"go.yaml.in/yaml/v3"
)

// maxNesting bounds how many lists and objects may stand within each other.
const maxNesting = 64

// A Place is a line and a column, from 1; the column in characters.
type Place struct{ Line, Column int }

// An Error is what is wrong, and where. The library knows no column of what is no YAML at all: it is 1 there.
type Error struct {
	Place
	Problem string // what was expected and what came
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Problem) }

// ErrAnchor is the Problem of an anchor or an alias.
const ErrAnchor = "anchors (&a) and aliases (*a) are not read here: write it out, or put a text in quotes"

// Parse reads one document of at most so many bytes; nil is an empty one. The error is an *Error.
func Parse(b []byte, most int) (n *Node, err error) {
	defer func() { // the library is not to take the process with it, whatever it is given
		if r := recover(); r != nil {
			n, err = nil, &Error{Place{1, 1}, fmt.Sprintf("cannot be read as YAML: %v", r)}
		}
	}()
	switch {
	case len(b) > most:
		return nil, &Error{Place{1, 1}, fmt.Sprintf("more than %d bytes: split the file", most)}
	case !utf8.Valid(b):
		return nil, &Error{Place{1, 1}, "expected UTF-8, got bytes that are none"}
	}
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, placed(err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &Error{placeOf(second.Content[0]), "expected one document, got a second one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, placed(err)
	}
	return node(doc.Content[0], 0)
}

// Decode reads one document of at most so many bytes into v, which has yaml tags. A field that v does not have is an error, an empty
// text leaves v as it is.
func Decode(b []byte, most int, v any) error {
	if n, err := Parse(b, most); n == nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	err := dec.Decode(v)
	var wrong *yaml.TypeError
	if errors.As(err, &wrong) {
		return errors.New(wrongKind(unknownField.ReplaceAllString(wrong.Errors[0], "unknown key $1"), b) + near(wrong.Errors[0], v))
	}
	return err
}

// cannotUnmarshal is how the library says that a value is of another kind than a type of ours.
var cannotUnmarshal = lazyregexp.New("cannot unmarshal !!(\\w+)(?: `.*`)? into (.+)$")

// kinds are what a tag of YAML, and a type of Go, is called.
var kinds = map[string]string{
	"seq": "a list", "map": "an object", "str": "a text", "int": "a number", "float": "a number", "bool": "true or false",
	"string": "a text", "float64": "a number", "*float64": "a number", "*bool": "true or false",
}

// wrongKind says in plain words which kind of value was wanted, where an error of the library is about that, and ends with the line of b.
func wrongKind(message string, b []byte) string {
	m := cannotUnmarshal.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	want := kinds[m[2]]
	switch {
	case want != "":
	case strings.HasPrefix(m[2], "[]"):
		want = "a list"
	default:
		want = "an object"
	}
	lines := bytes.Split(b, []byte("\n"))
	line := bytes.TrimSpace(lines[min(placed(errors.New(message)).Line, len(lines))-1])
	return fmt.Sprintf("%swant %s, not %s: %.60q", strings.TrimSuffix(message, m[0]), want, cmp.Or(kinds[m[1]], m[1]), line)
}

// near says which of all keys that v has was meant by the one that an error of the library names; "" for none.
func near(message string, v any) string {
	m := unknownField.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	if key := meant.By(m[1], keysOf(reflect.TypeOf(v), nil)); key != "" {
		return ": did you mean " + key + "?"
	}
	return ""
}

// keysOf appends the keys of a struct and of all below it.
func keysOf(t reflect.Type, keys []string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return keys
	}
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); key != "" && key != "-" {
			keys = keysOf(t.Field(i).Type, append(keys, key))
		}
	}
	return keys
}

// unknownField is how the library says that a struct of ours has no such field.
var unknownField = lazyregexp.New(`field (\S+) not found in type .*`)

var yamlLine = lazyregexp.New(`^(?:yaml: )?(?:line (\d+): )?`)

// placed takes the line out of an error of the library.
func placed(err error) *Error {
	m := yamlLine.FindStringSubmatch(err.Error())
	line, _ := strconv.Atoi(m[1])
	problem := err.Error()[len(m[0]):]
	if strings.HasPrefix(problem, "unknown anchor") {
		problem = ErrAnchor
	}
	return &Error{Place{max(line, 1), 1}, problem}
}

func placeOf(y *yaml.Node) Place { return Place{y.Line, y.Column} }

func node(y *yaml.Node, depth int) (n *Node, err error) {
	n = &Node{Place: placeOf(y)}
	switch {
	case depth > maxNesting:
		return nil, &Error{n.Place, "nested deeper than any such file is"}
	case y.Kind == yaml.AliasNode, y.Anchor != "", y.Tag == "!!merge":
		return nil, &Error{n.Place, ErrAnchor}
	case y.Style&yaml.TaggedStyle != 0:
		return nil, &Error{n.Place, fmt.Sprintf("expected plain YAML, got the tag %.40s", y.Tag)}
	case y.Kind == yaml.SequenceNode:
		n.Kind, err = List, n.list(y, depth)
	case y.Kind == yaml.MappingNode:
		n.Kind, err = Object, n.object(y, depth)
	default:
		n.Text = y.Value
		err = n.scalar(y)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Node) list(y *yaml.Node, depth int) error {
	for _, item := range y.Content {
		v, err := node(item, depth+1)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, v)
	}
	return nil
}

func (n *Node) object(y *yaml.Node, depth int) error {
	seen := make(map[string]bool, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		f := Field{Place: placeOf(key), Key: key.Value}
		switch _, err := node(key, depth+1); {
		case err != nil:
			return err
		case key.Tag != "!!str" && key.Tag != "!!int":
			return &Error{f.Place, "expected a key that is a text"}
		case seen[f.Key]:
			return &Error{f.Place, fmt.Sprintf("%.100s: stands here twice", f.Key)}
		}
		var err error
		if f.Value, err = node(y.Content[i+1], depth+1); err != nil {
			return err
		}
		n.Fields, seen[f.Key] = append(n.Fields, f), true
	}
	return nil
}

// scalar reads what is no list and no object: a text unless it stands without quotes and looks like something else.
func (n *Node) scalar(y *yaml.Node) error {
	switch y.Tag {
	case "!!null":
		n.Kind = Null
	case "!!bool":
		n.Kind, n.Truth = Bool, y.Value[0]|' ' == 't'
	case "!!int", "!!float":
		return n.numeral(y)
	default:
		n.Kind = Text
	}
	return nil
}

// jsonInt is a whole number as JSON writes it.
var jsonInt = lazyregexp.New(`^-?(0|[1-9][0-9]*)$`)

func (n *Node) numeral(y *yaml.Node) error {
	n.Kind = Float
	if err := y.Decode(&n.Number); err != nil {
		return &Error{n.Place, placed(err).Problem}
	}
	var whole int64
	switch {
	case jsonInt.MatchString(y.Value): // every digit of it, however many
		n.Kind, n.json = Int, y.Value
	case y.Tag == "!!int" && y.Decode(&whole) == nil:
		n.Kind, n.json = Int, strconv.FormatInt(whole, 10)
	default:
		n.json = strconv.FormatFloat(n.Number, 'g', -1, 64)
	}
	return nil
}

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
