package cassette

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
)

// A prover reads the output along with its chunks.
type prover struct {
	in    io.Reader
	size  int64
	at    int64
	whole hash.Hash
	buf   []byte
}

// chunk reads the bytes of c and checks them.
func (p *prover) chunk(c *Chunk, line int) error {
	if err := checkRange(c, p.at, p.size, line); err != nil {
		return err
	}
	part := sha256.New()
	for left := c.Length; left > 0; {
		b := p.buf[:min(left, int64(len(p.buf)))]
		if _, err := io.ReadFull(p.in, b); err != nil {
			return err
		}
		p.whole.Write(b)
		part.Write(b)
		left -= int64(len(b))
	}
	p.at += c.Length
	return checkDigest(c, part.Sum(nil), line)
}

// checkRange refuses a chunk that does not begin where the one before ended, or ends behind the output.
func checkRange(c *Chunk, at, size int64, line int) error {
	switch {
	case c.Length < 0 || c.Offset != at:
		return refuse(ChunksFile, line, ErrChunkRange, "expected offset %d, found offset %d and length %d", at, c.Offset, c.Length)
	case c.Length > MaxChunk:
		return refuse(ChunksFile, line, ErrTooLong, "a chunk has at most %d bytes, found %d", MaxChunk, c.Length)
	case c.Length > size-at:
		return refuse(ChunksFile, line, ErrChunkRange, "expected at most %d bytes, found length %d", size-at, c.Length)
	}
	return nil
}

func checkDigest(c *Chunk, sum []byte, line int) error {
	if c.SHA256 == "" {
		return nil
	}
	want, err := hex.DecodeString(c.SHA256)
	if err != nil || !bytes.Equal(want, sum) {
		return refuse(ChunksFile, line, ErrChunkDigest, "seq %d: expected %s, found %x", c.Seq, c.SHA256, sum)
	}
	return nil
}

// prover returns one that stands before the output.
func (r *Reader) prover() *prover {
	p := &prover{in: strings.NewReader(""), size: r.size, whole: sha256.New(), buf: make([]byte, 256<<10)}
	if r.raw != nil {
		p.in = io.NewSectionReader(r.raw, 0, r.size)
	}
	return p
}

// CheckOutput reads the output along with its index, and refuses of them what Open refuses where it is not Lazy: ErrChunkRange,
// ErrChunkDigest, ErrDigest. Of a cassette that Open has read it looks at nothing.
func (r *Reader) CheckOutput() error {
	if !r.o.Lazy || r.o.Partial {
		return nil
	}
	m, err := newMerger(r.dir, []Stream{StreamOutput}, nil, 0, false)
	if err != nil {
		return err
	}
	defer m.close()
	p := r.prover()
	for {
		e, err := m.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := p.chunk(e.Chunk, m.file.line); err != nil {
			return err
		}
	}
	if err := p.covered(); err != nil {
		return err
	}
	return checkWhole(&r.manifest, p.whole.Sum(nil))
}

// covered refuses output behind the last chunk.
func (p *prover) covered() error {
	if p.at != p.size {
		return refuse(ChunksFile, 0, ErrChunkRange, "expected chunks of %d bytes, found %d", p.size, p.at)
	}
	return nil
}

// scan reads everything once.
func (r *Reader) scan() error {
	m, err := newMerger(r.dir, lineStreams, r.final, 0, r.o.Partial)
	if err != nil {
		return err
	}
	defer m.close()
	p := r.prover()
	err = r.walk(m, p)
	if err == nil {
		err = r.end(m, p)
	}
	if err == nil {
		return nil
	}
	if Code(err) == "" {
		return err
	}
	return r.unfinished(err)
}

// walk checks each event, and keeps how far it came.
func (r *Reader) walk(m *merger, p *prover) error {
	size := r.size
	r.last, r.size = 0, 0
	for {
		e, err := m.next()
		if errors.Is(err, io.EOF) {
			p.size = size
			return nil
		}
		if err != nil {
			return err
		}
		if e.Chunk != nil {
			if err := p.chunk(e.Chunk, m.file.line); err != nil {
				return err
			}
		}
		r.last, r.size = e.Seq, p.at
	}
}

// end checks what can be told at the end alone.
func (r *Reader) end(m *merger, p *prover) error {
	if err := p.covered(); err != nil {
		return err
	}
	if r.final != nil && m.file.stream != StreamFinal {
		return refuse(m.file.stream.File(), m.file.line, ErrSequence, "nothing may come behind the final record")
	}
	if r.state == StateUnfinished {
		return nil
	}
	return checkWhole(&r.manifest, p.whole.Sum(nil))
}

func checkWhole(m *Manifest, sum []byte) error {
	want, err := hex.DecodeString(m.ContentDigest.SHA256)
	if err != nil || !bytes.Equal(want, sum) {
		return refuse(OutputFile, 0, ErrDigest, "expected %s, found %x", m.ContentDigest.SHA256, sum)
	}
	return nil
}
