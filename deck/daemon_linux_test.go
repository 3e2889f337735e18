package deck_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/deck/daemon/daemontest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// recordTold records a program and tells its run to a daemon.
func (b *bench) recordTold(o *daemon.Options, program string, proxy bool) (*deck.Result, error) {
	b.t.Helper()
	argv, env := b.self(program)
	var out bytes.Buffer
	return deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Proxy: proxy, Daemon: o,
		Streams: deck.Streams{Stdout: &out, Stderr: &out},
	})
}

// TestARunThatIsTold: the turns are those of the tape, without secrets; recording and run name each other; a recording with verdicts
// verifies, replays green without a daemon, and compares.
func TestARunThatIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.env = append(b.env, "SERVICE_TOKEN="+spelledSecret)
	b.upstream("api.anthropic.com", serveConverse)
	f := daemontest.New()
	f.Deny("read")
	o := f.Options()
	o.Intent, o.Agent = "try it with "+spelledSecret, "tester"
	res, err := b.recordTold(o, "converse", false)
	if err != nil {
		t.Fatal(err)
	}
	b.holds(res.Recording.Dir)
	runs := f.Runs()
	if len(runs) != 1 {
		t.Fatalf("%+v", runs)
	}
	m, start, outcome := res.Recording.Manifest, runs[0].Start, runs[0].Outcome
	if len(runs[0].Turns) != 1 || *runs[0].Turns[0].Tool != "read" || string(runs[0].Turns[0].Output) != `"one"` {
		t.Errorf("turns %+v", runs[0].Turns)
	}
	if start.Recording == nil || start.Recording.ID != m.ID || start.Recording.Path != res.Recording.Dir || start.AgentName != "tester" ||
		!strings.HasPrefix(start.Intent, "try it with td_") {
		t.Errorf("started %+v", start)
	}
	if outcome == nil || outcome.Status != "success" || res.Sealed == nil || !bytes.Contains(outcome.Evidence, []byte(res.Sealed.Root)) {
		t.Errorf("outcome %+v, sealed %+v", outcome, res.Sealed)
	}
	want := recording.DaemonRun{URL: "ws://127.0.0.1:1/", AgentID: "name:tester", RunID: start.IdempotencyKey, Turns: 1}
	if m.Daemon == nil || m.Daemon.Turns != 1 || m.Daemon.RunID != want.RunID || m.Daemon.URL != want.URL || m.Daemon.AgentID != want.AgentID {
		t.Errorf("%+v, want %+v", m.Daemon, want)
	}
	if a, ok := m.Axes["daemon"]; !ok || len(a.NotCovered) > 0 || res.DaemonLost != nil || res.Counts["policy_verdict"] != 1 {
		t.Errorf("%+v, %v, %v", a, res.DaemonLost, res.Counts)
	}
	log, err := os.ReadFile(filepath.Join(res.Recording.Dir, "session.jsonl"))
	if err != nil || !bytes.Contains(log, []byte(`"tool_denied"`)) {
		t.Errorf("%s, %v", log, err)
	}
	out := filepath.Join(t.TempDir(), "replay")
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{Out: out})
	b.green(v)
	if !slices.ContainsFunc(v.Notes, func(n string) bool { return strings.Contains(n, "verdicts of policies do not gate") }) {
		t.Errorf("notes %q", v.Notes)
	}
	if again, err := recording.Open(out); err != nil || again.Manifest.Daemon != nil || again.Manifest.Axes["daemon"].On {
		t.Errorf("%+v, %v", again, err)
	}
	if r, err := deck.Compare(res.Recording.Dir, out, nil); err != nil || len(r.Divergences)+len(r.NotCompared) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNoDaemonNoRecording: where nobody answers, or the run has no intent, nothing is run and nothing is written.
func TestNoDaemonNoRecording(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.upstream("api.anthropic.com", serveConverse)
	for _, o := range []*daemon.Options{
		{URL: "ws://127.0.0.1:1", Intent: "try it"},
		{URL: "unix:" + filepath.Join(t.TempDir(), "none.sock"), Intent: "try it"},
		{URL: "ws://127.0.0.1:1", Intent: " "},
	} {
		_, err := b.recordTold(o, "converse", true)
		if no, ok := errors.AsType[*daemon.Error](err); !ok || no.Hint == "" {
			t.Errorf("%+v: %v", o, err)
		}
		if _, err := os.Stat(filepath.Join(b.dir, ".tapedeck")); !os.IsNotExist(err) {
			t.Errorf("%+v left a library: %v", o, err)
		}
	}
}

// taughtLate is a token that the program uses as one last.
const taughtLate = "lt4Xw2Lk9Vb4Nm6Tr8Yp"

func init() { programs["blab"] = playBlab }

// playBlab has a conversation in which a token stands, waits until it was told, and then uses the token.
func playBlab([]string) int {
	const base = "https://api.anthropic.com"
	asks := `{"model":"m","tools":[{"name":"login"}],"messages":[{"role":"user","content":"log in"}`
	for _, body := range []string{
		asks + `]}`,
		asks + `,{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"login","input":{"with":"` + taughtLate +
			`"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"in"}]}]}`,
	} {
		res, err := http.Post(base+"/v1/messages", "application/json", strings.NewReader(body))
		if err != nil {
			return fail(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return fail(err)
		}
		res.Body.Close()
	}
	if _, err := get(base + "/wait"); err != nil {
		return fail(err)
	}
	req, _ := http.NewRequest(http.MethodGet, base+"/named", nil)
	req.Header.Set("X-Api-Key", taughtLate)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fail(err)
	}
	return min(res.StatusCode, 200) - 200
}

// TestASecretInAVerdict: what a policy judged is looked through too for secrets that became known late.
func TestASecretInAVerdict(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	f := daemontest.New()
	b.upstream("api.anthropic.com", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path == "/wait":
			<-f.Told
		case r.URL.Path == "/v1/messages" && !bytes.Contains(body, []byte("tool_result")):
			io.WriteString(w, `{"type":"message","content":[{"type":"tool_use","id":"t1","name":"login","input":{"with":"`+taughtLate+`"}}],"stop_reason":"tool_use"}`)
		case r.URL.Path == "/v1/messages":
			io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn"}`)
		}
	})
	res, err := b.recordTold(f.Options(), "blab", true)
	if err != nil {
		t.Fatal(err)
	}
	b.holds(res.Recording.Dir)
	searchFor(t, res.Recording.Dir, taughtLate)
	tp, err := res.Recording.OpenTape()
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	found := 0
	for rec, err := range tp.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := rec.Kind.(*tape.PolicyVerdict); ok {
			found++
			if params, err := k.ParamsPayload.Bytes(tp.Store); err != nil || !bytes.Contains(params, []byte("td_")) {
				t.Errorf("%s, %v", params, err)
			}
		}
	}
	if a := res.Recording.Manifest.Axes["daemon"]; found != 1 || len(a.NotCovered) != 1 {
		t.Errorf("%d verdicts, %+v", found, a)
	}
}
