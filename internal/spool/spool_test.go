package spool_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestSpool(t *testing.T) {
	for _, size := range []int{0, 1, tape.InlineLimit, tape.InlineLimit + 1, spool.Limit, spool.Limit + 1, 3 * spool.Limit} {
		store := cas.NewMemory()
		want := bytes.Repeat([]byte("x"), size)
		s := spool.New(store)
		for rest := want; len(rest) > 0; {
			n, err := s.Write(rest[:min(len(rest), 100_000)])
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		p, err := s.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Bytes(store)
		if err != nil || !bytes.Equal(got, want) || p.Len != int64(size) || p.Inline != (size <= tape.InlineLimit) {
			t.Errorf("%d bytes: %+v, %d bytes, %v", size, p.Len, len(got), err)
		}
		if again, err := s.Finish(errors.New("late")); again != p || err != nil {
			t.Errorf("%d bytes: a second Finish gives %v, %v", size, again, err)
		}
		if _, err := s.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%d bytes: Write after Finish: %v", size, err)
		}
	}
}

// TestFailed sees no blob of a stream that is not whole.
func TestFailed(t *testing.T) {
	for _, size := range []int{0, 1, 2 * spool.Limit} {
		store, cut := cas.NewMemory(), errors.New("cut")
		s := spool.New(store)
		if _, err := s.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Finish(cut); p != nil || !errors.Is(err, cut) {
			t.Errorf("%d bytes: %v, %v", size, p, err)
		}
		for d := range store.All() {
			t.Errorf("%d bytes: blob %s stays", size, d)
		}
	}
}

// fullStore takes no long blob.
type fullStore struct{ cas.Store }

var errFull = errors.New("full")

func (fullStore) PutReader(r io.Reader) (cas.Digest, int64, error) {
	_, err := io.CopyN(io.Discard, r, spool.Limit)
	return cas.Digest{}, 0, errors.Join(errFull, err)
}

func TestStoreFails(t *testing.T) {
	s := spool.New(fullStore{cas.NewMemory()})
	if _, err := s.Write(make([]byte, 2*spool.Limit)); !errors.Is(err, errFull) {
		t.Errorf("Write: %v", err)
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, errFull) {
		t.Errorf("next Write: %v", err)
	}
	if p, err := s.Finish(nil); p != nil || !errors.Is(err, errFull) {
		t.Errorf("Finish: %v, %v", p, err)
	}
}
