package scrub

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

const (
	// maxUnpacked bounds in bytes what is looked through of a compressed text; what has more cannot be scanned.
	maxUnpacked = 1 << 30
	// maxStored bounds in bytes what is stored of one in which a secret lies.
	maxStored = 64 << 20
)

// errUnpacked says that a compressed text has more than maxUnpacked bytes.
var errUnpacked = errors.New("scrub: it decompresses to too much")

// unpacked returns what b decompresses to, scrubbed, behind a line with a placeholder of b. found is false where b is not
// compressed, does not decompress, or holds no secret. What is too long to be looked through counts as one that does:
// nothing of it is written but the placeholder. left is how many bytes may be looked through, and then how many are left.
func unpacked(m *memory, b []byte, left *int64) (out []byte, found bool) {
	unpack := unpacker(b)
	if unpack == nil {
		return nil, false
	}
	var kept bytes.Buffer
	w := &Writer{m: m, w: &limited{&kept, maxStored}} // which learns nothing, as Bytes does
	limit := &limited{w, *left}
	err := unpack(limit)
	*left = max(limit.n, 0)
	errClose := w.Close()
	if !w.Found() && !errors.Is(err, errUnpacked) {
		return nil, false
	}
	out = append([]byte(m.key.placeholder("packed", b)), '\n')
	m.count([]span{{rule: "packed"}})
	if errors.Is(err, errUnpacked) || errClose != nil {
		return out, true
	}
	return append(out, kept.Bytes()...), true
}

// limited passes on n bytes and fails after them.
type limited struct {
	w io.Writer
	n int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.n -= int64(len(p)); l.n < 0 {
		return 0, errUnpacked
	}
	return l.w.Write(p)
}

// unpacker returns what writes b to a Writer decompressed, nil where b does not begin as something compressed does. What
// decompresses before the first damage is written.
func unpacker(b []byte) func(io.Writer) error {
	switch {
	case len(b) > 10 && bytes.HasPrefix(b, []byte{0x1f, 0x8b, 8}):
		return func(w io.Writer) error {
			r, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return err
			}
			_, err = io.Copy(w, r)
			return err
		}
	case isZlib(b):
		return func(w io.Writer) error { return inflate(w, bytes.NewReader(b)) }
	case bytes.HasPrefix(b, []byte("PACK\x00\x00\x00")):
		return func(w io.Writer) error { return unpackGit(w, b) }
	}
	return nil
}

// isZlib tells whether b begins as zlib does: deflate with a window of 32 KiB, at one of four levels, without a dictionary.
func isZlib(b []byte) bool {
	return len(b) > 6 && b[0] == 0x78 && bytes.IndexByte([]byte{0x01, 0x5e, 0x9c, 0xda}, b[1]) >= 0
}

// inflate writes one zlib stream, and leaves r behind it.
func inflate(w io.Writer, r flate.Reader) error {
	z, err := zlib.NewReader(r)
	if err != nil {
		return err
	}
	if _, err = io.Copy(w, z); err != nil {
		return err
	}
	return z.Close()
}

// unpackGit writes the objects of a pack, a line end after each. Of one that is stored as a difference to another that is
// the difference: what it adds stands in it in pieces of 127 bytes at most.
func unpackGit(w io.Writer, b []byte) error {
	const header = 12
	if len(b) < header {
		return io.ErrUnexpectedEOF
	}
	r := bytes.NewReader(b[header:])
	for range binary.BigEndian.Uint32(b[8:]) {
		if err := skipObjectHeader(r); err != nil {
			return err
		}
		if err := inflate(w, r); err != nil {
			return err
		}
		if _, err := w.Write([]byte{'\n'}); err != nil {
			return err
		}
	}
	return nil
}

// skipObjectHeader reads the type and length of an object, and what a difference is to.
func skipObjectHeader(r *bytes.Reader) error {
	const (
		offsetDelta = 6
		refDelta    = 7
		digest      = 20 // bytes of SHA-1
	)
	first, err := binary.ReadUvarint(r)
	switch {
	case err != nil:
	case first>>4&7 == offsetDelta:
		_, err = binary.ReadUvarint(r)
	case first>>4&7 == refDelta:
		_, err = r.Seek(digest, io.SeekCurrent)
	}
	return err
}

// inParts returns b with what holds a secret in a compressed part of it decompressed and scrubbed, where b is the body of a
// form: a file that is uploaded. found is false where there is none, and then out is b. All parts together may have left bytes
// decompressed, from which what was looked through is taken away.
func inParts(m *memory, b []byte, left *int64) (out []byte, found bool) {
	done := 0 // how much of b out stands for
	eachPart(b, between("", b), func(_ []byte, start, end int) {
		if kept, packed := unpacked(m, b[start:end], left); packed {
			out = append(append(out, b[done:start]...), kept...)
			done = end
		}
	})
	if done == 0 {
		return b, false
	}
	return append(out, b[done:]...), true
}
