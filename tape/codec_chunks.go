package tape

import (
	"bytes"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

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
