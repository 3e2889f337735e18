package jsonscan

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// ErrUTF8 is wrapped by the error of bytes that are not UTF-8.
var ErrUTF8 = errors.New("not UTF-8")

// Valid says what keeps b from being one JSON value in UTF-8, nested at most MaxDepth deep. The error is a *SyntaxError. That a
// key stands twice is not asked here; see Duplicate.
func Valid(b []byte) error {
	if err := ValidUTF8(b); err != nil {
		return err
	}
	s := Scanner{b: b}
	s.Skip()
	return s.End()
}

// ValidUTF8 says at which byte b is no UTF-8. The error is a *SyntaxError that wraps ErrUTF8.
func ValidUTF8(b []byte) error {
	if utf8.Valid(b) {
		return nil
	}
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return &SyntaxError{int64(at), ErrUTF8}
}

// Duplicate looks for a key that stands twice in one object, at any depth, after its escapes are decoded. It returns the
// first such key and the offset in bytes of its second appearance. The bytes are Valid; of others it says what it saw until
// they end.
func Duplicate(b []byte) (key string, at int, found bool) {
	d := duplicates{s: Scanner{b: b}}
	d.value()
	for len(d.levels) > 0 && !d.found {
		d.step()
	}
	return d.key, d.at, d.found
}

type duplicates struct {
	s      Scanner
	levels []level
	keys   [][]byte // of all objects that are open, the innermost last
	key    string
	at     int
	found  bool
}

// A level is an object or a list that is open.
type level struct {
	end  byte
	from int             // where its keys begin
	many map[string]bool // its keys, where they are many
}

// fewKeys is how many keys are compared one by one.
const fewKeys = 16

// step goes to the next member of the innermost object or list, or out of it.
func (d *duplicates) step() {
	l := &d.levels[len(d.levels)-1]
	if !d.s.More(l.end) {
		d.keys = d.keys[:l.from]
		d.levels = d.levels[:len(d.levels)-1]
		return
	}
	if l.end == '}' {
		d.s.Peek()
		at := d.s.i
		if key := d.s.TextBytes(); d.add(l, key, d.s.i-at == len(key)+2) {
			d.key, d.at, d.found = string(key), at, true
			return
		}
		if d.s.Peek() != ':' {
			d.s.Fail("want ':'")
			return
		}
		d.s.i++
	}
	d.value()
}

// value steps over a plain value, or into an object or a list.
func (d *duplicates) value() {
	c := d.s.Peek()
	if c != '{' && c != '[' {
		d.s.Skip()
		return
	}
	if len(d.levels) == MaxDepth {
		d.s.Fail("%s", tooDeep)
		return
	}
	d.s.Begin(c)
	d.levels = append(d.levels, level{end: c + 2, from: len(d.keys)})
}

// add reports whether key stands in l already. A key that was not decoded stands in the input, which does not change.
func (d *duplicates) add(l *level, key []byte, stands bool) bool {
	own := d.keys[l.from:]
	if l.many == nil {
		for _, k := range own {
			if bytes.Equal(k, key) {
				return true
			}
		}
		if len(own) == fewKeys {
			l.many = make(map[string]bool, 2*fewKeys)
			for _, k := range own {
				l.many[string(k)] = true
			}
		}
	}
	if l.many != nil {
		seen := l.many[string(key)]
		l.many[string(key)] = true
		return seen
	}
	if !stands {
		key = bytes.Clone(key)
	}
	d.keys = append(d.keys, key)
	return false
}

// TextLen is the length, in bytes and with its quotes, of the string that b begins with; that of b where the string has no end.
func TextLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
