package tape

import "strconv"

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
	c.buf = append(c.buf, `{"content_hash":`...)
	c.buf = appendDigest(c.buf, p.Hash)
	if p.Inline {
		c.buf = append(c.buf, `,"text":`...)
		c.buf = appendString(c.buf, p.Text)
	} else {
		c.buf = append(c.buf, `,"len_bytes":`...)
		c.buf = strconv.AppendInt(c.buf, p.Len, 10)
	}
	for _, f := range p.Extra {
		c.field(f)
	}
	c.buf = append(c.buf, '}')
}

// payload reads a payload in either form.
func (s *scanner) payload() *Payload {
	p := &Payload{}
	var hash, length bool
	for s.begin('{'); s.more('}'); {
		switch key := s.key(); {
		case string(key) == "content_hash" && !hash:
			p.Hash, hash = s.digest(), true
		case string(key) == "text" && !p.Inline:
			p.Text, p.Inline = s.text(), true
		case string(key) == "len_bytes" && !length && !p.Inline:
			p.Len, length = integer[int64](s), true
		default:
			p.Extra = append(p.Extra, s.field(key))
		}
	}
	switch {
	case s.err != nil:
	case !hash || !p.Inline && !length:
		s.fail("a payload wants content_hash and text or len_bytes")
	case p.Len < 0:
		s.fail("a payload of %d bytes", p.Len)
	case p.Inline:
		p.Len = int64(len(p.Text))
	}
	return p
}
