// Package castest is the conformance suite of cas.Store, and a store that fails on purpose.
//
// Every store runs Conformance in its own tests. What only a store on a disk can get wrong (symlinks, killed writers,
// durability) is tested beside that store.
package castest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// Conformance checks that the stores which open makes, empty and one for each part, keep the promises of cas.Store.
func Conformance(t *testing.T, open func(t *testing.T) cas.Store) {
	for name, check := range map[string]func(*testing.T, cas.Store){
		"RoundTrip":   roundTrip,
		"PutTwice":    putTwice,
		"Missing":     missing,
		"All":         all,
		"OwnBytes":    ownBytes,
		"FailedInput": failedInput,
		"Concurrent":  concurrent,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// blobs are bytes of every size that a store could treat differently.
func blobs() [][]byte {
	random := rand.New(rand.NewChaCha8([32]byte{}))
	var all [][]byte
	for _, n := range []int{0, 1, 1023, 1024, 1025, 4096, 4097, 128 << 10, 1<<20 + 7} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		all = append(all, b)
	}
	return all
}

func roundTrip(t *testing.T, s cas.Store) {
	for _, want := range blobs() {
		d, err := s.Put(want)
		if err != nil || d != cas.Sum(want) {
			t.Fatalf("Put of %d bytes: %s, %v", len(want), d, err)
		}
		check(t, s, d, want)
		want = append(want, "streamed"...)
		d, n, err := s.PutReader(iotest.HalfReader(bytes.NewReader(want)))
		if err != nil || d != cas.Sum(want) || n != int64(len(want)) {
			t.Fatalf("PutReader of %d bytes: %s, %d, %v", len(want), d, n, err)
		}
		check(t, s, d, want)
	}
}

// check reads the blob in every way.
func check(t *testing.T, s cas.Store, d cas.Digest, want []byte) {
	t.Helper()
	if got, err := s.Get(d); err != nil || !bytes.Equal(got, want) {
		t.Errorf("Get: %d bytes of %d, %v", len(got), len(want), err)
	}
	if n, err := s.Size(d); err != nil || n != int64(len(want)) {
		t.Errorf("Size: %d of %d, %v", n, len(want), err)
	}
	r, err := s.Open(d)
	if err != nil {
		t.Errorf("Open: %v", err)
		return
	}
	got, err := io.ReadAll(iotest.OneByteReader(io.LimitReader(r, 100)))
	rest, restErr := io.ReadAll(r)
	if got = append(got, rest...); err != nil || restErr != nil || !bytes.Equal(got, want) {
		t.Errorf("Open: %d bytes of %d, %v, %v", len(got), len(want), err, restErr)
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func putTwice(t *testing.T, s cas.Store) {
	b := []byte("the same bytes")
	for range 2 {
		if d, err := s.Put(b); err != nil || d != cas.Sum(b) {
			t.Errorf("Put: %s, %v", d, err)
		}
		if d, n, err := s.PutReader(bytes.NewReader(b)); err != nil || d != cas.Sum(b) || n != int64(len(b)) {
			t.Errorf("PutReader: %s, %d, %v", d, n, err)
		}
	}
	check(t, s, cas.Sum(b), b)
	if all := list(t, s); len(all) != 1 {
		t.Errorf("stored as %v", all)
	}
}

func missing(t *testing.T, s cas.Store) {
	d := cas.Sum([]byte("never put"))
	_, getErr := s.Get(d)
	_, openErr := s.Open(d)
	_, sizeErr := s.Size(d)
	for _, err := range []error{getErr, openErr, sizeErr} {
		var missing *cas.MissingError
		if !errors.As(err, &missing) || missing.Digest != d || !strings.Contains(err.Error(), d.String()) {
			t.Errorf("got %v", err)
		}
	}
	if all := list(t, s); len(all) != 0 {
		t.Errorf("an empty store lists %v", all)
	}
}

func all(t *testing.T, s cas.Store) {
	var want []cas.Digest
	for i := range 50 {
		d, err := s.Put(fmt.Appendf(nil, "blob %d", i))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, d)
	}
	slices.SortFunc(want, func(a, b cas.Digest) int { return bytes.Compare(a[:], b[:]) })
	if got := list(t, s); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for range s.All() {
		break // a range that ends early must not go on
	}
}

func list(t *testing.T, s cas.Store) (all []cas.Digest) {
	t.Helper()
	for d, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// What the caller does to its bytes afterwards is none of the store's business.
func ownBytes(t *testing.T, s cas.Store) {
	want := []byte("these bytes")
	mine := bytes.Clone(want)
	d, err := s.Put(mine)
	if err != nil {
		t.Fatal(err)
	}
	clear(mine)
	got, err := s.Get(d)
	if err != nil {
		t.Fatal(err)
	}
	clear(got)
	check(t, s, d, want)
}

func failedInput(t *testing.T, s cas.Store) {
	cause := errors.New("input ends early")
	in := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(cause))
	if _, _, err := s.PutReader(in); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
	if all := list(t, s); len(all) != 0 {
		t.Errorf("half an input was stored: %v", all)
	}
}

func concurrent(t *testing.T, s cas.Store) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				want := fmt.Appendf(nil, "blob %d", (i+g)%20)
				d, err := s.Put(want)
				if g%2 == 1 {
					d, _, err = s.PutReader(bytes.NewReader(want))
				}
				if err != nil {
					t.Error(err)
				}
				check(t, s, d, want)
			}
		})
	}
	wg.Wait()
	if n := len(list(t, s)); n != 20 {
		t.Errorf("%d blobs, want 20", n)
	}
}

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
