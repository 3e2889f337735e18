package cas

import (
	"bytes"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Memory is a Store that lives and dies with the process.
type Memory struct {
	mu    sync.RWMutex
	blobs map[Digest][]byte // never changed once put
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{blobs: map[Digest][]byte{}} }

// Put implements Store. It keeps a copy of b.
func (m *Memory) Put(b []byte) (Digest, error) {
	d := Sum(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.blobs[d]; !ok {
		m.blobs[d] = bytes.Clone(b)
	}
	return d, nil
}

// PutReader implements Store. A store in memory cannot keep its promise of bounded memory: the blob is held whole.
func (m *Memory) PutReader(r io.Reader) (Digest, int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return Digest{}, 0, err
	}
	d, err := m.Put(b)
	return d, int64(len(b)), err
}

// Get implements Store. The bytes are the caller's own.
func (m *Memory) Get(d Digest) ([]byte, error) {
	b, err := m.blob(d)
	return bytes.Clone(b), err
}

// Open implements Store.
func (m *Memory) Open(d Digest) (io.ReadCloser, error) {
	b, err := m.blob(d)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Size implements Store.
func (m *Memory) Size(d Digest) (int64, error) {
	b, err := m.blob(d)
	return int64(len(b)), err
}

func (m *Memory) blob(d Digest) ([]byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	b, ok := m.blobs[d]
	if !ok {
		return nil, &MissingError{Digest: d}
	}
	return b, nil
}

// All implements Store. It lists the blobs that were there when it began.
func (m *Memory) All() iter.Seq2[Digest, error] {
	return func(yield func(Digest, error) bool) {
		m.mu.RLock()
		all := slices.SortedFunc(maps.Keys(m.blobs), Digest.compare)
		m.mu.RUnlock()
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}
