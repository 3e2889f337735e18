package canonjson

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// MaxDepth is how deeply arrays and objects may nest.
const MaxDepth = 1000

// An Error says why a text is refused and where.
type Error struct {
	Offset int    // in bytes, from the start of the source
	Reason string // for people
}

func (e *Error) Error() string { return fmt.Sprintf("json, byte %d: %s", e.Offset, e.Reason) }

// Canonical returns the canonical form of the one JSON value in src. The error is an *Error.
func Canonical(src []byte) ([]byte, error) { return Append(make([]byte, 0, len(src)), src) }

// Append appends the canonical form of the one JSON value in src to dst. The error is an *Error; dst is then returned as
// it came.
func Append(dst, src []byte) ([]byte, error) {
	v, err := Parse(src)
	if err != nil {
		return dst, err
	}
	return v.Append(dst), nil
}

// Parse reads the one JSON value in src. The error is an *Error.
func Parse(src []byte) (Value, error) {
	err := jsonscan.ValidUTF8(src)
	if err == nil {
		p := parser{src: string(src)}
		p.s.Reset(src)
		v := p.value(0)
		if err = p.s.End(); err == nil {
			return v, nil
		}
	}
	var wrong *jsonscan.SyntaxError
	errors.As(err, &wrong)
	return Value{}, &Error{int(wrong.Offset), wrong.Err.Error()}
}

type parser struct {
	s   jsonscan.Scanner
	src string // the same, for strings to be parts of
	// Of the objects and arrays that are open, one above another, so that each is allocated once and no larger than it is.
	members []Member
	elems   []Value
}

func (p *parser) value(depth int) Value {
	switch c := p.s.Peek(); c {
	case '{', '[':
		if depth == MaxDepth {
			p.s.Fail("nested deeper than %d", MaxDepth)
			return Value{}
		}
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case '"':
		return Value{Kind: String, Str: p.text()}
	case 't', 'f':
		return Value{Kind: Bool, Bool: p.s.Bool()}
	case 'n':
		p.s.Null()
		return Value{}
	}
	return p.number()
}

func (p *parser) array(depth int) Value {
	from := len(p.elems)
	for p.s.Begin('['); p.s.More(']'); {
		e := p.value(depth)
		p.elems = append(p.elems, e)
	}
	all := slices.Clone(p.elems[from:])
	p.elems = p.elems[:from]
	return Value{Kind: Array, Elems: all}
}

func (p *parser) object(depth int) Value {
	from := len(p.members)
	var keys map[string]bool
	for p.s.Begin('{'); p.s.More('}'); {
		p.s.Peek()
		at := p.s.Mark()
		key := p.text()
		own := p.members[from:]
		if keys == nil && len(own) == smallObject { // more are not looked through one by one
			keys = make(map[string]bool, 2*smallObject)
			for i := range own {
				keys[own[i].Key] = true
			}
		}
		if keys[key] || keys == nil && slices.ContainsFunc(own, func(m Member) bool { return m.Key == key }) {
			p.s.Back(at)
			p.s.Fail("key %q a second time in one object", key)
		}
		if keys != nil {
			keys[key] = true
		}
		p.s.Colon()
		m := Member{key, p.value(depth)}
		p.members = append(p.members, m)
	}
	all := slices.Clone(p.members[from:])
	p.members = p.members[:from]
	return Value{Kind: Object, Members: all}
}

const smallObject = 16

// text reads a string. One without escapes is a part of the source.
func (p *parser) text() string {
	p.s.Peek()
	at, from := p.s.Mark(), p.s.Offset()
	b := p.s.TextBytes()
	raw := p.s.Since(from)
	if len(raw) == len(b)+2 {
		return p.src[from+1 : from+1+len(b)]
	}
	if p.s.Half() {
		p.s.Back(at)
		p.s.Fail("half of a surrogate pair")
	}
	return string(b)
}

func (p *parser) number() Value {
	at := p.s.Mark()
	text := string(p.s.Number())
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.s.Back(at)
		p.s.Fail("a number beyond the range of a double")
	}
	if Holds(f, text) {
		text = ""
	}
	return Value{Kind: Number, Num: f, Str: text}
}
