//go:build programs

package programs

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// host is the name under which the programs find their upstream; nothing else in the world answers for it.
const host = "web.example.test"

// events is the number of chunks of /stream.
const events = 300

func TestMain(m *testing.M) { run.Main(m) }

// web is the upstream of everything but git.
func web() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /item/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "item %s\n", r.PathValue("name"))
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		io.Copy(w, r.Body)
	})
	mux.HandleFunc("GET /stream", stream)
	mux.HandleFunc("GET /cut", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "the first half")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // breaks the connection; the server recovers it
	})
	return mux
}

// stream sends events, compressed where the client takes that, each flushed.
func stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	var out io.Writer = w
	flush := http.NewResponseController(w).Flush
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		gz := gzip.NewWriter(w)
		defer gz.Close()
		out, flush = gz, func() error { gz.Flush(); return http.NewResponseController(w).Flush() }
	}
	for i := range events {
		fmt.Fprintf(out, "data: event %d\n\n", i)
		flush()
	}
}

// streamed is the body of /stream.
func streamed() string {
	var b strings.Builder
	for i := range events {
		fmt.Fprintf(&b, "data: event %d\n\n", i)
	}
	return b.String()
}

// record runs a program against a handler that is gone when record returns.
func record(t *testing.T, b *run.Box, h http.Handler, argv ...string) run.Result {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	return b.Record(map[string]string{host: server.URL}, argv...)
}

// wantGreen replays the recording and wants it faithful.
func wantGreen(t *testing.T, b *run.Box) {
	t.Helper()
	report, res := b.Replay()
	if res.Status != 0 || report == nil || len(report.Divergences) > 0 {
		t.Errorf("replay: %v", res)
	}
	if res := b.Verify(); res.Status != 0 {
		t.Errorf("verify: %v", res)
	}
}
