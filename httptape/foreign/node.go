package foreign

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A node is a value of a cassette, whether it stood there as YAML or as JSON.
type node struct {
	kind  nodeKind
	line  int    // of YAML
	text  []byte // of a scalar: its bytes, decoded
	items []*node
	keys  []string       // of a mapping, beside items
	index map[string]int // of a mapping with many keys: where each stands
}

type nodeKind uint8

const (
	nullNode nodeKind = iota
	scalarNode
	listNode
	mapNode
)

var nothing = new(node)

// at returns the value of a key; a null for none.
func (n *node) at(key string) *node {
	if n.index != nil {
		if i, ok := n.index[key]; ok {
			return n.items[i]
		}
		return nothing
	}
	for i, k := range n.keys {
		if k == key {
			return n.items[i]
		}
	}
	return nothing
}

func (n *node) has(key string) bool { return n.at(key) != nothing }

// where is the place of the node in its file, for people: its line, or which one it is of what is counted in unit.
func (n *node) where(unit string, i int) string {
	if n.line > 0 {
		return fmt.Sprintf("line %d", n.line)
	}
	return fmt.Sprintf("%s %d", unit, i)
}

func (n *node) string() string { return string(n.text) }

// int reads a whole number; ok is false for anything else.
func (n *node) int() (v int, ok bool) {
	if n.kind != scalarNode {
		return 0, false
	}
	v, err := strconv.Atoi(string(n.text))
	return v, err == nil
}

// add adds a member to a mapping. A key that stands twice is an error: which one counts is nobody's to guess.
func (n *node) add(key string, v *node) error {
	if n.has(key) {
		return fmt.Errorf("the key %.40q stands twice", key)
	}
	n.keys, n.items = append(n.keys, key), append(n.items, v)
	switch {
	case n.index != nil:
		n.index[key] = len(n.keys) - 1
	case len(n.keys) == manyKeys:
		n.index = make(map[string]int, 2*manyKeys)
		for i, k := range n.keys {
			n.index[k] = i
		}
	}
	return nil
}

// manyKeys is how many keys a mapping has at least that is not looked through from its beginning.
const manyKeys = 64

// parseJSON reads a text that is one value.
func parseJSON(text []byte) (*node, error) {
	err := jsonscan.ValidUTF8(text)
	var n *node
	if err == nil {
		var s jsonscan.Scanner
		s.Reset(text)
		n = scanNode(&s, 0)
		err = s.End()
	}
	var at *jsonscan.SyntaxError
	if errors.As(err, &at) {
		if err = at.Err; at.Offset >= int64(len(text)) {
			err = errCut
		}
		return nil, &ReadError{Where: fmt.Sprintf("byte %d", at.Offset+1), Err: err}
	}
	return n, err
}

var errCut = errors.New("the file ends in the middle: it was cut")

// maxNesting bounds the nesting of what is read into nodes: cassettes have five levels.
const maxNesting = 200

var errNested = fmt.Errorf("nested too deep: more than %d levels", maxNesting)

func scanNode(s *jsonscan.Scanner, depth int) *node {
	if depth > maxNesting {
		s.Fail("%v", errNested)
		return nothing
	}
	n := new(node)
	switch s.Peek() {
	case '{':
		n.kind = mapNode
		for s.Begin('{'); s.More('}'); {
			key := string(s.Key())
			if err := n.add(key, scanNode(s, depth+1)); err != nil {
				s.Fail("%v", err)
			}
		}
	case '[':
		n.kind = listNode
		for s.Begin('['); s.More(']'); {
			n.items = append(n.items, scanNode(s, depth+1))
		}
	case '"':
		n.kind, n.text = scalarNode, append([]byte{}, s.TextBytes()...)
	case 'n':
		s.Null()
	default:
		n.kind, n.text = scalarNode, s.Raw()
	}
	return n
}
