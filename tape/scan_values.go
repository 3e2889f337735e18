package tape

import (
	"encoding/base64"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// integer reads a number that fits into a T.
func integer[T int | int64 | uint64](s *scanner) T {
	negative := s.peek() == '-'
	if negative {
		s.i++
	}
	from := s.i
	var n uint64
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		digit := uint64(s.b[s.i] - '0')
		if n > (1<<64-1-digit)/10 {
			s.fail("number is out of range")
			return 0
		}
		n = n*10 + digit
		s.i++
	}
	if s.i == from || s.b[from] == '0' && s.i > from+1 || s.fraction() {
		s.fail("want an integer")
		return 0
	}
	v := T(n)
	fits := v >= 0 && uint64(v) == n
	if negative {
		v = -v
		fits = v <= 0 && uint64(-v) == n
	}
	if !fits {
		s.fail("number is out of range")
		return 0
	}
	return v
}

// fraction reports whether the number that was read goes on.
func (s *scanner) fraction() bool {
	if s.i >= len(s.b) {
		return false
	}
	c := s.b[s.i]
	return c == '.' || c == 'e' || c == 'E'
}

// field reads the value of key and keeps both.
func (s *scanner) field(key []byte) Field {
	f := Field{Name: string(key)}
	start := s.i
	s.skip()
	f.Value = append(f.Value, s.b[start:s.i]...)
	return f
}

func (s *scanner) digest() cas.Digest {
	var d cas.Digest
	if err := d.UnmarshalText(s.rawText()); err != nil {
		s.wrap(err)
	}
	return d
}

// wrap is fail for an error whose identity matters.
func (s *scanner) wrap(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("at byte %d: %w", s.i+1, err)
	}
	s.i = len(s.b)
}

func (s *scanner) base64() []byte {
	b, err := base64.StdEncoding.Strict().AppendDecode(nil, s.rawText())
	if err != nil {
		s.fail("not base64")
	}
	return b
}

func (s *scanner) header() HeaderField {
	var h HeaderField
	n := 0
	for s.begin('['); s.more(']'); n++ {
		switch n {
		case 0:
			h.Name = s.text()
		case 1:
			h.Value = s.text()
		default:
			s.fail("a header is [name,value]")
		}
	}
	if n < 2 {
		s.fail("a header is [name,value]")
	}
	return h
}

// peekKind returns the value of the key "kind" of the object that comes next, and stays before that object.
func (s *scanner) peekKind() []byte {
	at, first := s.i, s.first
	defer func() {
		if s.err == nil {
			s.i, s.first = at, first
		}
	}()
	var name []byte
	found := false
	for s.begin('{'); s.more('}'); {
		if key := s.key(); string(key) != "kind" {
			s.skip()
			continue
		}
		name, found = s.rawText(), true
		break
	}
	if !found {
		s.fail("kind has no name")
	}
	return name
}
