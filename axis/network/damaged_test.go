package network

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// TestDamagedAnswer sees an answer whose blob is missing or changed reach the Book, so that a replay is not compared.
func TestDamagedAnswer(t *testing.T) {
	long := strings.Repeat("a long answer ", 1000)
	for _, tt := range []struct {
		name   string
		blobs  func(cas.Store) cas.Store
		status int // of the answer to the program; its body is cut where it is 200
		count  int
	}{
		{"sound", func(s cas.Store) cas.Store { return s }, 200, 0},
		{"missing", func(cas.Store) cas.Store { return cas.NewMemory() }, 400, 1},
		{"changed", func(s cas.Store) cas.Store { return rotten{s} }, 200, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) }))
			ask(g.client("h1"), "GET", "https://api.example.com/v1", nil)
			hash := g.tap.exchanges()[0].Response.Hash
			book := g.tap.book()
			rp := replayRig(g, func(cfg *Config) { cfg.Book, cfg.Blobs = book, tt.blobs(cfg.Blobs) })
			got := ask(rp.client("h1"), "GET", "https://api.example.com/v1", nil)
			if got.status != tt.status || (string(got.body) == long) != (tt.count == 0) {
				t.Errorf("%d, %d bytes, %v", got.status, len(got.body), got.err)
			}
			damaged := book.Damaged()
			if len(damaged) != tt.count {
				t.Fatalf("%q", damaged)
			}
			for _, text := range damaged {
				if !strings.Contains(text, "record 0") || !strings.Contains(text, hash.Short()) {
					t.Error(text)
				}
			}
		})
	}
}

// TestDamagedText sees a short answer that was edited on the tape.
func TestDamagedText(t *testing.T) {
	g := newRig(t, upstreamOf(t, echo))
	ask(g.client("h1"), "POST", "https://api.example.com/v1", []byte("question"))
	g.tap.file.edit("question", "Question")
	book := g.tap.book()
	rp := replayRig(g, func(cfg *Config) { cfg.Book = book })
	got := ask(rp.client("h1"), "POST", "https://api.example.com/v1", []byte("question"))
	if got.status != http.StatusBadRequest || len(book.Damaged()) != 1 {
		t.Errorf("%d %s, %q", got.status, got.body, book.Damaged())
	}
}

// rotten is a store whose blobs have changed.
type rotten struct{ cas.Store }

func (s rotten) Open(d cas.Digest) (io.ReadCloser, error) {
	r, err := s.Store.Open(d)
	return readCloser{io.MultiReader(r, failing{&cas.CorruptError{Digest: d}}), r}, err
}

type readCloser struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
