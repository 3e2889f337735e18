package bench

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// tiny is the env of all short runs here: it builds tapedeck once. TestMain closes it.
var tiny struct {
	once sync.Once
	env  *env
	err  error
}

// tinyEnv returns it, in the long form only: a tapedeck without cgo has every package of it compiled once more.
func tinyEnv(t *testing.T) *env {
	t.Helper()
	if os.Getenv("TAPEDECK_LONG") == "" {
		t.Skip("compiles a tapedeck of its own: TAPEDECK_LONG=1 tries it")
	}
	tiny.once.Do(func() {
		tiny.env, tiny.err = newEnv(context.Background(), &options{short: true}, io.Discard)
		if tiny.err == nil {
			tiny.env.rough = true
		}
	})
	if tiny.err != nil {
		t.Fatal(tiny.err)
	}
	return tiny.env
}

// needs skips a test where something is missing.
func needs(t *testing.T, e *env, list ...need) {
	t.Helper()
	for _, missing := range list {
		if why := missing(t.Context(), e); why != "" {
			t.Skip("needs " + why)
		}
	}
}

// TestTinyWorkloads measures workloads in miniature, with all peers that are here.
func TestTinyWorkloads(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("its recorder needs a Unix system")
	}
	e := tinyEnv(t)
	needs(t, e, needGit, installed("tar", "a package manager"))
	loads := []workload{&untar{few: 20, suffix: ".tar.gz"}, &clone{few: 20}}
	for _, load := range loads {
		r, err := workRun{load: load, runs: 1, peers: 1}.measure(t.Context(), e)
		if err != nil {
			t.Fatalf("%s: %v", load.tell(true), err)
		}
		if r.value <= 0 || len(r.peers) != len(filePeers) {
			t.Errorf("%s: %+v, want a ratio and %d peers", load.tell(true), r, len(filePeers))
		}
		for _, p := range r.peers {
			if p.Why == "" && *p.Value <= 0 {
				t.Errorf("%s: the ratio of %s is %v", load.tell(true), p.Name, *p.Value)
			}
		}
	}
	if made, _ := filepath.Glob(filepath.Join(e.tmp, "*.rec", "workspace.diff")); len(made) != 2*len(loads) {
		t.Errorf("recordings of work trees: %v, want two of each workload", made)
	}
}

// TestWorkloadThatFails wants the error of the program, from each that runs it.
func TestWorkloadThatFails(t *testing.T) {
	e := tinyEnv(t)
	p, err := e.newPlace()
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{e: e, place: p, load: command{"sh", "-c", "echo no such luck >&2; exit 3"}}
	needs(t, e, installed("sh", "a Unix system"))
	for _, peer := range filePeers {
		if peer.missing(t.Context(), e) != "" {
			continue
		}
		if _, err := peer.run(t.Context(), tr); err == nil || !strings.Contains(err.Error(), "no such luck") {
			t.Errorf("%s: %v, want what the program said", peer.name, err)
		}
	}
	if _, err := tr.plain(t.Context())(); err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("%v, want what the program said", err)
	}
}

func TestTinyOpens(t *testing.T) {
	e := tinyEnv(t)
	needs(t, e, needJail)
	r, err := openRun{few: 100, runs: 1}.measure(t.Context(), e)
	if err != nil || r.value <= 0 {
		t.Errorf("%+v, %v, want a ratio", r, err)
	}
}

func TestTinyPeak(t *testing.T) {
	e := tinyEnv(t)
	needs(t, e, needProc)
	r, err := peakRun{few: 3, small: 1 << 20, over: true}.measure(t.Context(), e)
	if err != nil || r.value < 4 || r.value > 1000 {
		t.Errorf("%+v, %v, want MiB of a Go process", r, err)
	}
}

// TestPeakOf has a process hold memory, let it go, and say so.
func TestPeakOf(t *testing.T) {
	e := tinyEnv(t)
	needs(t, e, needProc, installed("python3", "apt-get install python3"))
	cmd := exec.CommandContext(t.Context(), "python3", "-c", "import time; b = bytearray(100 << 20); del b; time.sleep(0.1)")
	peak, took, err := doWatched(cmd)
	if err != nil || peak < 100<<20 || peak > 200<<20 || took < time.Second/10 {
		t.Errorf("%d MiB in %v, %v, want a little more than 100 in a tenth of a second", peak>>20, took, err)
	}
}

func TestSourceTreeIsTheSameAgain(t *testing.T) {
	var first, second bytes.Buffer
	total := 0
	if err := (sourceTree{50}).tar(&first); err != nil {
		t.Fatal(err)
	}
	if err := (sourceTree{50}).tar(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("the same tree twice differs: %v", err)
	}
	seen := make(map[string]bool)
	if err := (sourceTree{50}).files(func(_ string, b []byte) error {
		if len(b) < 1<<10 || len(b) > 16<<10 || seen[string(b)] {
			t.Errorf("a file of %d bytes, or one that stands there twice", len(b))
		}
		seen[string(b)] = true
		total += len(b)
		return nil
	}); err != nil || total < 50*2<<10 || total > 50*8<<10 {
		t.Errorf("%d bytes in 50 files, %v, want some KB each", total, err)
	}
}

func TestPeersHaveColumns(t *testing.T) {
	ratio := 12.345
	rep := &report{Machine: new(machine), Groups: []results{{Title: "Work", Peers: []string{"one", "two", "three"}, Rows: []*result{
		{Name: "x/y", What: "a", Target: "≤ 1.5x", Unit: "x", How: "so", outcome: outcome{State: stateMet, Value: &ratio,
			Peers: []peerReading{{Name: "one", Value: &ratio}, {Name: "two", Why: "a thing | or two"}}}},
	}}}}
	want := `| row | what is measured | target | measured | one | two | three | |
|---|---|---|---|---|---|---|---|
| x/y | a | ≤ 1.5x | **12.3x** | 12.3x | needs a thing \| or two |  | met |
`
	if page := rep.markdown(); !strings.Contains(page, want) {
		t.Errorf("the page lacks\n%s\nit is\n%s", want, page)
	}
}

// TestJailedModel has the small agent of the quickstart ask a model that nothing records.
func TestJailedModel(t *testing.T) {
	e := tinyEnv(t)
	needs(t, e, needJail)
	for range 3 { // the listeners are served side by side
		p, err := e.newPlace()
		if err != nil {
			t.Fatal(err)
		}
		tr := &trial{e: e, place: p, load: &quickstart{e.built.text}}
		if _, err := tr.jailed(t.Context(), jailedProgram{Host: upstreamHost}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(p.work(), "hello.txt")); err != nil {
			t.Error(err)
		}
	}
}

// quickstart is the small agent as a workload.
type quickstart struct{ tapedeck string }

func (*quickstart) tell(bool) string { return "quickstart agent" }

func (*quickstart) prepare(context.Context, *env, *place) error { return nil }

func (*quickstart) clean(*env, *place) error { return nil }

func (q *quickstart) command(*place) (argv, env []string) {
	return []string{q.tapedeck, "quickstart", "agent", "write hello.txt"}, []string{"ANTHROPIC_API_KEY=sk-ant-benchmark-not-a-key"}
}

// TestAgentsThatAreMissing are rows that say so, and do not fail.
func TestAgentsThatAreMissing(t *testing.T) {
	e := &env{agents: output{text: t.TempDir()}}
	for _, r := range agentRows() {
		res := r.begin(true)
		r.needs = r.needs[len(r.needs)-1:]
		if r.measure(t.Context(), e, res); res.State != stateNotMeasured || !strings.Contains(res.Why, "install-npm.sh") {
			t.Errorf("%s: %s %s, want how to install it", r.name, res.State, res.Why)
		}
	}
}
