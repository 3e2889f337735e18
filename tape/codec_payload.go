package tape

import (
	"bytes"
	"math"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// empty is what a required payload that is nil is written as: the format has no null there, and readers of other
// producers would refuse the tape.
var empty = inline(nil)

func (c *codec) payload(name string, p **Payload, need need) {
	if c.mode != writing {
		if c.take(name, need) {
			*p = c.scan.payload(need == required)
		}
		return
	}
	if !c.put(name, need, *p == nil) {
		return
	}
	if *p == nil {
		c.writePayload(empty)
		return
	}
	c.writePayload(*p)
}

func (c *codec) writePayload(p *Payload) {
	buf := c.buf
	buf = append(buf, `{"content_hash":`...)
	if as := p.keptHash(); as != nil {
		buf = append(buf, as...)
	} else {
		buf = appendDigest(buf, p.Hash)
	}
	if p.Inline {
		buf = append(buf, `,"text":`...)
		buf = jsonscan.AppendText(buf, p.Text)
	} else {
		buf = append(buf, `,"len_bytes":`...)
		if as := p.keptOf(lengthKey, isWide); as != nil && p.Len == math.MaxInt64 {
			buf = append(buf, as...)
		} else {
			buf = appendNumber(buf, p.Len)
		}
	}
	c.set(buf)
	for _, f := range p.Extra {
		if f.Name != hashKey && (f.Name != lengthKey || p.Inline) {
			c.field(f)
		}
	}
	c.buf = append(c.buf, '}')
}

// stood keeps what stands since at under a key of p, where others may have written it.
func (s *scanner) stood(p *Payload, key string, at int, others bool) {
	switch v := s.Since(at); {
	case others:
		p.Extra = append(p.Extra, Field{Name: key, Value: bytes.Clone(v)})
	case key == hashKey:
		_, err := cas.Parse(string(scannerOf(v).TextBytes()))
		s.Wrap(err)
	default:
		s.Fail("number is out of range")
	}
}

// payload reads a payload in either form. A text beside a number of bytes is the payload. One of others may have a hash and a length
// that have no form here.
func (s *scanner) payload(others bool) *Payload {
	p := &Payload{}
	const hash, text, length = 1, 2, 4
	seen := 0
	for s.Begin('{'); s.More('}'); {
		var ok bool
		bit := 0
		switch key := s.Key(); string(key) {
		case hashKey:
			s.Peek()
			at := s.Offset()
			if p.Hash, ok = s.hash(); !ok {
				s.stood(p, hashKey, at, others)
			}
			bit = hash
		case "text":
			p.Text, bit = s.text(), text
		case lengthKey:
			s.Peek()
			at := s.Offset()
			if p.Len, ok = s.unsigned(); !ok {
				s.stood(p, lengthKey, at, others)
			}
			bit = length
		default:
			p.Extra = append(p.Extra, s.field(key))
		}
		if seen&bit != 0 {
			s.Fail("a key of a payload stands twice")
		}
		seen |= bit
	}
	switch {
	case seen&hash == 0 || seen == hash:
		s.Fail("a payload wants content_hash, and text or len_bytes")
	case p.Len < 0:
		s.Fail("a payload of %d bytes", p.Len)
	case seen&text != 0:
		p.Inline, p.Len = true, int64(len(p.Text))
	}
	return p
}
