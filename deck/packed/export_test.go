package packed

import (
	"bytes"
	"io"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// NewWriterOf is NewWriter with frames of another length.
func NewWriterOf(w io.Writer, ix *Index, frame int64) (*Writer, error) {
	return newWriter(w, ix, &frameLimits{frame, frame, frame, frame})
}

// NewReaderOf is NewReader for frames that a Writer of NewWriterOf makes.
func NewReaderOf(r io.ReaderAt, size int64, limits *Limits) (*Reader, error) {
	return newReader(r, size, limits, 512)
}

// WithRoot puts a root of a table behind frames.
func WithRoot(frames, text []byte) []byte {
	return appendSkippable(append([]byte(nil), frames...), rootText(text))
}

// WithTableOf puts the table of a Reader behind frames that it reads.
func WithTableOf(frames []byte) ([]byte, error) {
	p, err := newReader(bytes.NewReader(frames), int64(len(frames)), nil, 512)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for err == nil {
		_, err = p.Next()
	}
	b := slices.Clone(frames)
	_, errTable := table(p.z.nodes, int64(len(b)), func(part []byte) error { b = append(b, part...); return nil })
	return b, errTable
}

// WithTable puts a table behind frames, each of which holds raw bytes and begins with the entry of a name; at changes where the table says they
// lie. The digest is that of its root.
func WithTable(frames [][]byte, raw int64, name func(i int) string, at func(i int, at int64) int64) ([]byte, cas.Digest, error) {
	var b []byte
	var nodes []node
	for i, f := range frames {
		nodes = append(nodes, node{At: at(i, int64(len(b))), Size: int64(len(f)), Raw: raw, Digest: cas.Sum(f), Name: name(i)})
		b = append(b, f...)
	}
	root, err := table(nodes, int64(len(b)), func(part []byte) error { b = append(b, part...); return nil })
	return b, root, err
}

// RootOf is the digest of such a root.
func RootOf(text []byte) cas.Digest { return cas.Sum(rootText(text)) }

// Held is how many bytes of frames and how many pages a View holds.
func (v *View) Held() (frames int64, pages int) {
	for _, h := range v.held {
		frames += int64(cap(h.b))
	}
	return frames, len(v.pages)
}
