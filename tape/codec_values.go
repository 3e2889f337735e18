package tape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

// chunks is the way of a stream. What a chunk has beyond its four keys ends up in extra.
func (c *codec) chunks(name string, p *[]Chunk, extra *[]ChunkField) {
	if c.mode == writing {
		if c.put(name, optional, len(*p) == 0) {
			c.writeChunks(*p, *extra)
		}
		return
	}
	if c.take(name, optional) {
		*p = slices.Grow(*p, c.scan.roomForChunks())
		for c.scan.Begin('['); c.scan.More(']'); {
			*p = append(*p, c.scan.chunk(len(*p), extra))
		}
		c.took(name, optional, len(*p) == 0)
	}
}

func (c *codec) writeChunks(chunks []Chunk, extra []ChunkField) {
	c.buf = append(c.buf, '[')
	for i, ch := range chunks {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		c.buf = appendChunk(c.buf, ch)
		if len(extra) > 0 {
			extra = c.writeChunkFields(ch, i, extra)
		}
		c.buf = append(c.buf, '}')
	}
	c.buf = append(c.buf, ']')
}

// appendChunk appends a chunk without its last brace.
func appendChunk(dst []byte, ch Chunk) []byte {
	dst = append(dst, `{"offset":`...)
	dst = appendNumber(dst, ch.Offset)
	dst = append(dst, `,"length":`...)
	dst = appendNumber(dst, ch.Length)
	dst = append(dst, `,"t_ms":`...)
	dst = appendNumber(dst, ch.TMS)
	if ch.G != 0 {
		dst = append(dst, `,"g":`...)
		dst = appendNumber(dst, ch.G)
	}
	return dst
}

// writeChunkFields writes the fields of chunk i, an explicit zero of g before the others, and returns those of the chunks
// behind it. A field that says again what the chunk says is left out: a reader refuses a key that stands twice.
func (c *codec) writeChunkFields(ch Chunk, i int, all []ChunkField) []ChunkField {
	n := 0
	for n < len(all) && all[n].Chunk <= i {
		n++
	}
	own := all[:n]
	g := slices.IndexFunc(own, func(f ChunkField) bool { return f.Chunk == i && f.Name == "g" })
	if g >= 0 && ch.G == 0 {
		c.field(own[g].Field)
	}
	for _, f := range own {
		if f.Chunk == i && !slices.Contains(chunkKeys, f.Name) {
			c.field(f.Field)
		}
	}
	return all[n:]
}

// chunkKeys are the keys of a chunk.
var chunkKeys = []string{"offset", "length", "t_ms", "g"}

// chunk reads {"offset","length","t_ms","g"} of the chunk with the index n, and appends to extra what else stands there:
// other keys, and a g that is null or zero. The first three must be there, which also bounds how many chunks a line can
// hold. An answer may have thousands, so the order in which every producer writes them is tried first.
func (s *scanner) chunk(n int, extra *[]ChunkField) Chunk {
	var c Chunk
	seen, from := 0, len(*extra)
	s.Begin('{')
	if s.KeyIs("offset") {
		c.Offset, seen = jsonscan.Integer[int64](&s.Scanner), 1
		if s.KeyIs("length") {
			c.Length, seen = jsonscan.Integer[int64](&s.Scanner), 3
			if s.KeyIs("t_ms") {
				c.TMS, seen = jsonscan.Integer[int64](&s.Scanner), 7
			}
		}
	}
	for s.More('}') {
		bit := 0
		switch key := s.Key(); string(key) {
		case "offset":
			c.Offset, bit = jsonscan.Integer[int64](&s.Scanner), 1
		case "length":
			c.Length, bit = jsonscan.Integer[int64](&s.Scanner), 2
		case "t_ms":
			c.TMS, bit = jsonscan.Integer[int64](&s.Scanner), 4
		case "g":
			at := s.Offset()
			if bit = 8; !s.Null() {
				c.G = jsonscan.Integer[uint64](&s.Scanner)
			}
			if c.G == 0 { // it would not be written otherwise; it is written before the others
				*extra = slices.Insert(*extra, from, ChunkField{n, Field{Name: "g", Value: bytes.Clone(s.Since(at))}})
			}
		default:
			*extra = append(*extra, ChunkField{n, s.field(key)})
		}
		if seen&bit != 0 {
			s.Fail("a key of a chunk stands twice")
		}
		seen |= bit
	}
	if seen&7 != 7 {
		s.Fail("a chunk wants offset, length and t_ms")
	}
	return c
}

// roomForChunks returns a bound on how many chunks the list that comes next holds.
func (s *scanner) roomForChunks() int {
	list := s.Rest()
	if end := bytes.IndexByte(list, ']'); end >= 0 {
		list = list[:end]
	}
	return min(bytes.Count(list, []byte{'{'}), len(list)/len(`{"offset":0,"length":0,"t_ms":0}`))
}

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
