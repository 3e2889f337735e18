package tape

import "github.com/tapedeck-dev/tapedeck/internal/jsonscan"

// empty is what a required payload that is nil is written as: the format has no null there, and readers of other
// producers would refuse the tape.
var empty = inline(nil)

func (c *codec) payload(name string, p **Payload, need need) {
	if c.mode != writing {
		if c.take(name, need) {
			*p = c.scan.payload()
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
	buf = appendDigest(buf, p.Hash)
	if p.Inline {
		buf = append(buf, `,"text":`...)
		buf = jsonscan.AppendText(buf, p.Text)
	} else {
		buf = append(buf, `,"len_bytes":`...)
		buf = appendNumber(buf, p.Len)
	}
	c.set(buf)
	for _, f := range p.Extra {
		c.field(f)
	}
	c.buf = append(c.buf, '}')
}

// payload reads a payload in either form. A text beside a number of bytes is the payload.
func (s *scanner) payload() *Payload {
	p := &Payload{}
	const hash, text, length = 1, 2, 4
	seen := 0
	for s.Begin('{'); s.More('}'); {
		bit := 0
		switch key := s.Key(); string(key) {
		case "content_hash":
			p.Hash, bit = s.digest(), hash
		case "text":
			p.Text, bit = s.text(), text
		case "len_bytes":
			p.Len, bit = jsonscan.Integer[int64](&s.Scanner), length
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
