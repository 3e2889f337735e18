//go:build agents

package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// TestDaemon records pi and tells the run to a daemon. The turns are the tool calls of pi's own transcript, and whoever follows the
// run has seen the first before pi gets its last answer. The recording replays without the daemon.
func TestDaemon(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder")
	}
	run.Tool(t, "node")
	w, r := &talkers[0], recipe("pi")
	program := r.program(t, modules)
	run.Once(t, func(t *testing.T, b *run.Box) {
		r.prepare(b)
		d := serveDaemon(t, b)
		model := newScene(r.Value, map[string][]step{"errand alpha": w.in(b.Work)})
		seen := make(chan error, 1)
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
			if last(q) {
				seen <- d.firstTurn()
			}
			model.ServeHTTP(rw, q)
		}))
		defer server.Close()
		args := []string{"record", "--json", "-o", b.Recording(), "--upstream", r.Host + "=" + server.URL, "--daemon", d.URL(), "--intent", "write hello.txt", "--"}
		res := b.Tapedeck(append(args, r.Command(program, "errand alpha: write hello.txt")...)...)
		if res.Status != 0 {
			t.Fatalf("record: %v", res)
		}
		select {
		case err := <-seen:
			if err != nil {
				t.Errorf("while pi ran: %v", err)
			}
		default:
			t.Error("pi never asked for its last answer")
		}
		if res := b.Verify(); res.Status != 0 {
			t.Errorf("verify: %v", res)
		}
		turns := d.turns(t)
		if len(turns) != 3 {
			t.Errorf("%d turns, want 3", len(turns))
		}
		if diff := cmp.Diff(turnsOf(w.own(t, b.Home)), turns); diff != "" {
			t.Errorf("what pi wrote (-), what the daemon has (+):\n%s", diff)
		}
		if report, res := b.Replay(); report == nil || len(report.Divergences) > 0 || res.Status != 0 {
			t.Errorf("replay: %v", res)
		}
	})
}

// last reports whether a request brings the result of the last call. Its body can be read again.
func last(q *http.Request) bool {
	body, err := io.ReadAll(q.Body)
	q.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Count(body, []byte(`"tool_result"`)) == 3
}

// aDaemon is a daemon in this process, and a client that reads all of it.
type aDaemon struct {
	*daemon.Daemon
	host *client.Client
}

// serveDaemon starts a daemon whose token the box finds.
func serveDaemon(t *testing.T, b *run.Box) *aDaemon {
	t.Helper()
	runtime := filepath.Join(b.Home, ".runtime")
	if err := os.Mkdir(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	b.Setenv("XDG_RUNTIME_DIR", runtime)
	d, err := daemon.Open(t.Context(), &daemon.Options{
		Listen: "127.0.0.1:0", Policies: []policy.Rule{{Name: "no shell", Rule: "deny_tool", Target: "bash"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- d.Serve(context.Background()) }()
	t.Cleanup(func() {
		if err := d.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
	})
	host, err := client.Dial(t.Context(), d.URL(), &client.Options{Host: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	return &aDaemon{d, host}
}

// only is the one run.
func (d *aDaemon) only(ctx context.Context) (string, error) {
	runs, err := d.host.Runs(ctx, rpcapi.RunsListParams{})
	if err != nil || len(runs) != 1 {
		return "", fmt.Errorf("%d runs, %w", len(runs), err)
	}
	return runs[0].RunID, nil
}

// firstTurn waits until the run, which goes on, has a turn.
func (d *aDaemon) firstTurn() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	id, err := d.only(ctx)
	if err != nil {
		return err
	}
	for rec, err := range d.host.Subscribe(ctx, id, 0) {
		if err != nil || rec.Kind == "turn" {
			return err
		}
	}
	return errors.New("it ended without a turn")
}

// A calledTool is a tool call and what it gave.
type calledTool struct {
	Name   string
	Params any
	Output any
}

// turns are those of the one run, which has ended well.
func (d *aDaemon) turns(t *testing.T) (out []calledTool) {
	t.Helper()
	id, err := d.only(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := ""
	for rec, err := range d.host.Records(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch rec.Kind {
		case "turn":
			var turn runtrace.Turn
			if err := json.Unmarshal(rec.JSON, &turn); err != nil {
				t.Fatal(err)
			}
			out = append(out, calledTool{*turn.Tool, value(turn.Parameters), value(turn.Output)})
		case "ended":
			ended = string(rec.JSON)
		}
	}
	if !strings.Contains(ended, `"status":"completed"`) || !strings.Contains(ended, `"seal_root"`) {
		t.Errorf("it ended with %s", ended)
	}
	return out
}

// turnsOf are the calls of a transcript as turns.
func turnsOf(facts []fact) (out []calledTool) {
	at := make(map[string]int)
	for _, f := range facts {
		switch f.Kind {
		case (&sessionlog.ToolRequested{}).Kind():
			at[f.ID] = len(out)
			out = append(out, calledTool{Name: f.Name, Params: f.Value})
		case (&sessionlog.ToolCompleted{}).Kind():
			c := &out[at[f.ID]]
			if c.Output = f.Value; f.IsError {
				c.Output = map[string]any{"error": f.Value}
			}
		}
	}
	return out
}
