package process_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/internal/stopread"
)

// pipe returns a pipe that is closed with the test.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// newInput returns an Input that is stopped with the test.
func newInput(t *testing.T, from io.Reader) *stopread.Reader {
	t.Helper()
	in, err := stopread.New(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Stop)
	return in
}

func TestRelayOutput(t *testing.T) {
	store := cas.NewMemory()
	s := newStream(store)
	r, w := pipe(t)
	want := strings.Repeat("line\n", 100_000)
	go func() {
		io.WriteString(w, want)
		w.Close()
	}()
	var to strings.Builder
	if err := process.RelayOutput(&to, r, s); err != nil || to.String() != want {
		t.Errorf("passed %d bytes of %d: %v", to.Len(), len(want), err)
	}
	if _, b := finish(t, s, store); string(b) != want {
		t.Errorf("kept %d bytes of %d", len(b), len(want))
	}
	if _, err := r.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Error("the pipe is open still:", err)
	}
}

// TestRelayPassesWhatItCannotKeep gives the caller everything although the store fails in the middle.
func TestRelayPassesWhatItCannotKeep(t *testing.T) {
	s := newStream(fullStore{cas.NewMemory()})
	r, w := pipe(t)
	want := bytes.Repeat([]byte(secret), 4*spool.Limit/len(secret))
	go func() {
		w.Write(want)
		w.Close()
	}()
	var to bytes.Buffer
	if err := process.RelayOutput(&to, r, s); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if !bytes.Equal(to.Bytes(), want) {
		t.Errorf("passed %d bytes of %d", to.Len(), len(want))
	}
	if _, err := s.Finish(); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

func TestRelayInput(t *testing.T) {
	store := cas.NewMemory()
	s := newStream(store)
	r, w := pipe(t)
	done := make(chan error, 1)
	go func() { done <- process.RelayInput(w, newInput(t, strings.NewReader("to sort\n")), s) }()
	if b, err := io.ReadAll(r); string(b) != "to sort\n" || err != nil {
		t.Errorf("the program read %q, %v", b, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, b := finish(t, s, store); string(b) != "to sort\n" {
		t.Errorf("kept %q", b)
	}
}

// TestRelayInputOfEarlyCloser has a program that reads the beginning of a stdin that never ends: all that it read is kept.
func TestRelayInputOfEarlyCloser(t *testing.T) {
	store := cas.NewMemory()
	s := newStream(store)
	r, w := pipe(t)
	done := make(chan error, 1)
	go func() { done <- process.RelayInput(w, newInput(t, endless{}), s) }()
	read := make([]byte, 100_000)
	if _, err := io.ReadFull(r, read); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, b := finish(t, s, store); !bytes.HasPrefix(b, read) {
		t.Errorf("kept %d bytes, not what was read", len(b))
	}
}

// TestStoppedReaderReadsNoMore stops an Input that cannot be waited for.
func TestStoppedReaderReadsNoMore(t *testing.T) {
	in := newInput(t, endless{})
	if n, err := in.Read(make([]byte, 8)); n != 8 || err != nil {
		t.Error(n, err)
	}
	in.Stop()
	in.Stop()
	if n, err := in.Read(make([]byte, 8)); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Error(n, err)
	}
}
