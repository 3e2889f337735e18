package files

import (
	"bytes"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Staging is a store in front of another: contents that stand in a tape's records themselves (texts of at most
// tape.InlineLimit bytes) are kept in one file that has no name, all others go below. A run that writes many short files would
// else make a blob for each, which costs more than all the rest and which nothing names in the end.
//
// What a file beside the tape names (tree.json) must be put below. What is staged goes with Close, or with the process.
type Staging struct {
	below cas.Store

	mu  sync.RWMutex
	at  map[cas.Digest]span // guarded by mu
	end int64               // of file; guarded by mu
	// file is written at end by who holds mu, and read beside that.
	file *os.File
	path string // "" where it has no name any more
}

// span is where a content stands.
type span struct {
	from int64
	size int32
}

// NewStaging begins a staging in front of below; its file is made in dir, "" being that of the system for such files.
func NewStaging(below cas.Store, dir string) (*Staging, error) {
	f, err := os.CreateTemp(dir, durable.TempPrefix+"staged-*")
	if err != nil {
		return nil, err
	}
	s := &Staging{below: below, at: make(map[cas.Digest]span), file: f, path: f.Name()}
	if os.Remove(s.path) == nil {
		s.path = ""
	}
	return s, nil
}

// Close drops what is staged.
func (s *Staging) Close() error {
	err := s.file.Close()
	if s.path != "" {
		os.Remove(s.path) // some systems remove no open file
	}
	return err
}

// lasting returns where a store puts what a file beside the tape will name.
func lasting(store cas.Store) cas.Store {
	if s, ok := store.(*Staging); ok {
		return s.below
	}
	return store
}

// Put implements cas.Store.
func (s *Staging) Put(b []byte) (cas.Digest, error) {
	if len(b) > tape.InlineLimit || !utf8.Valid(b) {
		return s.below.Put(b)
	}
	d := cas.Sum(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.at[d]; ok {
		return d, nil
	}
	if _, err := s.file.WriteAt(b, s.end); err != nil {
		return d, err
	}
	s.at[d] = span{s.end, int32(len(b))}
	s.end += int64(len(b))
	return d, nil
}

// PutReader implements cas.Store. What comes piece by piece goes below.
func (s *Staging) PutReader(r io.Reader) (cas.Digest, int64, error) { return s.below.PutReader(r) }

// Get implements cas.Store.
func (s *Staging) Get(d cas.Digest) ([]byte, error) {
	at, ok := s.find(d)
	if !ok {
		return s.below.Get(d)
	}
	return s.read(nil, d, at)
}

// read reads what stands at a place into an empty b where that has room.
func (s *Staging) read(b []byte, d cas.Digest, at span) ([]byte, error) {
	b = slices.Grow(b, int(at.size))[:at.size]
	if _, err := s.file.ReadAt(b, at.from); err != nil {
		return b, err
	}
	if got := cas.Sum(b); got != d {
		return b, &cas.CorruptError{Digest: d, Got: got}
	}
	return b, nil
}

// Open implements cas.Store.
func (s *Staging) Open(d cas.Digest) (io.ReadCloser, error) {
	if _, ok := s.find(d); !ok {
		return s.below.Open(d)
	}
	b, err := s.Get(d)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Size implements cas.Store.
func (s *Staging) Size(d cas.Digest) (int64, error) {
	if at, ok := s.find(d); ok {
		return int64(at.size), nil
	}
	return s.below.Size(d)
}

func (s *Staging) find(d cas.Digest) (span, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at, ok := s.at[d]
	return at, ok
}

// All implements cas.Store.
func (s *Staging) All() iter.Seq2[cas.Digest, error] {
	return func(yield func(cas.Digest, error) bool) {
		s.mu.RLock()
		all := make([]cas.Digest, 0, len(s.at))
		for d := range s.at {
			all = append(all, d)
		}
		s.mu.RUnlock()
		for d, err := range s.below.All() {
			if err != nil {
				yield(d, err)
				return
			}
			all = append(all, d)
		}
		slices.SortFunc(all, func(a, b cas.Digest) int { return bytes.Compare(a[:], b[:]) })
		for _, d := range slices.Compact(all) {
			if !yield(d, nil) {
				return
			}
		}
	}
}
