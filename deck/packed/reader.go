package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// The limits that hold where Limits has none.
const (
	DefaultMaxBytes = 64 << 30
	DefaultMaxFiles = 16 << 20
)

// Limits say how much a file may declare. Nil and zero work.
type Limits struct {
	Bytes int64 // of all files together; DefaultMaxBytes when 0
	Files int64 // DefaultMaxFiles when 0
}

// A File is one entry. Its content is what the Reader gives until io.EOF.
type File struct {
	Name string
	Size int64
	Blob cas.Digest // what the content hashes to; zero where the entry is no blob
}

// A Reader takes a packed recording apart. It must be closed. It is for one goroutine, and starts none.
type Reader struct {
	z     *frames
	index *Index
	left  Index // what is still to come

	last string
	cur  *File
	rest int64 // of cur
	hash *cas.Hasher
	err  error
}

// NewReader reads the index of the packed recording that is the size bytes of r, and checks that r is frames, a table and nothing else.
func NewReader(r io.ReaderAt, size int64, limits *Limits) (*Reader, error) {
	return newReader(r, size, limits, minFrame)
}

func newReader(r io.ReaderAt, size int64, limits *Limits, frame int64) (*Reader, error) {
	if err := checkFrames(r, size); err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	p := &Reader{}
	p.z = &frames{z: z, r: r, size: size, min: frame, begin: p.begin}
	if err := p.readIndex(limits); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// begin is what a frame begins with, where it may begin: before a header, or in a content.
func (p *Reader) begin() (n node, ok bool) {
	if p.cur == nil {
		return n, p.z.fresh
	}
	n = node{Name: p.cur.Name, From: p.cur.Size - p.rest, Of: p.cur.Size}
	return n, n.From > 0 && p.rest > 0
}

// Close frees what the reader holds.
func (p *Reader) Close() { p.z.z.Close() }

// Index returns what the file declares.
func (p *Reader) Index() Index { return *p.index }

func (p *Reader) readIndex(limits *Limits) error {
	var h [block]byte
	p.z.fresh = true
	if _, err := io.ReadFull(p.z, h[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrNotPacked
	} else if err != nil {
		return p.cut(err)
	}
	name, size, err := parseHeader(&h)
	if err != nil || name != indexName || size > maxIndex {
		return ErrNotPacked
	}
	b := make([]byte, size+padding(size))
	if err := p.full(b); err != nil {
		return err
	}
	if !zero(b[size:]) {
		return fmt.Errorf("%w: bytes in a padding", ErrDamaged)
	}
	if p.index, err = decodeIndex(b[:size]); errors.Is(err, ErrFormat) {
		return p.refused(err)
	} else if err != nil {
		return err
	}
	p.left = *p.index
	var l Limits
	if limits != nil {
		l = *limits
	}
	err = errors.Join(over("bytes", p.left.Bytes, l.Bytes, DefaultMaxBytes), over("files", p.left.Files, l.Files, DefaultMaxFiles))
	if err != nil {
		return p.refused(err)
	}
	return nil
}

func over(what string, have, limit, byDefault int64) error {
	if limit == 0 {
		limit = byDefault
	}
	if have > limit {
		return &LimitError{what, have, limit}
	}
	return nil
}

// Next returns the next entry; what was not read of the one before is skipped, and checked all the same. Behind the last
// it returns io.EOF, and only then the file is known to hold.
func (p *Reader) Next() (*File, error) {
	if p.err == nil && p.cur != nil {
		if _, err := io.Copy(io.Discard, p); err != nil {
			return nil, err
		}
		p.cur = nil
	}
	if p.err == nil {
		p.err = p.advance()
	}
	return p.cur, p.err
}

func (p *Reader) advance() error {
	var h [block]byte
	p.z.fresh = true
	if err := p.full(h[:]); err != nil {
		return err
	}
	if h == [block]byte{} {
		return p.end()
	}
	name, size, err := parseHeader(&h)
	if err != nil {
		return err
	}
	if err := CheckName(name); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if name <= p.last {
		return fmt.Errorf("%w: %q stands behind %q", ErrDamaged, name, p.last)
	}
	if p.left.Files--; p.left.Files < 0 || size > p.left.Bytes {
		return fmt.Errorf("%w: %q is more than its index declares", ErrDamaged, name)
	}
	p.left.Bytes -= size
	if err := p.z.named(name, size); err != nil {
		return err
	}
	p.last, p.rest = name, size
	p.cur = &File{Name: name, Size: size}
	p.cur.Blob, _ = BlobOf(name) // CheckName has looked
	p.hash = nil
	if !p.cur.Blob.IsZero() {
		p.hash = cas.NewHasher()
	}
	return nil
}

// Read implements io.Reader for the content of the current entry.
func (p *Reader) Read(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	if p.cur == nil {
		return 0, io.EOF
	}
	if p.rest == 0 {
		if p.err = p.endOfEntry(); p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n, err := p.z.Read(b[:min(int64(len(b)), p.rest)])
	p.rest -= int64(n)
	if p.hash != nil {
		p.hash.Write(b[:n])
	}
	if err != nil && p.rest > 0 {
		p.err = p.cut(err)
		return n, p.err
	}
	return n, nil
}

// endOfEntry checks what stands behind a content, and that a blob is what its name says. It is called once an entry.
func (p *Reader) endOfEntry() error {
	f := p.cur
	p.cur = nil
	b := make([]byte, padding(f.Size))
	if err := p.full(b); err != nil {
		return err
	}
	if !zero(b) {
		return fmt.Errorf("%w: bytes in the padding of %s", ErrDamaged, f.Name)
	}
	if p.hash == nil {
		return nil
	}
	if got := p.hash.Sum(); got != f.Blob {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, f.Name, &cas.CorruptError{Digest: f.Blob, Got: got})
	}
	return nil
}

// end checks the second half of the end, that nothing is missing and that nothing follows.
func (p *Reader) end() error {
	var b [block]byte
	if err := p.full(b[:]); err != nil {
		return err
	}
	if b != [block]byte{} || p.left.Files != 0 || p.left.Bytes != 0 {
		return fmt.Errorf("%w: its index declares %d more files and %d more bytes than it has", ErrDamaged, p.left.Files, p.left.Bytes)
	}
	if n, err := p.z.Read(b[:]); n > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	return p.z.end()
}

func (p *Reader) full(b []byte) error {
	if _, err := io.ReadFull(p.z, b); err != nil {
		return p.cut(err)
	}
	return nil
}

// cut is the error of a stream that ends, or does not decode, where more is due.
func (p *Reader) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut short %s", ErrDamaged, p.where())
	}
	return fmt.Errorf("%w: %s: %w", ErrDamaged, p.where(), err)
}

func (p *Reader) where() string {
	switch {
	case p.index == nil:
		return "in its index"
	case p.cur != nil:
		return "in " + p.cur.Name
	case p.last != "":
		return "behind " + p.last
	}
	return "behind its index"
}

// maxChecked bounds how much, in bytes, is decoded of a file that is refused for what it declares, to tell a damaged one.
const maxChecked = 1 << 30

// refused returns why, what the index declares, unless the file is damaged: then nobody declared that.
func (p *Reader) refused(why error) error {
	if _, err := io.CopyN(io.Discard, p.z, maxChecked); err != nil && !errors.Is(err, io.EOF) {
		return p.cut(err)
	}
	return why
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// The types of a zstd block (RFC 8878, 3.1.1.2).
const (
	blockRaw, blockRLE, blockCompressed = 0, 1, 2
)

// Magic is what every packed recording begins with, as every zstd frame does.
const Magic = "\x28\xb5\x2f\xfd"

// unusedBit is the bit of a frame's header that a decoder ignores (RFC 8878, 3.1.1.1.1.3).
const unusedBit = 1 << 4

// checkFrames walks the blocks of the size bytes of r, without decoding them, and refuses what is not frames and a table. What the table says
// is checked at the end.
func checkFrames(r io.ReaderAt, size int64) error {
	at, err := endOfFrame(r, 0, size)
	for err == nil && at < size {
		var end int64
		if end, err = endOfFrame(r, at, size); errors.Is(err, errSkippable) {
			return nil
		}
		at = end
	}
	return err
}

// errSkippable is returned where a part of the table stands in place of a frame.
var errSkippable = errors.New("a skippable frame")

// endOfFrame returns where the frame that begins at at ends.
func endOfFrame(r io.ReaderAt, at, size int64) (int64, error) {
	head := make([]byte, zstd.HeaderMaxSize)
	n, err := r.ReadAt(head, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	switch head = head[:n]; {
	case at > 0 && n >= skipHead && string(head[:len(skippable)]) == skippable:
		return 0, errSkippable
	case n < len(Magic) || string(head[:len(Magic)]) != Magic:
		if at > 0 {
			return 0, fmt.Errorf("%w: no frame is at byte %d, where one is due", ErrDamaged, at)
		}
		return 0, ErrNotPacked
	}
	var h zstd.Header
	if err := h.Decode(head); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if head[len(Magic)]&unusedBit != 0 || h.DictionaryID != 0 || h.WindowSize > window || !h.HasCheckSum {
		return 0, fmt.Errorf("%w: it is compressed otherwise than pack does", ErrNotPacked)
	}
	end, err := endOfBlocks(r, at+int64(h.HeaderSize))
	if err != nil {
		return 0, err
	}
	const checksum = 4
	if end += checksum; end > size {
		return 0, fmt.Errorf("%w: it is cut short at byte %d of %d", ErrDamaged, size, end)
	}
	return end, nil
}

// endOfBlocks returns where the blocks that begin at at end.
func endOfBlocks(r io.ReaderAt, at int64) (int64, error) {
	var b [4]byte
	for {
		if n, err := r.ReadAt(b[:3], at); n < 3 {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: it is cut short: nothing is at byte %d, where a block is due", ErrDamaged, at)
			}
			return 0, err
		}
		head := binary.LittleEndian.Uint32(b[:])
		length := int64(head >> 3)
		switch head >> 1 & 3 {
		case blockRaw, blockCompressed:
		case blockRLE:
			length = 1
		default:
			return 0, fmt.Errorf("%w: no block is at byte %d, where one is due", ErrDamaged, at)
		}
		at += 3 + length
		if head&1 != 0 {
			return at, nil
		}
	}
}
