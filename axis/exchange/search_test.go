package exchange_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// A readStore counts the blobs that are read.
type readStore struct {
	cas.Store
	reads int
}

func (s *readStore) Get(d cas.Digest) ([]byte, error) {
	s.reads++
	return s.Store.Get(d)
}

func (s *readStore) Open(d cas.Digest) (io.ReadCloser, error) {
	s.reads++
	return s.Store.Open(d)
}

// TestSearchReadsOnce: bodies that many exchanges share are read once where they hold nothing, and again where they are
// read in another way.
func TestSearchReadsOnce(t *testing.T) {
	long := strings.Repeat("nothing in this text. ", 400)
	s := newScrubber()
	mark := s.Mark()
	clean := traffic{
		request: exchange.Request{Method: "POST", URL: "https://h/", Header: http.Header{}, Body: []byte(long)}, status: 200, chunks: []string{long + "!"},
	}
	store := &readStore{Store: cas.NewMemory()}
	r := clean.record(t, s, store)
	s.AddSecret("x_api_key", lateValue)
	search := exchange.NewSearch(store, s.Since(mark))
	store.reads = 0
	for range 5 {
		if found, err := search.Holds(r); found || err != nil {
			t.Fatalf("found: %t, %v", found, err)
		}
	}
	if store.reads != 2 {
		t.Errorf("%d reads, want one of the request and one of the answer", store.reads)
	}
	var packed bytes.Buffer
	w := brotli.NewWriter(&packed)
	io.WriteString(w, lateValue+long)
	w.Close()
	for _, encoding := range []string{"", "br"} {
		x := traffic{
			request: exchange.Request{Method: "GET", URL: "https://h/"}, status: 200, chunks: []string{packed.String()},
			header: http.Header{"Content-Encoding": {encoding}},
		}
		if found, err := search.Holds(x.record(t, newScrubber(), store)); err != nil || found != (encoding == "br") {
			t.Errorf("%q: found %t, %v", encoding, found, err)
		}
	}
}
