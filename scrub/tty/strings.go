package tty

import (
	"bytes"
	"encoding/base64"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// maxString bounds how much of a control string is looked at at once, in bytes, and again of a longer one what could be a part of
// a secret.
const (
	maxString     = 1 << 20
	stringOverlap = 16 << 10
)

// A controlString looks at what stands in OSC, DCS and their like: titles, links, the clipboard.
type controlString struct {
	rules  *rules
	ledger *ledger
	isOpen bool
	osc    bool
	start  int64
	buf    []byte // from start on
}

// take takes a part of a control string that stands at an offset of the stream.
func (c *controlString) take(osc bool, p []byte, at int64) {
	if !c.isOpen {
		c.isOpen, c.osc, c.start = true, osc, at
		c.buf = c.buf[:0]
	}
	for len(c.buf)+len(p) >= maxString {
		n := maxString - len(c.buf)
		c.buf = append(c.buf, p[:n]...)
		p = p[n:]
		c.look()
		c.start += maxString - stringOverlap
		c.buf = append(c.buf[:0], c.buf[maxString-stringOverlap:]...)
	}
	c.buf = append(c.buf, p...)
}

func (c *controlString) end() {
	if c.isOpen {
		c.look()
	}
	c.isOpen = false
	if cap(c.buf) > maxBlock {
		c.buf = nil
	}
}

func (c *controlString) look() {
	c.tell(c.rules.in(c.buf))
	if c.osc {
		c.clipboard()
	}
}

func (c *controlString) tell(found []scrub.Range) {
	for _, f := range found {
		c.ledger.add(f.Rule, []span{{c.start + f.Start, c.start + f.End}}, f.Part)
	}
}

// clipboard looks at what OSC 52 sets the clipboard to, which is base64. Digits that were masked stand for zeros.
func (c *controlString) clipboard() {
	rest, ok := bytes.CutPrefix(c.buf, []byte("52;"))
	if !ok {
		return
	}
	_, data, ok := bytes.Cut(rest, []byte(";"))
	if !ok {
		return
	}
	at, size := int64(len(c.buf)-len(data)), int64(len(c.buf))
	digits := bytes.TrimRight(bytes.ReplaceAll(data, []byte("*"), []byte("A")), "=")
	plain := make([]byte, base64.RawStdEncoding.DecodedLen(len(digits)))
	n, _ := base64.RawStdEncoding.Decode(plain, digits) // as far as it is base64
	found := c.rules.in(plain[:n])
	for i, f := range found {
		found[i].Start, found[i].End = at+f.Start*8/6, min(at+(f.End*8+5)/6, size)
	}
	c.tell(found)
}
