package tape

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

func (c *codec) text(name string, p *string, need need) {
	if c.mode == writing {
		if c.put(name, need, *p == "") {
			c.string(*p)
		}
		return
	}
	if c.take(name, need) {
		*p = c.scan.text()
		c.took(name, need, *p == "")
	}
}

func (c *codec) textOrNull(name string, p **string) {
	if c.mode != writing {
		if c.take(name, always) {
			s := c.scan.text()
			*p = &s
		}
		return
	}
	c.put(name, always, false)
	if *p == nil {
		c.buf = append(c.buf, "null"...)
		return
	}
	c.string(**p)
}

func (c *codec) numberOrNull(name string, p **int64) {
	if c.mode != writing {
		if c.take(name, always) {
			n := jsonscan.Integer[int64](&c.scan.Scanner)
			*p = &n
		}
		return
	}
	c.put(name, always, false)
	if *p == nil {
		c.buf = append(c.buf, "null"...)
		return
	}
	c.set(appendNumber(c.buf, **p))
}

func number[T int | int64 | uint64](c *codec, name string, p *T, need need) {
	if c.mode == writing {
		if c.put(name, need, *p == 0) {
			c.set(appendNumber(c.buf, *p))
		}
		return
	}
	if c.take(name, need) {
		*p = jsonscan.Integer[T](&c.scan.Scanner)
		c.took(name, need, *p == 0)
	}
}

func (c *codec) digest(name string, p *cas.Digest, need need) {
	if c.mode == writing {
		if c.put(name, need, p.IsZero()) {
			c.set(appendDigest(c.buf, *p))
		}
		return
	}
	if c.take(name, need) {
		*p = c.scan.digest()
		c.took(name, need, p.IsZero())
	}
}

// json is the way of a value that this package does not look into.
func (c *codec) json(name string, p *json.RawMessage) {
	if c.mode == writing {
		if c.put(name, optional, len(*p) == 0) {
			c.raw(*p)
		}
		return
	}
	if c.take(name, optional) {
		c.scan.Skip()
		*p = slices.Clone(c.scan.Since(c.start))
	}
}

func (c *codec) texts(name string, p *[]string, need need) {
	if c.mode == writing {
		if c.put(name, need, len(*p) == 0) {
			c.buf = append(c.buf, '[')
			for _, s := range *p {
				c.comma()
				c.string(s)
			}
			c.buf = append(c.buf, ']')
		}
		return
	}
	if c.take(name, need) {
		for c.scan.Begin('['); c.scan.More(']'); {
			*p = append(*p, c.scan.text())
		}
		c.took(name, need, len(*p) == 0)
	}
}

// headers is the way of a list of [name,value].
func (c *codec) headers(name string, p *[]HeaderField) {
	if c.mode == writing {
		if c.put(name, optional, len(*p) == 0) {
			c.writeHeaders(*p)
		}
		return
	}
	if c.take(name, optional) {
		for c.scan.Begin('['); c.scan.More(']'); {
			*p = append(*p, c.scan.header())
		}
		c.took(name, optional, len(*p) == 0)
	}
}

func (c *codec) writeHeaders(headers []HeaderField) {
	c.buf = append(c.buf, '[')
	for i, h := range headers {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = append(c.buf, '[')
		c.string(h.Name)
		c.buf = append(c.buf, ',')
		c.string(h.Value)
		c.buf = append(c.buf, ']')
	}
	c.buf = append(c.buf, ']')
}

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

// appendNumber appends n in decimal.
func appendNumber[T int | int64 | uint64](dst []byte, n T) []byte {
	if n < 0 {
		return strconv.AppendInt(dst, int64(n), 10)
	}
	return strconv.AppendUint(dst, uint64(n), 10)
}
