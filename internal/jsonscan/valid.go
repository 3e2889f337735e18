package jsonscan

import (
	"bytes"
	"errors"
	"slices"
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
	d.value(0)
	return d.key, d.at, d.found
}

type duplicates struct {
	s     Scanner
	keys  [][]byte // of all objects that are open, the innermost last
	key   string
	at    int
	found bool
}

// fewKeys is how many keys are compared one by one.
const fewKeys = 16

// value steps over a value, up to the first key that stands twice.
func (d *duplicates) value(depth int) {
	c := d.s.Peek()
	if c != '{' && c != '[' {
		d.s.Skip()
		return
	}
	if depth == MaxDepth {
		d.s.Fail("%s", tooDeep)
		return
	}
	from, many := len(d.keys), map[string]bool(nil)
	for d.s.Begin(c); d.s.More(c + 2); { // '{' and '}', '[' and ']' are two apart
		if c == '{' {
			d.s.Peek()
			at := d.s.i
			key := d.s.TextBytes()
			if d.s.i-at != len(key)+2 { // it was decoded, and does not stand in the input, which does not change
				key = bytes.Clone(key)
			}
			if many == nil && len(d.keys)-from == fewKeys {
				many = make(map[string]bool, 2*fewKeys)
				for _, k := range d.keys[from:] {
					many[string(k)] = true
				}
			}
			if many[string(key)] || many == nil && slices.ContainsFunc(d.keys[from:], func(k []byte) bool { return bytes.Equal(k, key) }) {
				d.key, d.at, d.found = string(key), at, true
				d.s.Fail("%q stands twice", key)
				return
			}
			if d.s.Colon(); many != nil {
				many[string(key)] = true
			} else {
				d.keys = append(d.keys, key)
			}
		}
		d.value(depth + 1)
	}
	d.keys = d.keys[:from]
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
