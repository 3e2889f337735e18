package tape

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Other producers write in the format's own keys what has no form here: a digest of another kind ("sha256:…"), and unsigned integers
// above the largest int64. Such a value has a stand-in in its field, and stands in Extra as it stood, from where it is written again
// as long as the field still has the stand-in. Keys that recordings add are ours alone, and are taken as we write them.

// standIn is the digest that takes the place of a text that is none: equal texts have equal ones, and no blob has its name.
func standIn(text []byte) cas.Digest {
	return cas.Sum(append([]byte("tapedeck: this is no digest: "), text...))
}

// standsFor reports whether d takes the place of the JSON string v.
func standsFor(d cas.Digest, v json.RawMessage) bool {
	s := scannerOf(v)
	text := s.TextBytes()
	return s.Err() == nil && standIn(text) == d
}

// isWide reports whether v is an integer above the largest int64.
func isWide(v json.RawMessage) bool {
	s := scannerOf(v)
	return jsonscan.Integer[uint64](&s.Scanner) > math.MaxInt64 && s.Err() == nil
}

// stood writes what stood under name where that is what is meant, and reports whether it did.
func (c *codec) stood(name string, meant func(json.RawMessage) bool) bool {
	if len(c.kept) == 0 {
		return false
	}
	f, ok := c.claim(name)
	if !ok || !meant(f.Value) {
		return false
	}
	c.field(f)
	return true
}

// hash is the way of a required digest that other producers write.
func (c *codec) hash(name string, p *cas.Digest) {
	if c.mode == writing {
		if !c.stood(name, func(v json.RawMessage) bool { return standsFor(*p, v) }) {
			c.digest(name, p, required)
		}
		return
	}
	if !c.take(name, required) {
		return
	}
	var ok bool
	if *p, ok = c.scan.hash(); !ok {
		c.keep(name)
	}
}

// hash reads a string that is a digest; of another text it returns the stand-in, and false.
func (s *scanner) hash() (d cas.Digest, ok bool) {
	text := s.TextBytes()
	if d.UnmarshalText(text) == nil {
		return d, true
	}
	return standIn(text), false
}

// HashOfOthers reports whether the content_hash of a kind, whose further keys are extra, stood on its tape as no digest: what it is of
// cannot be told from it then.
func HashOfOthers(extra []Field) bool { return FieldValue(extra, hashKey) != nil }

// unsigned is the way of a required number that other producers hold in 64 bits without a sign. One below 0 is taken.
func (c *codec) unsigned(name string, p *int64) {
	if c.mode == writing {
		if *p != math.MaxInt64 || !c.stood(name, isWide) {
			number(c, name, p, required)
		}
		return
	}
	if !c.take(name, required) {
		return
	}
	var ok bool
	if *p, ok = c.scan.unsigned(); !ok {
		c.keep(name)
	}
}

// unsigned reads an integer of up to 64 bits; of one that is above the largest int64 it returns that, and false.
func (s *scanner) unsigned() (n int64, ok bool) {
	if s.Peek() == '-' {
		return jsonscan.Integer[int64](&s.Scanner), true
	}
	u := jsonscan.Integer[uint64](&s.Scanner)
	if u > math.MaxInt64 {
		return math.MaxInt64, false
	}
	return int64(u), true
}

var errNegative = errors.New("a duration is below 0")

// duration is the way of a required duration, in ms. One below 0 is refused.
func (c *codec) duration(name string, p *int64) {
	if c.mode == writing && *p < 0 {
		c.err = fmt.Errorf("%s: %w: %d ms", name, errNegative, *p)
	}
	c.unsigned(name, p)
	if c.mode != writing && *p < 0 {
		c.scan.Fail("a duration of %d ms", *p)
	}
}

var errSource = errors.New(`the source of a clock is neither "wall" nor "monotonic"`)

// clock is the way of the source of a reading.
func (c *codec) clock(name string, p *string) {
	known := func() bool { return *p == "wall" || *p == "monotonic" }
	if c.mode == writing {
		if !known() {
			c.err = fmt.Errorf("%w: %.40q", errSource, *p)
		}
		c.text(name, p, required)
		return
	}
	if !c.take(name, required) {
		return
	}
	if *p = c.scan.text(); !known() {
		c.scan.Fail(`want "wall" or "monotonic"`)
	}
}

// A payload of another producer keeps its hash and its length in Extra, too.
const (
	hashKey   = "content_hash"
	lengthKey = "len_bytes"
)

// keptOf returns what stood under a key of a payload in place of what its field has; nil where the field says it.
func (p *Payload) keptOf(key string, meant func(json.RawMessage) bool) json.RawMessage {
	if len(p.Extra) == 0 {
		return nil
	}
	i := slices.IndexFunc(p.Extra, func(f Field) bool { return f.Name == key })
	if i < 0 || !meant(p.Extra[i].Value) {
		return nil
	}
	return p.Extra[i].Value
}

// keptHash is the hash as it stood where it is no digest.
func (p *Payload) keptHash() json.RawMessage {
	return p.keptOf(hashKey, func(v json.RawMessage) bool { return standsFor(p.Hash, v) })
}

// CheckHash refuses a payload whose hash, as another producer wrote it, is no digest: nothing has it as its name, and what it names
// cannot be told from other bytes. The error wraps cas.ErrName.
func (p *Payload) CheckHash() error {
	v := p.keptHash()
	if v == nil {
		return nil
	}
	_, err := cas.Parse(string(scannerOf(v).TextBytes()))
	return err
}
