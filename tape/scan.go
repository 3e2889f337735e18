package tape

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A scanner reads the JSON of one line, and the values that the format is made of.
type scanner struct {
	jsonscan.Scanner

	// arena holds the decoded strings of the line, so that they cost one allocation together.
	arena strings.Builder
}

func (s *scanner) reset(b []byte) {
	s.Reset(b)
	s.arena = strings.Builder{}
}

// scannerOf returns a scanner that stands before b.
func scannerOf(b []byte) *scanner {
	s := new(scanner)
	s.Reset(b)
	return s
}

// text reads a string. It shares memory with the other strings of its line.
func (s *scanner) text() string {
	b := s.TextBytes()
	if common := intern(b); common != "" || len(b) == 0 {
		return common
	}
	if s.arena.Cap() == 0 {
		// Decoded strings are no longer than their JSON: this is room for all that may still come.
		s.arena.Grow(len(b) + len(s.Rest()))
	}
	at := s.arena.Len()
	s.arena.Write(b)
	return s.arena.String()[at:]
}

// intern returns a string that is already in memory, or "".
func intern(b []byte) string {
	switch string(b) {
	case "record":
		return "record"
	case "user_script":
		return "user_script"
	case "runtime_finalize":
		return "runtime_finalize"
	case "wall":
		return "wall"
	case "monotonic":
		return "monotonic"
	}
	return ""
}

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

// AppendRecord appends the line of r, without a newline. What cannot be written (JSON in a field that is none) stands as
// null; Writer.Append refuses such a record. Behind the line, as far as dst's memory reaches, bytes are overwritten: strings
// are written in steps of eight bytes or more.
func AppendRecord(dst []byte, r *Record) []byte {
	c := codec{buf: dst}
	c.writeLine(&line{typ: "record", record: r}, r.Extra)
	return c.buf
}

// ParseRecord reads the line of one record, with or without its newline. The record shares no memory with it. The error
// wraps ErrNotJSON, also where b is more than a line, ErrSecondHeader where the line is a header, or ErrMalformed.
func ParseRecord(b []byte) (*Record, error) {
	var p parser
	if i := bytes.IndexByte(b, '\n'); i >= 0 && len(trimSpace(b[i:])) > 0 {
		return nil, fmt.Errorf("%w: a line ends at byte %d and something follows it", ErrNotJSON, i+1)
	}
	return p.record(b)
}

// A parser reads lines one after another with one codec.
type parser struct {
	c    codec
	line line
}

func (p *parser) record(b []byte) (*Record, error) {
	r := new(Record)
	p.line = line{record: r}
	err := p.read(b)
	switch {
	case p.line.typ == "header" && !isNotJSON(b, err):
		return nil, ErrSecondHeader
	case err != nil:
		return nil, err
	case p.line.typ != "record":
		return nil, fmt.Errorf("%w: its type is %.40q", ErrMalformed, p.line.typ)
	}
	r.Extra = p.c.kept
	return r, nil
}

// header reads the first line. A version that is too new goes before everything else that is wrong with it: who knows
// what a header will look like.
func (p *parser) header(b []byte) (*Header, error) {
	h := new(Header)
	p.line = line{header: h}
	err := p.read(b)
	switch {
	case isNotJSON(b, err):
		return nil, err
	case p.line.typ != "header":
		return nil, ErrNoHeader
	case h.Version > Version:
		return nil, fmt.Errorf("%w: its version is %d, this reader knows versions up to %d", ErrVersion, h.Version, Version)
	case err != nil:
		return nil, err
	case h.Version < 0:
		return nil, fmt.Errorf("%w: its version is %d", ErrMalformed, h.Version)
	}
	h.Extra = p.c.kept
	return h, nil
}

// read takes b apart into p.line, as far as it goes. The error wraps ErrNotJSON or ErrMalformed.
func (p *parser) read(b []byte) error {
	p.c.scan.reset(b)
	p.c.last = ""
	p.c.readObject(&p.line, false)
	s := &p.c.scan
	err := s.End()
	switch {
	case err == nil && utf8.Valid(b):
		return nil
	case jsonscan.Valid(b) != nil:
		return fmt.Errorf("%w: %w", ErrNotJSON, jsonscan.Valid(b))
	case p.c.last != "":
		return fmt.Errorf("%w: key %q, %w", ErrMalformed, p.c.last, err)
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}

// isNotJSON reports whether err, of reading b, came because b is no JSON object.
func isNotJSON(b []byte, err error) bool {
	return err != nil && (jsonscan.Valid(b) != nil || !bytes.HasPrefix(trimSpace(b), []byte("{")))
}

// trimSpace drops the white space of JSON around b. Other kinds of space are no JSON, and a line of them is not blank.
func trimSpace(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }
