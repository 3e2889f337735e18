package cassette

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
)

// A sink writes the output and its index. Chunks are announced by expect when they come, and written when their bytes are
// released.
type sink struct {
	files    *files
	whole    hash.Hash
	part     hash.Hash // of the first of the pending, where that came in pieces
	pending  []Chunk
	first    int   // the index of the first pending one
	done     int64 // bytes of the first pending one that were written
	written  int64
	expected int64
	line     []byte
}

func newSink(f *files) *sink { return &sink{files: f, whole: sha256.New(), part: sha256.New()} }

// expect announces a chunk.
func (s *sink) expect(it *item) {
	if s.first > 0 && s.first*2 >= len(s.pending) {
		s.pending = s.pending[:copy(s.pending, s.pending[s.first:])]
		s.first = 0
	}
	s.pending = append(s.pending, Chunk{Timed: it.Timed, Offset: s.expected, Length: int64(it.n), G: it.g})
	s.expected += int64(it.n)
}

// held is how many bytes were announced and not written.
func (s *sink) held() int64 { return s.expected - s.written }

// write writes the next bytes of output, and the lines of the chunks that are whole by them.
func (s *sink) write(p []byte) error {
	if err := s.files.raw.write(p); err != nil {
		return err
	}
	s.whole.Write(p)
	s.written += int64(len(p))
	for len(p) > 0 {
		c := &s.pending[s.first]
		n := min(int64(len(p)), c.Length-s.done)
		digest, whole := s.digest(c, p[:n])
		p = p[n:]
		if !whole {
			continue
		}
		s.first++
		if err := s.chunk(c, digest); err != nil {
			return err
		}
	}
	return nil
}

// digest takes the next bytes of the chunk c, and returns its digest where these are the last.
func (s *sink) digest(c *Chunk, p []byte) (sum [sha256.Size]byte, whole bool) {
	if s.done == 0 && int64(len(p)) == c.Length {
		return sha256.Sum256(p), true
	}
	s.part.Write(p)
	s.done += int64(len(p))
	if s.done < c.Length {
		return sum, false
	}
	s.part.Sum(sum[:0])
	s.part.Reset()
	s.done = 0
	return sum, true
}

func (s *sink) chunk(c *Chunk, digest [sha256.Size]byte) error {
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], digest[:])
	s.line = appendChunk(s.line[:0], c, text[:])
	return s.files.chunks.write(s.line)
}

// appendChunk appends the line of c with the digest, "" for none.
func appendChunk(b []byte, c *Chunk, digest []byte) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, c.Seq, 10)
	b = append(b, `,"t_ms":`...)
	b = strconv.AppendInt(b, c.TMS, 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, c.Offset, 10)
	b = append(b, `,"length":`...)
	b = strconv.AppendInt(b, c.Length, 10)
	if len(digest) > 0 {
		b = append(b, `,"sha256":"`...)
		b = append(b, digest...)
		b = append(b, '"')
	}
	if c.G != 0 {
		b = append(b, `,"g":`...)
		b = strconv.AppendUint(b, c.G, 10)
	}
	return append(b, '}', '\n')
}
