package bodies

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Bounds of a body that is compared by its structure. Beyond them it is compared as text.
const (
	maxStructured = 96 << 20 // bytes
	maxNodes      = 1 << 20  // values
)

// seed makes hashes of values that one process compares.
var seed = maphash.MakeSeed()

// A node is a value of a body. Nodes of equal hash mean the same JSON: neither white space nor the order of keys counts,
// nor how a number or a string is written, and of equal keys the last one holds.
type node struct {
	key      string // of a member
	kids     []node // members sorted by key, or elements
	hash     uint64
	from, to int // where it stands in the source
}

// parseTree reads one JSON value that is all of src. It is not ok where src is no JSON or too much of it; why then says
// the latter.
func parseTree(src string) (n node, why string, ok bool) {
	if len(src) > maxStructured {
		return node{}, "longer than 96 MiB, so compared as text", false
	}
	p := treeParser{}
	p.Reset([]byte(src))
	n = p.value()
	if p.End() == nil {
		return n, "", true
	}
	if p.count > maxNodes {
		why = "more than 1,000,000 values, so compared as text"
	}
	return node{}, why, false
}

// treeParser reads values.
type treeParser struct {
	jsonscan.Scanner
	count, depth int
}

func (p *treeParser) value() node {
	first := p.Peek()
	n := node{from: p.Offset()}
	if p.count++; p.count > maxNodes || p.depth > jsonscan.MaxDepth {
		p.Fail("too much")
		return n
	}
	p.depth++
	switch first {
	case '{':
		for p.Begin('{'); p.More('}'); {
			key := string(p.Key())
			kid := p.value()
			kid.key = key
			n.kids = append(n.kids, kid)
		}
		n.kids = lastOfEach(n.kids)
		n.hash = hashKids('{', n.kids)
	case '[':
		for p.Begin('['); p.More(']'); {
			n.kids = append(n.kids, p.value())
		}
		n.hash = hashKids('[', n.kids)
	case '"':
		n.hash = hashText('"', string(p.TextBytes()))
	default:
		n.hash = hashScalar(string(p.Raw()))
	}
	p.depth--
	n.to = p.Offset()
	return n
}

// lastOfEach sorts members by key and keeps the last of equal ones, as every reader of JSON does.
func lastOfEach(members []node) []node {
	slices.SortStableFunc(members, func(a, b node) int { return cmp.Compare(a.key, b.key) })
	out := members[:0]
	for i := range members {
		if i+1 == len(members) || members[i+1].key != members[i].key {
			out = append(out, members[i])
		}
	}
	return out
}

// unquote reads a JSON string with its quotes.
func unquote(quoted string) string {
	var s jsonscan.Scanner
	s.Reset([]byte(quoted))
	return s.Text()
}

func hashText(kind byte, s string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteByte(kind)
	h.WriteString(s)
	return h.Sum64()
}

// hashScalar is the hash of a number, true, false or null. 1 and 1.0 have one. Numbers that no double holds have that of
// their text, as in a digest (package canonjson).
func hashScalar(raw string) uint64 {
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') || !canonjson.Holds(f, raw) {
		return hashText('l', raw)
	}
	return maphash.Comparable(seed, math.Float64bits(f+0)) // -0 is 0
}

func hashKids(kind byte, kids []node) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteByte(kind)
	for i := range kids {
		maphash.WriteComparable(&h, kids[i].hash)
		if kind == '{' {
			maphash.WriteComparable(&h, kids[i].key)
		}
	}
	return h.Sum64()
}

// member returns the value of a key; nil where an object has none, or n is no object.
func (n *node) member(src, key string) *node {
	if src[n.from] != '{' {
		return nil
	}
	at, ok := slices.BinarySearchFunc(n.kids, key, func(k node, key string) int { return cmp.Compare(k.key, key) })
	if !ok {
		return nil
	}
	return &n.kids[at]
}

// text returns the string that stands under key; "" for none.
func (n *node) text(src, key string) string {
	if m := n.member(src, key); m != nil && src[m.from] == '"' {
		return unquote(src[m.from:m.to])
	}
	return ""
}
