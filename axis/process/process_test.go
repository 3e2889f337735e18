package process_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

const secret = "correct-horse-battery-staple"

// newStream returns a stream that hides secret.
func newStream(store cas.Store) *process.Stream {
	s := scrub.New(scrub.Key{}, &scrub.Options{Env: []string{"API_TOKEN=" + secret}})
	return process.NewStream(store, s, masks.New(nil))
}

// finish returns what s kept, and its bytes.
func finish(t *testing.T, s *process.Stream, store cas.Store) (*process.Kept, []byte) {
	t.Helper()
	kept, err := s.Finish()
	if err != nil {
		t.Fatal(err)
	}
	b, err := kept.Payload.Bytes(store)
	if err != nil {
		t.Fatal(err)
	}
	return kept, b
}

var errFull = errors.New("full")

// fullStore takes nothing.
type fullStore struct{ cas.Store }

func (fullStore) Put([]byte) (cas.Digest, error) { return cas.Digest{}, errFull }

func (fullStore) PutReader(r io.Reader) (cas.Digest, int64, error) {
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		return cas.Digest{}, 0, err
	}
	return cas.Digest{}, 0, errFull
}

// slowStore takes a long blob only once proceed is closed, and says on begun that it was offered one.
type slowStore struct {
	cas.Store
	begun, proceed chan struct{}
}

func (s slowStore) PutReader(r io.Reader) (cas.Digest, int64, error) {
	close(s.begun)
	<-s.proceed
	return s.Store.PutReader(r)
}

// endless gives "y\n" without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, bytes.Repeat([]byte("y\n"), len(p)/2)), nil
}
