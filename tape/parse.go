package tape

import (
	"bytes"
	"fmt"
)

// AppendRecord appends the line of r, without a newline. What cannot be written (JSON in a field that is none) stands as
// null; Writer.Append refuses such a record.
func AppendRecord(dst []byte, r *Record) []byte {
	dst, _ = appendRecord(dst, r)
	return dst
}

func appendRecord(dst []byte, r *Record) ([]byte, error) {
	c := codec{buf: dst}
	c.writeLine(&line{typ: "record", record: r}, r.Extra)
	return c.buf, c.err
}

func appendHeader(dst []byte, h *Header) ([]byte, error) {
	head := *h
	if head.Version == 0 {
		head.Version = Version
	}
	c := codec{buf: dst}
	c.writeLine(&line{typ: "header", header: &head}, h.Extra)
	return c.buf, c.err
}

// AppendKind appends the object of k, as it stands under the key "kind".
func AppendKind(dst []byte, k Kind) []byte {
	c := codec{buf: dst}
	c.object = object{mode: writing}
	c.writeKind(k)
	return c.buf
}

// ParseRecord reads one line, with or without its newline. The record shares no memory with it.
func ParseRecord(b []byte) (*Record, error) {
	var p parser
	return p.record(b)
}

// A parser reads lines one after another with one codec.
type parser struct{ c codec }

// typ returns the type of a line: "header", "record" or what else stands there.
func (p *parser) typ(b []byte) (string, error) {
	if bytes.HasPrefix(b, []byte(`{"type":"record"`)) {
		return "record", nil
	}
	s := scanner{b: b}
	for s.begin('{'); s.more('}'); {
		if key := s.key(); string(key) == "type" {
			return s.text(), s.err
		}
		s.skip()
	}
	return "", s.err
}

func (p *parser) record(b []byte) (*Record, error) {
	r := new(Record)
	l := &line{record: r}
	if err := p.line(b, l, "record"); err != nil {
		return nil, err
	}
	r.Extra = p.c.kept
	return r, nil
}

func (p *parser) header(b []byte) (*Header, error) {
	h := new(Header)
	l := &line{header: h}
	if err := p.line(b, l, "header"); err != nil {
		return nil, err
	}
	h.Extra = p.c.kept
	return h, nil
}

// line reads b into l, whose type must be want. What is no JSON at all is ErrNotJSON; JSON that is not what it should be
// says where and why.
func (p *parser) line(b []byte, l *line, want string) error {
	p.c.scan.reset(b)
	p.c.readObject(l)
	s := &p.c.scan
	if s.err == nil && s.peek() != 0 {
		s.fail("something follows the object")
	}
	if s.err != nil {
		if validJSON(b) != nil {
			return fmt.Errorf("%w: %w", ErrNotJSON, s.err)
		}
		return s.err
	}
	if l.typ != want {
		return fmt.Errorf("a line of type %q where a %s was due", l.typ, want)
	}
	return nil
}
