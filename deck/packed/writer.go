package packed

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// window is the zstd window that a Writer uses and the largest that a Reader allocates, in bytes.
const window = 8 << 20

// A Writer packs one recording. It is for one goroutine, and starts none.
type Writer struct {
	z     *zstd.Encoder
	out   frameWriter
	nodes []node       // the last is that of the frame that is being written
	limit *frameLimits // usualFrames, but for tests
	root  cas.Digest
	left  Index // what is still due
	last  string
	err   error
	zeros [2 * block]byte
	buf   []byte
}

// A frameWriter counts and hashes the bytes of a frame.
type frameWriter struct {
	w    io.Writer
	hash *cas.Hasher
	n    int64
}

func (f *frameWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	f.n += int64(n)
	f.hash.Write(b[:n])
	return n, err
}

// NewWriter writes the index to w. The entries that it declares must follow, then Close.
func NewWriter(w io.Writer, ix *Index) (*Writer, error) { return newWriter(w, ix, &usualFrames) }

func newWriter(w io.Writer, ix *Index, limit *frameLimits) (*Writer, error) {
	p := &Writer{out: frameWriter{w: w, hash: cas.NewHasher()}, limit: limit, left: *ix, buf: make([]byte, chunk)}
	// One goroutine and every setting spelled out: what comes out must not depend on the machine.
	z, err := zstd.NewWriter(&p.out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(true), zstd.WithLowerEncoderMem(false))
	if err != nil {
		return nil, err
	}
	p.z, p.left.Format = z, Format
	head, err := p.left.encode()
	if err != nil {
		return nil, err
	}
	p.nodes = make([]node, 1)
	return p, p.write(indexName, int64(len(head)), bytes.NewReader(head))
}

// Add writes the entry name, which is what r gives: exactly size bytes, or the entry and with it the file is void. Names
// come in ascending order.
func (p *Writer) Add(name string, size int64, r io.Reader) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if name <= p.last {
		return fmt.Errorf("%w: %q behind %q", ErrName, name, p.last)
	}
	p.last = name
	p.left.Files--
	p.left.Bytes -= size
	return p.write(name, size, r)
}

func (p *Writer) write(name string, size int64, r io.Reader) error {
	if last := &p.nodes[len(p.nodes)-1]; p.err == nil && (p.full() || last.inTape()) {
		p.err = p.cut(node{Name: name, Of: size})
	}
	if p.err == nil {
		h := header(name, size)
		p.err = p.put(h[:])
	}
	if p.err == nil {
		p.err = p.content(name, size, r)
	}
	if p.err == nil {
		p.err = p.put(p.zeros[:padding(size)])
	}
	return p.err
}

// content writes what an entry has, in pieces that do not depend on how r gives it: frames end between them.
func (p *Writer) content(name string, size int64, r io.Reader) error {
	// One byte more than is due: a blob's reader says at its end alone that the bytes are not the blob's.
	r = io.LimitReader(r, size+1)
	for at := int64(0); ; {
		n, err := io.ReadFull(r, p.buf)
		b := p.buf[:n]
		if at += int64(n); at > size || n < len(p.buf) && at != size {
			if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%s changed while it was packed: it had %d bytes", name, size)
			}
			return err
		}
		if p.full() && n > 0 && at > int64(n) {
			if err := p.cutIn(node{Name: name, From: at - int64(n), Of: size}, &b); err != nil {
				return err
			}
		}
		if err := p.put(b); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// cutIn ends the frame before b, the next bytes of an entry. That of a tape ends before the next record, whose number must be known and higher
// than that of the frame's first; what is before it is written, and taken from b.
func (p *Writer) cutIn(n node, b *[]byte) error {
	if n.Name != tapeEntry {
		return p.cut(n)
	}
	for rest := *b; ; {
		i := bytes.IndexByte(rest, '\n') + 1
		if i == 0 || len(rest)-i < maxSeqHead {
			return nil // in the next chunk, perhaps
		}
		rest = rest[i:]
		if seq, ok := seqOf(rest); ok && seq > p.nodes[len(p.nodes)-1].Seq {
			before := len(*b) - len(rest)
			if err := p.put((*b)[:before]); err != nil {
				return err
			}
			*b, n.Seq, n.From = rest, seq, n.From+int64(before)
			return p.cut(n)
		}
	}
}

// full reports whether the frame that is being written is to end where it may. What the encoder has given out depends on nothing but what it got:
// it gives a block as soon as that is full.
func (p *Writer) full() bool {
	out, raw := p.out.n, p.nodes[len(p.nodes)-1].Raw
	switch {
	case raw >= frameRaw:
		return out >= minFrame
	case p.last == tapeEntry && len(p.nodes) > 1:
		return out >= p.limit.tape
	case len(p.nodes) == 1 || p.nodes[len(p.nodes)-2].inTape():
		return out >= p.limit.first
	}
	return out >= p.limit.blobs && (raw < redundantBy*out || out >= p.limit.redundant)
}

func (p *Writer) put(b []byte) error {
	p.nodes[len(p.nodes)-1].Raw += int64(len(b))
	_, err := p.z.Write(b)
	return err
}

// cut ends a frame and begins the next.
func (p *Writer) cut(next node) error {
	if err := p.endFrame(); err != nil {
		return err
	}
	last := &p.nodes[len(p.nodes)-1]
	next.At = last.At + last.Size
	p.nodes = append(p.nodes, next)
	p.out.hash, p.out.n = cas.NewHasher(), 0
	p.z.Reset(&p.out)
	return nil
}

func (p *Writer) endFrame() error {
	err := p.z.Close()
	last := &p.nodes[len(p.nodes)-1]
	last.Size, last.Digest = p.out.n, p.out.hash.Sum()
	return err
}

// Close ends the file. It fails where the entries were not those that the index declares.
func (p *Writer) Close() error {
	if p.err == nil && (p.left.Files != 0 || p.left.Bytes != 0) {
		p.err = fmt.Errorf("%d files and %d bytes are missing of what the index declares", p.left.Files, p.left.Bytes)
	}
	if p.err == nil {
		p.err = p.put(p.zeros[:])
	}
	if err := p.endFrame(); p.err != nil || err != nil { // which frees, too; what was written is void
		return errors.Join(p.err, err)
	}
	last := p.nodes[len(p.nodes)-1]
	root, err := table(p.nodes, last.At+last.Size, func(b []byte) error {
		_, err := p.out.w.Write(b)
		return err
	})
	if err == nil {
		p.root = root
	}
	return err
}

// Table returns, once it is closed, the digest that a View asks for; the zero Digest for a file of one frame, which has no table.
func (p *Writer) Table() cas.Digest { return p.root }
