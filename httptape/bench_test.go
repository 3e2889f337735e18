package httptape_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/httptape"
)

const (
	benchAsk    = `{"model":"m","messages":[{"role":"user","content":"say hello to everybody in this room"}]}`
	benchAnswer = `{"choices":[{"message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":7}}`
)

func ask(b *testing.B, c *http.Client, url string) {
	res, err := c.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(benchAsk))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		b.Fatal(err)
	}
	res.Body.Close()
}

// BenchmarkServer is what a replay is measured by: net/http to a server of this process.
func BenchmarkServer(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, benchAnswer)
	}))
	defer srv.Close()
	for b.Loop() {
		ask(b, srv.Client(), srv.URL)
	}
}

// BenchmarkReplay answers a call of a model from the tape.
func BenchmarkReplay(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bench")
	srv := httptest.NewServer(say(benchAnswer))
	tr := open(b, path, nil)
	ask(b, tr.Client(), srv.URL)
	closed(b, tr)
	srv.Close()
	tr = open(b, path, &httptape.Options{Repeat: true})
	for b.Loop() {
		ask(b, tr.Client(), srv.URL)
	}
	closed(b, tr)
}

// BenchmarkRecord sends requests on and records them; Close is not counted.
func BenchmarkRecord(b *testing.B) {
	srv := httptest.NewServer(say(benchAnswer))
	defer srv.Close()
	tr := open(b, filepath.Join(b.TempDir(), "bench"), nil)
	for n := 0; b.Loop(); n++ {
		get(b, tr.Client(), fmt.Sprintf("%s/%d", srv.URL, n))
	}
	tr.Discard()
	closed(b, tr)
}

// BenchmarkOpen reads a tape of so many exchanges.
func BenchmarkOpen(b *testing.B) {
	const exchanges = 100
	path := filepath.Join(b.TempDir(), "bench")
	srv := httptest.NewServer(say(benchAnswer))
	tr := open(b, path, nil)
	for i := range exchanges {
		get(b, tr.Client(), fmt.Sprintf("%s/%d", srv.URL, i))
	}
	closed(b, tr)
	srv.Close()
	for b.Loop() {
		tr, err := httptape.Open(path, &httptape.Options{AllowUnasked: true})
		if err != nil {
			b.Fatal(err)
		}
		closed(b, tr)
	}
}
