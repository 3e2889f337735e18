// Package spool keeps a stream whose length is not known beforehand as a payload, in bounded memory.
//
// Up to Limit bytes are held in memory; a longer stream goes to a blob as it comes, from its first byte on. What is short
// enough to stand in a record itself never reaches the store. What is written must have been scrubbed.
//
// Concurrency: a Spool is used by one goroutine at a time. Past Limit it has a goroutine of its own, which Finish ends.
package spool

import (
	"bytes"
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Limit is how much of a stream is held in memory, in bytes, before the whole goes to a blob.
const Limit = 1 << 20

// A Spool takes a stream. Finish must follow.
type Spool struct {
	store cas.Store
	buf   bytes.Buffer
	pipe  *io.PipeWriter // nil while everything is in buf
	put   chan result    // of the one goroutine that reads pipe; Finish waits for it

	done bool
	kept result // what Finish returned, once done
}

// result is what became of a stream.
type result struct {
	payload *tape.Payload
	err     error
}

// New returns a Spool that keeps a long stream in store.
func New(store cas.Store) *Spool { return &Spool{store: store} }

// Write takes b. The error is the store's, or io.ErrClosedPipe after Finish.
func (s *Spool) Write(b []byte) (int, error) {
	switch {
	case s.done:
		return 0, io.ErrClosedPipe
	case s.pipe != nil:
		return s.pipe.Write(b)
	}
	s.buf.Write(b)
	if s.buf.Len() <= Limit {
		return len(b), nil
	}
	s.startPut()
	if _, err := s.pipe.Write(s.buf.Bytes()); err != nil {
		return 0, err
	}
	s.buf = bytes.Buffer{}
	return len(b), nil
}

func (s *Spool) startPut() {
	r, w := io.Pipe()
	s.pipe, s.put = w, make(chan result, 1)
	go func() {
		d, n, err := s.store.PutReader(r)
		r.CloseWithError(err) // a store that gave up must not leave the writer waiting
		s.put <- result{tape.PayloadOf(d, n), err}
	}()
}

// Finish ends the stream and returns its payload, the same whenever it is called again. failed is why the stream is not
// whole, nil where it is. An error of Finish is then failed itself, and no blob of the beginning stays. Any other error is the
// store's.
func (s *Spool) Finish(failed error) (*tape.Payload, error) {
	if !s.done {
		s.done = true
		s.kept = s.finish(failed)
		s.buf = bytes.Buffer{}
	}
	return s.kept.payload, s.kept.err
}

func (s *Spool) finish(failed error) result {
	if s.pipe != nil {
		s.pipe.CloseWithError(failed)
		res := <-s.put
		if res.err != nil {
			return result{err: res.err}
		}
		return res
	}
	if failed != nil {
		return result{err: failed}
	}
	p, err := tape.MakePayload(s.store, s.buf.Bytes())
	return result{p, err}
}
