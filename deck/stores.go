package deck

import (
	"io"
	"iter"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A layeredStore adds to top what below does not have: a replay keeps what is new in its own store, and reads the
// recording's.
type layeredStore struct {
	top, below cas.Store
}

// has reports whether below holds d. Whether its bytes hold is found out by whoever reads them.
func (s *layeredStore) has(d cas.Digest) bool {
	_, err := s.below.Size(d)
	return err == nil
}

func (s *layeredStore) Put(b []byte) (cas.Digest, error) {
	if d := cas.Sum(b); s.has(d) {
		return d, nil
	}
	return s.top.Put(b)
}

func (s *layeredStore) PutReader(r io.Reader) (cas.Digest, int64, error) { return s.top.PutReader(r) }

func (s *layeredStore) Get(d cas.Digest) ([]byte, error) {
	b, err := s.top.Get(d)
	if isMissing(err) {
		return s.below.Get(d)
	}
	return b, err
}

func (s *layeredStore) Open(d cas.Digest) (io.ReadCloser, error) {
	r, err := s.top.Open(d)
	if isMissing(err) {
		return s.below.Open(d)
	}
	return r, err
}

func (s *layeredStore) Size(d cas.Digest) (int64, error) {
	n, err := s.top.Size(d)
	if isMissing(err) {
		return s.below.Size(d)
	}
	return n, err
}

// All lists what top holds: what was added.
func (s *layeredStore) All() iter.Seq2[cas.Digest, error] { return s.top.All() }
