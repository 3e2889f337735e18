package packed

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// window is the zstd window that a Writer uses and the largest that a Reader allocates, in bytes.
const window = 8 << 20

// A Writer packs one recording. It is for one goroutine, and starts none.
type Writer struct {
	z     *zstd.Encoder
	left  Index // what is still due
	last  string
	err   error
	zeros [2 * block]byte
	buf   []byte
}

// NewWriter writes the index to w. The entries that it declares must follow, then Close.
func NewWriter(w io.Writer, ix *Index) (*Writer, error) {
	// One goroutine and every setting spelled out: what comes out must not depend on the machine.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(true), zstd.WithLowerEncoderMem(false))
	if err != nil {
		return nil, err
	}
	p := &Writer{z: z, left: *ix, buf: make([]byte, 128<<10)}
	p.left.Format = Format
	head, err := p.left.encode()
	if err != nil {
		return nil, err
	}
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
	if p.err != nil {
		return p.err
	}
	h := header(name, size)
	if _, p.err = p.z.Write(h[:]); p.err != nil {
		return p.err
	}
	// One byte more than is due: a blob's reader says at its end alone that the bytes are not the blob's. The wrapper keeps
	// the encoder from reading by itself, in pieces of its own.
	n, err := io.CopyBuffer(struct{ io.Writer }{p.z}, io.LimitReader(r, size+1), p.buf)
	if err == nil && n != size {
		err = fmt.Errorf("%s changed while it was packed: it had %d bytes", name, size)
	}
	if err == nil {
		_, err = p.z.Write(p.zeros[:padding(size)])
	}
	p.err = err
	return err
}

// Close ends the file. It fails where the entries were not those that the index declares.
func (p *Writer) Close() error {
	if p.err == nil && (p.left.Files != 0 || p.left.Bytes != 0) {
		p.err = fmt.Errorf("%d files and %d bytes are missing of what the index declares", p.left.Files, p.left.Bytes)
	}
	if p.err == nil {
		_, p.err = p.z.Write(p.zeros[:])
	}
	if p.err != nil {
		p.z.Close() // frees; what was written is void
		return p.err
	}
	return p.z.Close()
}
