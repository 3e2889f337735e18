package team

import (
	"bytes"
	"context"
	"io"
)

// Damage changes the packed recording of a run where it lies.
func (s *Store) Damage(ctx context.Context, run *Run, change func([]byte)) {
	r, err := s.blobs.Get(ctx, run.Digest, 0, -1)
	if err != nil {
		panic(err)
	}
	b, err := io.ReadAll(r)
	if r.Close(); err != nil {
		panic(err)
	}
	change(b)
	if err := s.blobs.Delete(ctx, run.Digest); err != nil {
		panic(err)
	}
	if err := s.blobs.Put(ctx, run.Digest, int64(len(b)), func() io.Reader { return bytes.NewReader(b) }); err != nil {
		panic(err)
	}
}

// LimitLook has Look write less, until the end is called.
func LimitLook(bytes, files int64) (end func()) {
	b, f := maxBytes, maxFiles
	maxBytes, maxFiles = bytes, files
	return func() { maxBytes, maxFiles = b, f }
}
