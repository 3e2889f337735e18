package canonjson

import (
	"strconv"
	"sync"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects may nest.
const MaxDepth = 1000

// Parse reads the one JSON value in src. The error is an *Error.
func Parse(src []byte) (Value, error) {
	p := parser{src: string(src), scratch: scratches.Get().(*scratch)}
	defer p.release()
	if i := invalidUTF8(p.src); i >= 0 {
		return Value{}, &Error{i, "not UTF-8"}
	}
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	if p.space(); p.at < len(p.src) {
		return Value{}, p.unexpected("the end after the value")
	}
	return v, nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

type parser struct {
	*scratch
	src string
	at  int
}

// A scratch is what a parse needs for its own while: the members and elements of the objects and arrays that are open, one
// above another, so that each is allocated once and no larger than it is, and the text of a string with escapes.
type scratch struct {
	members []Member
	elems   []Value
	text    []byte // see escaped
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// release gives the scratch back, but for one that a large text has made large.
func (p *parser) release() {
	const most, mostText = 1 << 10, 1 << 16
	s := p.scratch
	if p.scratch = nil; cap(s.members) > most || cap(s.elems) > most || cap(s.text) > mostText {
		return
	}
	s.closeMembers(0) // of what an error left open
	s.closeElems(0)
	scratches.Put(s)
}

// closeMembers returns the members from the offset on and takes them, and the strings of the text in them, off the scratch.
func (s *scratch) closeMembers(from int) []Member {
	open := s.members[from:]
	closed := append(make([]Member, 0, len(open)), open...)
	clear(open)
	s.members = s.members[:from]
	return closed
}

// closeElems does the same with elements.
func (s *scratch) closeElems(from int) []Value {
	open := s.elems[from:]
	closed := append(make([]Value, 0, len(open)), open...)
	clear(open)
	s.elems = s.elems[:from]
	return closed
}

func (p *parser) fail(reason string) error { return &Error{p.at, reason} }

func (p *parser) unexpected(want string) error {
	if p.at >= len(p.src) {
		return p.fail("ends where " + want + " should come")
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.at:])
	return p.fail(strconv.QuoteRune(r) + " where " + want + " should come")
}

func (p *parser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// accept takes c where it comes next after white space.
func (p *parser) accept(c byte) bool {
	p.space()
	if p.at < len(p.src) && p.src[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) value(depth int) (Value, error) {
	p.space()
	if p.at == len(p.src) {
		return Value{}, p.unexpected("a value")
	}
	switch c := p.src[p.at]; {
	case c == '{' || c == '[':
		if depth == MaxDepth {
			return Value{}, p.fail("nested deeper than " + strconv.Itoa(MaxDepth))
		}
		p.at++
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		s, err := p.str()
		return Value{Kind: String, Str: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	}
	return p.word()
}

func (p *parser) word() (Value, error) {
	for _, w := range []struct {
		text string
		v    Value
	}{{"null", Value{}}, {"true", Value{Kind: Bool, Bool: true}}, {"false", Value{Kind: Bool}}} {
		if len(p.src)-p.at >= len(w.text) && p.src[p.at:p.at+len(w.text)] == w.text {
			p.at += len(w.text)
			return w.v, nil
		}
	}
	return Value{}, p.unexpected("a value")
}

func (p *parser) array(depth int) (Value, error) {
	v := Value{Kind: Array}
	if p.accept(']') {
		return v, nil
	}
	from := len(p.elems)
	for {
		e, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.elems = append(p.elems, e)
		if p.accept(']') {
			v.Elems = p.closeElems(from)
			return v, nil
		}
		if !p.accept(',') {
			return Value{}, p.unexpected("',' or ']'")
		}
	}
}

func (p *parser) object(depth int) (Value, error) {
	v := Value{Kind: Object}
	if p.accept('}') {
		return v, nil
	}
	var seen keySet
	from := len(p.members)
	for {
		m, err := p.member(depth, &seen, p.members[from:])
		if err != nil {
			return Value{}, err
		}
		p.members = append(p.members, m)
		if p.accept('}') {
			v.Members = p.closeMembers(from)
			return v, nil
		}
		if !p.accept(',') {
			return Value{}, p.unexpected("',' or '}'")
		}
	}
}

func (p *parser) member(depth int, seen *keySet, before []Member) (m Member, err error) {
	if p.space(); p.at == len(p.src) || p.src[p.at] != '"' {
		return m, p.unexpected("a key")
	}
	start := p.at
	if m.Key, err = p.str(); err != nil {
		return m, err
	}
	if !seen.add(m.Key, before) {
		return m, &Error{start, "key " + strconv.Quote(m.Key) + " a second time in one object"}
	}
	if !p.accept(':') {
		return m, p.unexpected("':'")
	}
	m.Value, err = p.value(depth)
	return m, err
}

// A keySet finds a repeated key: by looking at the members of a small object, by a map for a large one, so that an
// object of n members never costs n² comparisons.
type keySet struct {
	m map[string]struct{}
}

const smallObject = 16

func (s *keySet) add(key string, before []Member) bool {
	if len(before) < smallObject {
		for i := range before {
			if before[i].Key == key {
				return false
			}
		}
		return true
	}
	if s.m == nil {
		s.m = make(map[string]struct{}, 2*smallObject)
		for i := range before {
			s.m[before[i].Key] = struct{}{}
		}
	}
	n := len(s.m)
	s.m[key] = struct{}{}
	return len(s.m) > n
}
