package tape

import (
	"encoding/base64"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// field reads the value of key and keeps both.
func (s *scanner) field(key []byte) Field {
	f := Field{Name: string(key)}
	f.Value = append(f.Value, s.Raw()...)
	return f
}

func (s *scanner) digest() cas.Digest {
	var d cas.Digest
	if err := d.UnmarshalText(s.TextBytes()); err != nil {
		s.Wrap(err)
	}
	return d
}

func (s *scanner) base64() []byte {
	b, err := base64.StdEncoding.Strict().AppendDecode(nil, s.TextBytes())
	if err != nil {
		s.Fail("not base64")
	}
	return b
}

func (s *scanner) header() HeaderField {
	var h HeaderField
	n := 0
	for s.Begin('['); s.More(']'); n++ {
		switch n {
		case 0:
			h.Name = s.text()
		case 1:
			h.Value = s.text()
		default:
			s.Fail("a header is [name,value]")
		}
	}
	if n < 2 {
		s.Fail("a header is [name,value]")
	}
	return h
}

// peekKind returns the value of the key "kind" of the object that comes next, and stays before that object.
func (s *scanner) peekKind() []byte {
	at := s.Mark()
	defer func() { s.Back(at) }()
	var name []byte
	found := false
	for s.Begin('{'); s.More('}'); {
		if key := s.Key(); string(key) != "kind" {
			s.Skip()
			continue
		}
		name, found = s.TextBytes(), true
		break
	}
	if !found {
		s.Fail("kind has no name")
	}
	return name
}
