package tape

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

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
