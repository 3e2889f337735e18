//go:build agents

package agents

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// codexIn returns codex and its program.
func codexIn(t *testing.T) (*Recipe, []string) {
	t.Helper()
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder; integration/install-npm.sh fills one")
	}
	run.Tool(t, "node")
	r := &Recipes[slices.IndexFunc(Recipes, func(r Recipe) bool { return r.Name == "codex" })]
	return r, r.program(t, modules)
}

// TestCodexTurns holds what is recorded of codex's WebSocket to what it is: a warm-up, a turn, and the one after the tool, on one
// connection, each as all that it asks; and the session log that follows.
func TestCodexTurns(t *testing.T) {
	r, program := codexIn(t)
	run.Once(t, func(t *testing.T, b *run.Box) {
		r.prepare(b)
		record(t, b, r, program, scriptedllm.New(&scriptedllm.Options{Key: r.Value}))
		var got []string
		for _, k := range kinds(t, b) {
			switch k := k.(type) {
			case *tape.WSOpen:
				got = append(got, "open "+k.URL)
			case *tape.LLMCall:
				got = append(got, k.Endpoint)
			case *tape.WSClose:
				got = append(got, fmt.Sprint("close ", k.Code))
			}
		}
		want := []string{"open wss://api.openai.com/v1/responses", "responses.ws.warmup", "responses.ws", "responses.ws", "close 1006"}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %q, want %q", got, want)
		}
		log, err := os.ReadFile(filepath.Join(b.Recording(), "session.jsonl"))
		if err != nil || bytes.Count(log, []byte(`"kind":"llm_completed"`)) != 2 || bytes.Count(log, []byte(`"kind":"tool_requested"`)) != 1 ||
			!bytes.Contains(log, []byte(`"goal":"`+prompt+`"`)) {
			t.Errorf("the session log: %s, %v", log, err)
		}
		replayGreen(t, b)
	})
}

// TestCodexReconnects loses the connection in the middle of an answer: what came is recorded, codex says everything anew on the next
// one, and a replay does the same.
func TestCodexReconnects(t *testing.T) {
	r, program := codexIn(t)
	run.Once(t, func(t *testing.T, b *run.Box) {
		r.prepare(b)
		record(t, b, r, program, scriptedllm.New(&scriptedllm.Options{Key: r.Value, CutAfter: 9000}))
		cut, open := 0, 0
		for _, k := range kinds(t, b) {
			switch k := k.(type) {
			case *tape.WSOpen:
				open++
			case *tape.LLMCall:
				if k.Error != "" {
					cut++
				}
			}
		}
		if cut == 0 || open < 2 {
			t.Errorf("%d answers were cut on %d connections", cut, open)
		}
		replayGreen(t, b)
	})
}

// TestCodexWithoutSockets is codex with an endpoint that answers 426: it goes on by HTTP, and so does the replay, as of recordings that
// hold such an answer from the recorder.
func TestCodexWithoutSockets(t *testing.T) {
	r, program := codexIn(t)
	byHTTP := *r
	byHTTP.Socket = false
	run.Once(t, func(t *testing.T, b *run.Box) {
		r.prepare(b)
		endpoint := scriptedllm.New(&scriptedllm.Options{Key: r.Value})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Header.Get("Upgrade") != "" {
				w.WriteHeader(http.StatusUpgradeRequired)
				return
			}
			endpoint.ServeHTTP(w, q)
		}))
		defer server.Close()
		recordFrom(t, b, &byHTTP, program, endpoint, server.URL)
		server.Close()
		replayGreen(t, b)
		replayRed(t, b, "marigold", "chrysanthemum", r.Command(program, changed)...)
	})
}

// TestCodexRefused is codex with an endpoint that answers with a page where a WebSocket is asked for. What it says of that holds as much
// of the page as it read with the header, and is the same on each of $TAPEDECK_AGENTS_REPLAYS replays, one by default.
func TestCodexRefused(t *testing.T) {
	r, program := codexIn(t)
	byHTTP := *r
	byHTTP.Socket = false
	const page = "no WebSocket here"
	for name, tt := range map[string]struct {
		refuse func(w http.ResponseWriter)
		told   bool // codex says what the page is
	}{
		"length":           {func(w http.ResponseWriter) {}, true},
		"chunked":          {func(w http.ResponseWriter) { w.Header().Set("Transfer-Encoding", "chunked") }, true},
		"chunked and late": {func(w http.ResponseWriter) { w.(http.Flusher).Flush(); time.Sleep(50 * time.Millisecond) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits more than it works
			run.Once(t, func(t *testing.T, b *run.Box) {
				r.prepare(b)
				endpoint := scriptedllm.New(&scriptedllm.Options{Key: r.Value})
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
					if q.Header.Get("Upgrade") != "" {
						tt.refuse(w)
						io.WriteString(w, page)
						return
					}
					endpoint.ServeHTTP(w, q)
				}))
				defer server.Close()
				was := refusal(recordFrom(t, b, &byHTTP, program, endpoint, server.URL))
				server.Close()
				if strings.Contains(was, page) != tt.told {
					t.Errorf("recording, it says %q", was)
				}
				for range count("TAPEDECK_AGENTS_REPLAYS", 1) {
					if now := refusal(replayGreen(t, b)); now != was {
						t.Errorf("recording, it says %q, and on the replay %q", was, now)
					}
				}
			})
		})
	}
}

// refusal is what codex says of the answer to its request for a WebSocket.
func refusal(res run.Result) string {
	_, said, _ := strings.Cut(res.Stderr, "unexpected status ")
	said, _, _ = strings.Cut(said, ", url: ")
	return said
}

// kinds are the records of a recording.
func kinds(t *testing.T, b *run.Box) (out []tape.Kind) {
	t.Helper()
	tp, err := tape.Open(filepath.Join(b.Recording(), "run.tape"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	for rec, err := range tp.Records() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec.Kind)
	}
	return out
}
