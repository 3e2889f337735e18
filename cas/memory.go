package cas

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Memory is a Store that lives and dies with the process.
type Memory struct {
	shards [memoryShards]memoryShard // by the first bits of a digest
}

const (
	// memoryShards is how many callers can put side by side.
	memoryShards = 16

	// memorySlab is how many bytes of short blobs stand in one piece of memory at most. The first piece of a shard is
	// memorySlabMin long, and each is twice as long as the one before.
	memorySlab, memorySlabMin = 256 << 10, 4 << 10
)

// A memoryShard holds a part of the blobs.
type memoryShard struct {
	mu    sync.Mutex
	blobs map[Digest]string
	slab  strings.Builder // where short blobs are copied to
	size  int             // of slab
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	m := &Memory{}
	for i := range m.shards {
		m.shards[i].blobs = map[Digest]string{}
	}
	return m
}

func (m *Memory) shard(d Digest) *memoryShard { return &m.shards[d[0]%memoryShards] }

// Put implements Store. It keeps a copy of b.
func (m *Memory) Put(b []byte) (Digest, error) {
	d := Sum(b)
	s := m.shard(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.blobs[d]; !ok {
		s.blobs[d] = s.keep(b)
	}
	return d, nil
}

// keep returns a copy of b. Short blobs share their memory, which costs less than a piece for each and stands until the
// whole store is dropped, as they do. A Builder gives memory that was not cleared before.
func (s *memoryShard) keep(b []byte) string {
	if len(b) > memorySlab/4 {
		return string(b)
	}
	if s.slab.Cap()-s.slab.Len() < len(b) {
		s.size = min(max(2*s.size, memorySlabMin, 2*len(b)), memorySlab)
		s.slab = strings.Builder{}
		s.slab.Grow(s.size)
	}
	at := s.slab.Len()
	s.slab.Write(b)
	return s.slab.String()[at:]
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
	if err != nil {
		return nil, err
	}
	return []byte(b), nil
}

// Open implements Store.
func (m *Memory) Open(d Digest) (io.ReadCloser, error) {
	b, err := m.blob(d)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader(b)), nil
}

// Size implements Store.
func (m *Memory) Size(d Digest) (int64, error) {
	b, err := m.blob(d)
	return int64(len(b)), err
}

func (m *Memory) blob(d Digest) (string, error) {
	s := m.shard(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[d]
	if !ok {
		return "", &MissingError{Digest: d}
	}
	return b, nil
}

// All implements Store. It lists the blobs that were there when it began.
func (m *Memory) All() iter.Seq2[Digest, error] {
	return func(yield func(Digest, error) bool) {
		var all []Digest
		for i := range m.shards {
			all = m.shards[i].appendAll(all)
		}
		slices.SortFunc(all, Digest.compare)
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (s *memoryShard) appendAll(all []Digest) []Digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.blobs {
		all = append(all, d)
	}
	return all
}

// A Store keeps blobs under their digests. All methods may be called by several goroutines at once.
type Store interface {
	// Put stores b and returns its digest. A blob that is there already is not written again.
	Put(b []byte) (Digest, error)
	// PutReader stores everything that r gives, in memory that does not grow with it, and returns its digest and length in
	// bytes.
	PutReader(r io.Reader) (Digest, int64, error)
	// Get returns the whole blob, verified. The error is a *MissingError, a *CorruptError, or the file system's.
	Get(d Digest) ([]byte, error)
	// Open streams the blob. Its last Read gives a *CorruptError in place of io.EOF where the bytes do not hash to d.
	Open(d Digest) (io.ReadCloser, error)
	// Size returns the length of the blob in bytes without reading it, or a *MissingError.
	Size(d Digest) (int64, error)
	// All lists the digests of the store in ascending order. Names that are no digest are not listed.
	All() iter.Seq2[Digest, error]
}

// A MissingError says that a blob that something names is not in the store.
type MissingError struct {
	Digest Digest
}

func (e *MissingError) Error() string { return fmt.Sprintf("blob %s is missing", e.Digest) }

// A CorruptError says that the bytes of a blob do not hash to its name.
type CorruptError struct {
	Digest Digest // the name
	Got    Digest // what the bytes hash to
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("blob %s is damaged: its bytes hash to %s", e.Digest, e.Got)
}

// Copy brings a blob of one store into another: by a hard link where both are directories (see Dir.Link for what is taken on
// trust then), else in bounded memory. Within one store it does nothing. A blob that from does not
// hold is a *MissingError, or fs.ErrNotExist where a link is tried; other errors are those of either store.
func Copy(to, from Store, d Digest) error {
	if to == from {
		return nil
	}
	dir, ok := to.(*Dir)
	source, also := from.(*Dir)
	if ok && also {
		_, err := dir.Link(d, source.Path(d))
		return err
	}
	r, err := from.Open(d)
	if err != nil {
		return err
	}
	defer r.Close()
	_, _, err = to.PutReader(r)
	return err
}
