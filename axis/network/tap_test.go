package network

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// testTap is a Tap on a tape in memory.
type testTap struct {
	asked func() // when a request has come; nil for nothing
	*exchange.Tap
	t     testing.TB
	rec   *tape.Recorder
	file  lockedBuffer
	store *cas.Memory
	parts string // directory of a recording's; "" for none
}

// newTestTap makes the Tap of a recording, or of a replay.
func newTestTap(t testing.TB, replay bool) *testTap {
	t.Helper()
	tt := &testTap{t: t, store: cas.NewMemory()}
	w, err := tape.NewWriter(&tt.file, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: tt.store})
	tt.rec = rec
	opts := &exchange.TapOptions{Replay: replay, Asked: func(*exchange.Request, exchange.Key) error {
		if tt.asked != nil {
			tt.asked()
		}
		return nil
	}}
	if !replay {
		tt.parts = t.TempDir()
		opts.PartDir = tt.parts
	}
	tt.Tap = exchange.NewTap(rec, plainHTTP{}, scrub.New(scrub.Key{}, nil), opts)
	return tt
}

func (t *testTap) reader() *tape.Reader {
	t.t.Helper()
	if err := t.rec.Flush(); err != nil {
		t.t.Fatal(err)
	}
	r, err := tape.NewReader(bytes.NewReader(t.file.bytes()), "test")
	if err != nil {
		t.t.Fatal(err)
	}
	return r
}

// book holds what is on the tape.
func (t *testTap) book() *exchange.Book {
	t.t.Helper()
	b, err := exchange.NewBook(t.reader().Records(), plainHTTP{}, t.store)
	if err != nil {
		t.t.Fatal(err)
	}
	return b
}

// exchanges are those that have been recorded.
func (t *testTap) exchanges() []*tape.Exchange {
	t.t.Helper()
	var out []*tape.Exchange
	for r, err := range t.reader().Records() {
		if err != nil {
			t.t.Fatal(err)
		}
		out = append(out, &r.Kind.(*tape.HTTPExchange).Exchange)
	}
	return out
}

// lockedBuffer is a file in memory.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.b.Bytes())
}

// edit changes what stands in the file.
func (l *lockedBuffer) edit(was, now string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := bytes.ReplaceAll(l.b.Bytes(), []byte(was), []byte(now))
	l.b = bytes.Buffer{}
	l.b.Write(changed)
}

// plainHTTP knows no provider; what is asked below /shaped/ gets errors in a shape of its own.
type plainHTTP struct{}

func (plainHTTP) InCallOrder(*exchange.Request) *exchange.Request { return nil }

func (plainHTTP) Sockets(*exchange.Request) exchange.Turns { return nil }

func (plainHTTP) Rename(message []byte, _ func(string) string) []byte { return message }

func (plainHTTP) Classify(r *exchange.Request) (*exchange.Identity, error) {
	id := &exchange.Identity{
		Key:     exchange.Key{Kind: exchange.HTTP, Method: r.Method, URL: r.URL, Request: cas.Sum(r.Body)},
		Surface: r.Body,
	}
	if strings.Contains(r.URL, "/shaped/") {
		id.ErrorBody = func(status int, message string) []byte {
			b, _ := json.Marshal(map[string]any{"status": status, "shaped": message}) // always marshals
			return b
		}
	}
	return id, nil
}

func (plainHTTP) MaskURL(u string) string { return u }

func (plainHTTP) Traits(*exchange.Request) *exchange.Traits { return new(exchange.Traits) }
