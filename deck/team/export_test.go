package team

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// CountReads counts the bytes that are read of blobs from now on.
func (s *Store) CountReads() *atomic.Int64 {
	c := &countedBlobs{Blobs: s.blobs}
	s.blobs = c
	return &c.n
}

type countedBlobs struct {
	Blobs
	n atomic.Int64
}

func (c *countedBlobs) Get(ctx context.Context, d cas.Digest, from, n int64) (io.ReadCloser, error) {
	r, err := c.Blobs.Get(ctx, d, from, n)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(r, c), r}, nil
}

func (c *countedBlobs) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}

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
