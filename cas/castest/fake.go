package castest

import (
	"io"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A Fake is a store in memory that fails where it is told to. The hooks are set before the store is shared; Lose and
// Damage may be called at any time.
type Fake struct {
	*cas.Memory

	// FailPut is asked before every Put and PutReader, which fail with its error. Nil never fails.
	FailPut func() error

	mu      sync.Mutex
	lost    map[cas.Digest]bool
	damaged map[cas.Digest]bool
}

// NewFake returns an empty store that does not fail yet.
func NewFake() *Fake {
	return &Fake{Memory: cas.NewMemory(), lost: map[cas.Digest]bool{}, damaged: map[cas.Digest]bool{}}
}

// Lose makes d missing.
func (f *Fake) Lose(d cas.Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost[d] = true
}

// Damage makes reading d end in a *cas.CorruptError.
func (f *Fake) Damage(d cas.Digest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.damaged[d] = true
}

// Put implements cas.Store.
func (f *Fake) Put(b []byte) (cas.Digest, error) {
	if err := f.failPut(); err != nil {
		return cas.Digest{}, err
	}
	return f.Memory.Put(b)
}

// PutReader implements cas.Store.
func (f *Fake) PutReader(r io.Reader) (cas.Digest, int64, error) {
	if err := f.failPut(); err != nil {
		return cas.Digest{}, 0, err
	}
	return f.Memory.PutReader(r)
}

func (f *Fake) failPut() error {
	if f.FailPut == nil {
		return nil
	}
	return f.FailPut()
}

// Get implements cas.Store.
func (f *Fake) Get(d cas.Digest) ([]byte, error) {
	if err := f.fault(d, true); err != nil {
		return nil, err
	}
	return f.Memory.Get(d)
}

// Open implements cas.Store. A damaged blob is found out at its end.
func (f *Fake) Open(d cas.Digest) (io.ReadCloser, error) {
	if err := f.fault(d, false); err != nil {
		return nil, err
	}
	rc, err := f.Memory.Open(d)
	if err != nil {
		return nil, err
	}
	return &faulty{ReadCloser: rc, atEnd: f.fault(d, true)}, nil
}

// Size implements cas.Store.
func (f *Fake) Size(d cas.Digest) (int64, error) {
	if err := f.fault(d, false); err != nil {
		return 0, err
	}
	return f.Memory.Size(d)
}

// fault returns what is wrong with d, its bytes included.
func (f *Fake) fault(d cas.Digest, bytes bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.lost[d]:
		return &cas.MissingError{Digest: d}
	case bytes && f.damaged[d]:
		return &cas.CorruptError{Digest: d}
	}
	return nil
}

// faulty gives an error in place of io.EOF.
type faulty struct {
	io.ReadCloser
	atEnd error
}

func (r *faulty) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if err == io.EOF && r.atEnd != nil {
		err = r.atEnd
	}
	return n, err
}
