//go:build agents

package agents

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// The prompt of the recording and the one that must be told from it.
const (
	prompt  = "write hello.txt with the text marigold"
	changed = "write hello.txt with the text chrysanthemum"
	rules   = "Answer in the manner of a gardener.\n" // what the agent puts before every conversation
)

func TestMain(m *testing.M) { run.Main(m) }

func TestAgents(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder; integration/install-npm.sh fills one")
	}
	run.Tool(t, "node")
	for i := range Recipes {
		r := &Recipes[i]
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel() // they wait more than they work
			program := r.program(t, modules)
			run.Each(t, func(t *testing.T, b *run.Box) {
				r.prepare(b)
				endpoint := scriptedllm.New(&scriptedllm.Options{Key: r.Value, Gzip: true})
				record(t, b, r, program, endpoint)
				replayGreen(t, b)
				replayRed(t, b, "marigold", "chrysanthemum", r.Command(program, changed)...)
				everyWordCounts(t, b, r, endpoint.Requests())
				b.WriteFile(filepath.Join(b.Home, r.Rules), strings.Replace(rules, "gardener", "carpenter", 1))
				replayRed(t, b, "gardener", "carpenter")
			})
		})
	}
}

// record runs the agent against an endpoint, which is gone when record returns, and takes away what the agent wrote.
func record(t *testing.T, b *run.Box, r *Recipe, program []string, endpoint *scriptedllm.Endpoint) {
	t.Helper()
	server := httptest.NewServer(endpoint)
	defer server.Close()
	recordFrom(t, b, r, program, endpoint, server.URL)
}

// recordFrom is record with an endpoint that is reached at a URL. It returns how the recording ended.
func recordFrom(t *testing.T, b *run.Box, r *Recipe, program []string, endpoint *scriptedllm.Endpoint, url string) run.Result {
	t.Helper()
	res := b.Record(map[string]string{r.Host: url}, r.Command(program, prompt)...)
	if res.Status != 0 {
		t.Fatalf("record: %v", res)
	}
	if content, err := os.ReadFile(filepath.Join(b.Work, "hello.txt")); err != nil || string(content) != "marigold\n" {
		t.Fatalf("the agent's file: %q, %v\n%v", content, err, res)
	}
	if n := len(endpoint.Requests()); n < 2 || endpoint.Unknown() > 0 {
		t.Errorf("%d requests reached the endpoint, %d of them unknown; want a turn and the one after the tool", n, endpoint.Unknown())
	}
	for _, q := range endpoint.Requests() {
		if overSocket := q.Method == http.MethodGet; overSocket != r.Socket {
			t.Errorf("it asked by %s %s", q.Method, q.URL)
		}
	}
	nothingLeft(t, b)
	if res := b.Verify(); res.Status != 0 {
		t.Errorf("verify: %v", res)
	}
	if found := b.Holds(r.Value); found != nil {
		t.Errorf("the API key stands in %v", found)
	}
	if err := os.Remove(filepath.Join(b.Work, "hello.txt")); err != nil {
		t.Fatal(err)
	}
	return res
}

// nothingLeft fails the test where a process runs whose HOME is that of the box: one that an agent left behind.
func nothingLeft(t *testing.T, b *run.Box) {
	t.Helper()
	if left := b.Running(); len(left) > 0 {
		t.Errorf("still running: %q", left)
	}
}

// replayGreen replays the recording as it is, and returns how that ended.
func replayGreen(t *testing.T, b *run.Box) run.Result {
	t.Helper()
	report, res := replaySteady(t, b)
	if res.Status != 0 || report == nil || len(report.Divergences) > 0 {
		t.Fatalf("replay: %v", res)
	}
	t.Logf("masked: %v", report.Masked)
	nothingLeft(t, b)
	if report.Crossed == nil || *report.Crossed != 0 {
		t.Errorf("crossed: %v, want 0", report.Crossed)
	}
	if _, err := os.Stat(filepath.Join(b.Work, "hello.txt")); !os.IsNotExist(err) {
		t.Errorf("the replay left a file: %v", err)
	}
	return res
}

// replaySteady replays, and where that is red twice more: agents have races of their own. qwen-code, on a machine that has much to do,
// sometimes reads nothing of what a command printed that ended at once, and tells its model so; a replay is right to be red then. What
// is red because of us is so each time.
func replaySteady(t *testing.T, b *run.Box) (*fidelity.Report, run.Result) {
	t.Helper()
	report, res := b.Replay()
	for range 2 {
		if report != nil && len(report.Divergences) == 0 {
			break
		}
		t.Logf("this replay was red: %v", res)
		report, res = b.Replay()
	}
	return report, res
}

// replayRed replays what differs in one word, of the command line argv or of what the agent reads, and wants both words named.
// It returns the report.
func replayRed(t *testing.T, b *run.Box, was, now string, argv ...string) *fidelity.Report {
	t.Helper()
	shown := func(r *fidelity.Report) bool {
		return r != nil && strings.Contains(causes(r), was) && strings.Contains(causes(r), now)
	}
	report, res := b.Replay(argv...)
	for range 2 { // as replaySteady
		if shown(report) {
			break
		}
		t.Logf("this replay does not show %s and %s: %v", was, now, res)
		report, res = b.Replay(argv...)
	}
	if res.Status != 2 || report == nil {
		t.Fatalf("replay with %s for %s: %v", now, was, res)
	}
	if !shown(report) {
		t.Errorf("the report does not show %s and %s:\n%v", was, now, res)
	}
	return report
}

// causes is all that a report says on why something differs.
func causes(r *fidelity.Report) string {
	var b strings.Builder
	for _, d := range r.Divergences {
		b.WriteString(d.Message + "\n" + d.Cause + "\n")
	}
	for _, q := range r.Refused {
		b.WriteString(q.Cause + "\n")
	}
	return b.String()
}
