package packed

import (
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// NewWriterOf is NewWriter with frames of another length.
func NewWriterOf(w io.Writer, ix *Index, frame int64) (*Writer, error) {
	return newWriter(w, ix, &frameLimits{frame, frame, frame, frame})
}

// WithRoot puts a root of a table behind frames.
func WithRoot(frames, text []byte) []byte {
	return appendSkippable(append([]byte(nil), frames...), rootText(text))
}

// RootOf is the digest of such a root.
func RootOf(text []byte) cas.Digest { return cas.Sum(rootText(text)) }
