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
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// TestDaemon records each agent and tells the run to a daemon. The turns are the tool calls of the agent's own transcript, and who
// follows the run has seen the first before the agent gets its last answer. The recording replays without the daemon.
func TestDaemon(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder")
	}
	run.Tool(t, "node")
	for i := range talkers {
		w := &talkers[i]
		t.Run(w.agent, func(t *testing.T) {
			r := recipe(w.agent)
			program := r.program(t, modules)
			run.Once(t, func(t *testing.T, b *run.Box) { w.told(t, b, r, program) })
		})
	}
}

// told records the agent and compares what the daemon was told.
func (w *talker) told(t *testing.T, b *run.Box, r *Recipe, program []string) {
	r.prepare(b)
	d := serveDaemon(t, b)
	model := newScene(r.Value, map[string][]step{"errand alpha": w.in(b.Work)})
	var once sync.Once
	seen := errors.New("the agent never asked for its last answer")
	model.front = http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		if last(q) {
			once.Do(func() { seen = d.firstTurn() })
		}
		model.ServeHTTP(rw, q)
	})
	server := httptest.NewServer(model.front)
	args := []string{"record", "-o", b.Recording(), "--upstream", r.Host + "=" + server.URL, "--daemon", d.URL(), "--intent", "write hello.txt", "--"}
	res := b.Tapedeck(append(args, r.Command(program, "errand alpha: write hello.txt")...)...)
	server.Close()
	if res.Status != 0 {
		t.Fatalf("record: %v", res)
	}
	if seen != nil {
		t.Errorf("while it ran: %v", seen)
	}
	if res := b.Verify(); res.Status != 0 {
		t.Errorf("verify: %v", res)
	}
	turns := d.turns(t)
	if len(turns) != 3 {
		t.Errorf("%d turns, want 3", len(turns))
	}
	if diff := cmp.Diff(turnsOf(w.own(t, b.Home)), turns); diff != "" {
		t.Errorf("what the agent wrote (-), what the daemon has (+):\n%s", diff)
	}
	if w.agent == ClaudeCode.Name {
		return // what it sends is new in each run
	}
	replay := b.Replay
	if w.agent != "codex" { // whose replay may differ, as below
		replay = func(...string) (*fidelity.Report, run.Result) { return replaySteady(t, b) }
	}
	report, res := replay()
	if report == nil {
		t.Fatalf("replay: %v", res)
	}
	for _, v := range report.Divergences {
		// codex tells of two commands at once in the order in which they end, which nobody recorded.
		if w.agent != "codex" || v.Category != fidelity.ProcessStderrHash {
			t.Errorf("replay: %v", res)
			break
		}
	}
}

// last reports whether a request brings what the last of the three calls gave, in whatever protocol. Its body can be read again.
func last(q *http.Request) bool {
	body, err := io.ReadAll(q.Body)
	q.Body = io.NopCloser(bytes.NewReader(body))
	n := 0
	for _, mark := range []string{`"tool_result"`, `"function_call_output"`, `"functionResponse"`, `"role":"tool"`} {
		n += bytes.Count(body, []byte(mark))
	}
	return err == nil && n == 3
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
			c := calledTool{Name: *turn.Tool, Params: value(turn.Parameters), Output: value(turn.Output)}
			if turn.Error != nil {
				var said any = *turn.Error
				_ = json.Unmarshal([]byte(*turn.Error), &said) // what is no text is JSON
				c.Output = map[string]any{"error": said}
			}
			out = append(out, c)
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
		case sessionlog.KindOf(&sessionlog.ToolRequested{}):
			at[f.ID] = len(out)
			out = append(out, calledTool{Name: f.Name, Params: f.Value})
		case sessionlog.KindOf(&sessionlog.ToolCompleted{}):
			c := &out[at[f.ID]]
			if c.Output = f.Value; f.IsError {
				c.Output = map[string]any{"error": f.Value}
			}
		}
	}
	return out
}
