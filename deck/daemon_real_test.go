//go:build linux

package deck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	real "github.com/tapedeck-dev/tapedeck/internal/daemon"
	"github.com/tapedeck-dev/tapedeck/policy"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// realDaemon is a daemon on an address and a directory of its own, which may be stopped and started again.
type realDaemon struct {
	t    *testing.T
	o    real.Options
	stop func()
}

func newRealDaemon(t *testing.T) *realDaemon {
	t.Helper()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &realDaemon{t: t, o: real.Options{
		Listen: l.Addr().String(), Data: t.TempDir(), Policies: []policy.Rule{{Name: "no reading", Rule: "deny_tool", Target: "read"}},
	}}
	l.Close()
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *realDaemon) start() {
	r.t.Helper()
	d, err := real.Open(r.t.Context(), &r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- d.Serve(context.Background()) }()
	r.stop = func() {
		if err := d.Shutdown(context.Background()); err != nil {
			r.t.Error(err)
		}
		<-served
		r.stop = func() {}
	}
}

func (r *realDaemon) url() string { return "ws://" + r.o.Listen }

// host is a client that reads everything.
func (r *realDaemon) host() *client.Client {
	r.t.Helper()
	c, err := client.Dial(r.t.Context(), r.url(), &client.Options{Host: true})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// turnsOf reads the turns of a run, and its end.
func (r *realDaemon) turnsOf(run string) (turns []runtrace.Turn, ended map[string]any) {
	r.t.Helper()
	for rec, err := range r.host().Records(r.t.Context(), run, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		switch rec.Kind {
		case "turn":
			var turn runtrace.Turn
			if err := json.Unmarshal(rec.JSON, &turn); err != nil {
				r.t.Fatal(err)
			}
			turns = append(turns, turn)
		case "ended":
			if err := json.Unmarshal(rec.JSON, &ended); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return turns, ended
}

// firstTurn waits until the run that is open has a turn.
func firstTurn(ctx context.Context, c *client.Client) error {
	runs, err := c.Runs(ctx, rpcapi.RunsListParams{})
	if err != nil || len(runs) != 1 {
		return fmt.Errorf("%d runs, %w", len(runs), err)
	}
	for rec, err := range c.Subscribe(ctx, runs[0].RunID, 0) {
		if err != nil || rec.Kind == "turn" {
			return err
		}
	}
	return errors.New("it ended without a turn")
}

// TestRecordingMeetsDaemon: with a real daemon, a turn is there while the program goes on, and run and recording name each other.
func TestRecordingMeetsDaemon(t *testing.T) {
	for name, again := range map[string]bool{"one daemon": false, "started again meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			r := newRealDaemon(t)
			b := newBenchAnywhere(t)
			host := r.host()
			b.upstream("api.anthropic.com", func(w http.ResponseWriter, q *http.Request) {
				body, _ := io.ReadAll(q.Body)
				n := bytes.Count(body, []byte("tool_result"))
				if n == 2 { // the first turn can be known, and the program goes on once somebody has seen it
					ctx, cancel := context.WithTimeout(q.Context(), 20*time.Second)
					defer cancel()
					if err := firstTurn(ctx, host); err != nil {
						t.Error(err)
					}
					if again {
						r.stop()
						r.start()
					}
				}
				if n == 3 {
					io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"}`)
					return
				}
				fmt.Fprintf(w, `{"type":"message","content":[{"type":"tool_use","id":"t%d","name":"read","input":{"n":%d}}],"stop_reason":"tool_use"}`, n, n)
			})
			res, err := b.recordTold(&daemon.Options{URL: r.url(), Intent: "count"}, "rounds", true)
			if err != nil {
				t.Fatal(err)
			}
			b.holds(res.Recording.Dir)
			told := res.Recording.Manifest.Daemon
			a := res.Recording.Manifest.Axes["daemon"]
			if res.DaemonLost != nil || told.Turns != 3 || len(told.Continued) > 0 != again || len(a.NotCovered) > 0 != again || res.Counts["policy_verdict"] != 3 {
				t.Errorf("%v, %+v, %q, %v", res.DaemonLost, told, a.NotCovered, res.Counts)
			}
			n := 0
			for i, run := range append([]string{told.RunID}, told.Continued...) {
				turns, ended := r.turnsOf(run)
				for _, turn := range turns {
					if string(turn.Parameters) != fmt.Sprintf(`{"n":%d}`, n) || string(turn.Output) != fmt.Sprintf(`"%d"`, n) {
						t.Errorf("run %s: %s %s", run, turn.Parameters, turn.Output)
					}
					n++
				}
				if last := i == len(told.Continued); ended == nil || (ended["status"] == "completed") != last {
					t.Errorf("run %s: %v", run, ended)
				} else if text, _ := json.Marshal(ended); last && !strings.Contains(string(text), res.Sealed.Root) {
					t.Errorf("run %s: %s does not name %s", run, text, res.Sealed.Root)
				}
			}
			if n != 3 {
				t.Errorf("%d turns", n)
			}
		})
	}
}

func init() { programs["rounds"] = playRounds }

// playRounds asks a model and does what it wants, three times.
func playRounds([]string) int {
	messages := []string{`{"role":"user","content":"count"}`}
	for n := range 4 {
		res, err := http.Post("https://api.anthropic.com/v1/messages", "application/json",
			strings.NewReader(`{"model":"m","tools":[{"name":"read"}],"messages":[`+strings.Join(messages, ",")+`]}`))
		if err != nil {
			return fail(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return fail(err)
		}
		res.Body.Close()
		messages = append(messages,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"read","input":{"n":%d}}]}`, n, n),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%d"}]}`, n, n))
	}
	return 0
}
