package foreign

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A node is a value of a cassette, whether it stood there as YAML or as JSON.
type node struct {
	kind  nodeKind
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

// jsonNode reads a value of JSON.
func jsonNode(raw []byte) (*node, error) {
	if err := jsonscan.ValidUTF8(raw); err != nil {
		return nil, err
	}
	var s jsonscan.Scanner
	s.Reset(raw)
	n := scanNode(&s, 0)
	return n, s.End()
}

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

// A jsonFile reads one long JSON object, of which no more than one value is in memory.
type jsonFile struct{ s *jsonscan.Stream }

func newJSONFile(r io.Reader) jsonFile {
	f := jsonFile{jsonscan.NewStream(r, MaxItem)}
	f.s.SkipMark()
	return f
}

var (
	errCut     = errors.New("the file ends in the middle: it was cut")
	errTooLong = fmt.Errorf("a value has more than %d bytes, the limit", MaxItem)
)

// err is what keeps the rest from being read.
func (f jsonFile) err() error {
	err := f.s.Err()
	if _, long := errors.AsType[*jsonscan.LongLineError](err); long {
		return errTooLong
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// where is the place of err; "" for an error of the stream, which names it.
func (f jsonFile) where(err error) string {
	if failed := f.s.Err(); failed != nil && errors.Is(err, failed) {
		return ""
	}
	return fmt.Sprintf("byte %d", f.s.Offset()+1)
}

// value returns the next value as it stands, valid until the next read. It is as long as its brackets say; what is in it nobody
// has looked at.
func (f jsonFile) value() ([]byte, error) {
	b := f.s.Raw()
	return b, f.err()
}

// skip steps over the next value.
func (f jsonFile) skip() error {
	f.s.Skip()
	return f.err()
}

// maxMembers bounds the members of the objects around the items.
const maxMembers = 1000

// object reads an object, member by member: member is to read the value.
func (f jsonFile) object(member func(key string) error) error {
	seen := make(map[string]bool)
	for f.s.Begin('{'); f.s.More('}'); {
		key := string(f.s.Key())
		if err := f.err(); err != nil {
			return err
		}
		if seen[key] || len(seen) > maxMembers {
			return fmt.Errorf("the key %.40q stands twice, or there are more than %d", key, maxMembers)
		}
		seen[key] = true
		if err := member(key); err != nil {
			return err
		}
	}
	return f.err()
}

// list reads a list, value by value.
func (f jsonFile) list(item func(raw []byte) error) error {
	for f.s.Begin('['); f.s.More(']'); {
		raw, err := f.value()
		if err == nil {
			err = item(raw)
		}
		if err != nil {
			return err
		}
	}
	return f.err()
}

// end fails where something other than white space follows.
func (f jsonFile) end() error {
	if err := f.s.End(); err == nil {
		return nil
	}
	return f.err()
}
