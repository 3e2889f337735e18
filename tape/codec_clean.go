package tape

import "github.com/tapedeck-dev/tapedeck/internal/jsonscan"

// minCleaned is the length in bytes below which nothing holds a secret: a password in a URL, a://:b@, is the shortest that package
// scrub finds, and as long is the shortest text that it unpacks.
const minCleaned = 7

// string writes a string of the record, cleaned.
func (c *codec) string(s string) {
	if c.clean == nil || len(s) < minCleaned {
		c.set(jsonscan.AppendText(c.buf, s))
		return
	}
	c.scratch = append(c.scratch[:0], s...)
	if out := c.clean(c.scratch); len(out) != len(s) || &out[0] != &c.scratch[0] {
		s = string(out)
	}
	c.set(jsonscan.AppendText(c.buf, s))
	if cap(c.scratch) > keepBuffer {
		c.scratch = nil
	}
}

// cleaned returns bytes of the record as they may be written.
func (c *codec) cleaned(b []byte) []byte {
	if c.clean == nil || len(b) < minCleaned {
		return b
	}
	return c.clean(b)
}
