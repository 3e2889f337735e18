package tape

import (
	"bytes"
	"slices"
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
		for c.scan.begin('['); c.scan.more(']'); {
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
	s.begin('{')
	if s.keyIs("offset") {
		c.Offset, seen = integer[int64](s), 1
		if s.keyIs("length") {
			c.Length, seen = integer[int64](s), 3
			if s.keyIs("t_ms") {
				c.TMS, seen = integer[int64](s), 7
			}
		}
	}
	for s.more('}') {
		bit := 0
		switch key := s.key(); string(key) {
		case "offset":
			c.Offset, bit = integer[int64](s), 1
		case "length":
			c.Length, bit = integer[int64](s), 2
		case "t_ms":
			c.TMS, bit = integer[int64](s), 4
		case "g":
			at := s.i
			if bit = 8; !s.null() {
				c.G = integer[uint64](s)
			}
			if c.G == 0 { // it would not be written otherwise; it is written before the others
				*extra = slices.Insert(*extra, from, ChunkField{n, Field{Name: "g", Value: bytes.Clone(s.b[at:s.i])}})
			}
		default:
			*extra = append(*extra, ChunkField{n, s.field(key)})
		}
		if seen&bit != 0 {
			s.fail("a key of a chunk stands twice")
		}
		seen |= bit
	}
	if seen&7 != 7 {
		s.fail("a chunk wants offset, length and t_ms")
	}
	return c
}

// roomForChunks returns a bound on how many chunks the list that comes next holds.
func (s *scanner) roomForChunks() int {
	list := s.b[s.i:]
	if end := bytes.IndexByte(list, ']'); end >= 0 {
		list = list[:end]
	}
	return min(bytes.Count(list, []byte{'{'}), len(list)/len(`{"offset":0,"length":0,"t_ms":0}`))
}
