package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A benchCall is a model call as SDKs send it.
type benchCall struct {
	Model     string           `json:"model"`
	MaxTokens int              `json:"max_tokens"`
	System    string           `json:"system"`
	Messages  []map[string]any `json:"messages"`
}

// benchBody is request n of about size bytes. No two are equal.
func benchBody(b testing.TB, n, size int) []byte {
	b.Helper()
	c := benchCall{Model: "model", MaxTokens: 1024, System: "You are an agent."}
	for i := 0; size > 0; i++ {
		text := fmt.Sprintf("request %d, turn %d: %s", n, i, strings.Repeat("some words \"quoted\",\n", 40)[:min(size, 800)])
		size -= len(text) + 40
		c.Messages = append(c.Messages, map[string]any{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	body, err := json.Marshal(c)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// serveJSON is what a replayed answer competes with: a server that decodes the request and encodes the same JSON.
func serveJSON(w http.ResponseWriter, r *http.Request) {
	var c benchCall
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(c)
}

// benchTap is a Tap as a run has it: files on the disk, a classifier of model calls with masks, a scrubber with secrets.
type benchTap struct {
	*exchange.Tap
	path  string
	store *cas.Dir
	class *llm.Classifier
}

func newBenchTap(b testing.TB, replay bool) *benchTap {
	b.Helper()
	dir := b.TempDir()
	t := &benchTap{path: filepath.Join(dir, "run.tape"), class: llm.NewClassifier(masks.New(nil))}
	f, err := os.Create(t.path)
	if err != nil {
		b.Fatal(err)
	}
	if t.store, err = cas.OpenDir(t.path+tape.StoreSuffix, nil); err != nil {
		b.Fatal(err)
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: "test"})
	if err != nil {
		b.Fatal(err)
	}
	opts := &exchange.TapOptions{Replay: replay, Closed: replay}
	if !replay {
		opts.PartDir = filepath.Join(dir, "parts")
	}
	secrets := scrub.New(scrub.Key{}, &scrub.Options{Env: []string{"SOME_API_KEY=zq7Xw2Lk9Vb4Nm6Tr8Yp"}})
	t.Tap = exchange.NewTap(tape.NewRecorder(w, &tape.RecorderOptions{Store: t.store}), t.class, secrets, opts)
	b.Cleanup(func() { f.Close() })
	return t
}

// records are those of its tape.
func (t *benchTap) records(b testing.TB) iter.Seq2[*tape.Record, error] {
	b.Helper()
	f, err := tape.Open(t.path, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f.Records()
}

// replayOf is a rig that answers from what t recorded.
func (t *benchTap) replayOf(b testing.TB, change func(*Config)) *rig {
	b.Helper()
	book, err := exchange.NewBook(t.records(b), t.class, t.store)
	if err != nil {
		b.Fatal(err)
	}
	return newRig(b, func(cfg *Config) {
		cfg.Tap, cfg.Book, cfg.Blobs = newBenchTap(b, true).Tap, book, t.store
		if change != nil {
			change(cfg)
		}
	})
}

// recordBench records what handler answers to n requests of about size bytes.
func recordBench(b testing.TB, n, size int, handler http.HandlerFunc) *benchTap {
	b.Helper()
	t := newBenchTap(b, false)
	g := newRig(b, func(cfg *Config) {
		upstreamOf(b, handler)(cfg)
		cfg.Tap = t.Tap
	})
	c := g.client("h1")
	for i := range n {
		if got := ask(c, "POST", "http://api.example.com/v1/messages", benchBody(b, i, size)); got.status != http.StatusOK || got.err != nil {
			b.Fatalf("got %+v", got)
		}
	}
	g.srv.Close()
	return t
}

// BenchmarkReplayedCall compares the rate of replayed model calls, of which no two are equal, with that of a net/http server
// that decodes the request and encodes it again, over plain HTTP on the loopback in the same process. Both are asked in
// turns, so that whatever else the machine does slows both. ratio is the replay's rate by the server's.
func BenchmarkReplayedCall(b *testing.B) {
	for _, size := range []int{2 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			replay := recordBench(b, b.N, size, serveJSON).replayOf(b, nil).client("h1")
			l := listenLoopback(b)
			srv := &http.Server{Handler: http.HandlerFunc(serveJSON)}
			go srv.Serve(l)
			b.Cleanup(func() { srv.Close() })
			server := &http.Client{Transport: &http.Transport{DisableCompression: true}}
			url := "http://" + l.Addr().String() + "/v1/messages"
			ask(server, "POST", url, benchBody(b, 0, size)) // both have a connection when it begins
			ask(replay, "POST", "http://api.example.com/hello", nil)
			var spent [2]time.Duration
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				body := benchBody(b, i, size)
				t0 := time.Now()
				got := ask(replay, "POST", "http://api.example.com/v1/messages", body)
				t1 := time.Now()
				want := ask(server, "POST", url, body)
				spent[1] += time.Since(t1)
				spent[0] += t1.Sub(t0)
				if got.status != http.StatusOK || !bytes.Equal(got.body, want.body) {
					b.Fatalf("got %d, %d bytes; want %d bytes", got.status, len(got.body), len(want.body))
				}
			}
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
			b.ReportMetric(float64(spent[0].Microseconds())/float64(b.N), "replay-µs/op")
			b.ReportMetric(float64(spent[1].Microseconds())/float64(b.N), "server-µs/op")
		})
	}
}
