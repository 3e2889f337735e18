package fidelity

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestParseMode(t *testing.T) {
	names := map[string]Mode{
		"byte-identical": ByteIdentical, "byte": ByteIdentical, "byte_identical": ByteIdentical, "semantic": Semantic,
		"outcome": Outcome, "phase-aware": PhaseAware, "phase_aware": PhaseAware, "byte-user-semantic-runtime": PhaseAware,
	}
	for name, want := range names {
		if got, err := ParseMode(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, m := range allModes {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("%v does not read back: %v, %v", m, got, err)
		}
		if strings.ReplaceAll(m.String(), "-", "_") != m.Snake() {
			t.Errorf("%v is %s in a report", m, m.Snake())
		}
	}
	_, err := ParseMode("bytes")
	if err == nil {
		t.Fatal("bytes is taken for a mode")
	}
	for _, m := range allModes {
		if !strings.Contains(err.Error(), m.String()) {
			t.Errorf("%q does not list %v", err, m)
		}
	}
}

func TestReportJSON(t *testing.T) {
	tests := []struct {
		name string
		r    *Report
		want string
	}{
		{
			"bare", newReport(PhaseAware),
			`{"mode":"phase_aware","recorded_records":0,"replay_records":0,"divergences":[],"score":1}`,
		},
		{
			"bare, nothing set", &Report{},
			`{"mode":"","recorded_records":0,"replay_records":0,"divergences":[],"score":0}`,
		},
		{
			"lanes", newComparison(Semantic, nil).report,
			`{"mode":"semantic","recorded_records":0,"replay_records":0,"divergences":[],"score":1,` +
				`"crossed":0,"unasked":[],"refused":[],"masked":{},"notes":[]}`,
		},
		{
			"an outcome has no seq",
			&Report{Mode: "outcome", Divergences: []Divergence{{Category: OutcomeExitCode, Message: "<1>"}}},
			`{"mode":"outcome","recorded_records":0,"replay_records":0,` +
				`"divergences":[{"seq":null,"category":"outcome_exit_code","message":"<1>"}],"score":0}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.r.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(tt.want), &b)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(b, a); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if strings.Contains(tt.want, "<") && !bytes.Contains(got, []byte("<1>")) {
				t.Errorf("escaped for the web: %s", got)
			}
		})
	}
}

// goldens are reports whose text is kept in testdata.
func goldens(t *testing.T) map[string]*Report {
	t.Helper()
	ask := func(what string) string {
		return `{"model":"m","messages":[{"role":"user","content":"write ` + what + `"}]}`
	}
	recorded := []tape.Kind{
		call("llm:a", 1, ask("hello.txt"), "ok"), wrote("hello.txt", "hello\n"), wrote("~/.agent/log", "1"), program("done\n", 0),
	}
	why := "the nearest is seq 0\n" + Summary(DiffJSON([]byte(ask("hello.txt")), []byte(ask("bye.txt"))), 3)
	changed := compareLanes(t, Semantic, recorded,
		[]tape.Kind{refused(1, ask("bye.txt"), why), wrote("~/.agent/log", "2"), program("failed \x1b[2J\n", 1)},
		&LaneOptions{Masks: digitMasks, Masked: map[string]int{"uuid": 3, "date": 1}, Notes: []string{"a note"}})
	bare := mustCompare(t, Semantic,
		tapeOf(&tape.ClockRead{Source: "wall", ValueMS: 1}, &tape.ClockSleep{DurationMS: 1}, &tape.EnvRead{VarName: "A"}),
		tapeOf(&tape.ClockRead{Source: "wall", ValueMS: 2}, &tape.ClockSleep{DurationMS: 9}))
	return map[string]*Report{
		"faithful":     compareLanes(t, Semantic, recorded, recorded, nil),
		"changed":      changed,
		"bare":         bare,
		"not-compared": compareLanes(t, Semantic, recorded, recorded, &LaneOptions{NotCompared: []string{"axis files was off"}}),
		"diff": compareLanes(t, Semantic, recorded,
			[]tape.Kind{call("llm:b", 1, ask("bye.txt"), "ok"), wrote("bye.txt", "bye\n"), program("done\n", 0)}, nil),
	}
}

func TestText(t *testing.T) {
	for name, r := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := r.WriteText(&got, nil); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestTextStaysInItsColumns(t *testing.T) {
	r := newReport(Semantic)
	r.add(Divergence{Category: MissingInReplay, Message: "first"}, Divergence{Category: MissingInReplay, Message: strings.Repeat("é", 200)})
	var got bytes.Buffer
	if err := r.WriteText(&got, &TextOptions{Width: 60, Color: true}); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(got.String(), "\n") // the verdict is never cut
	for line := range strings.Lines(rest) {
		if n := len([]rune(strings.ReplaceAll(line, "\x1b", ""))); n > 75 { // with its colours
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(got.String(), red) {
		t.Error("no colour")
	}
}

func TestTextReportsTheWritersError(t *testing.T) {
	if err := newReport(Semantic).WriteText(brokenWriter{}, nil); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// What could not be compared says so first: whatever diverged may come of it.
func TestNotComparedIsNotDiverged(t *testing.T) {
	a, b := []tape.Kind{program("", 0)}, []tape.Kind{program("", 1)}
	got := compareLanes(t, Semantic, a, b, &LaneOptions{NotCompared: []string{"record 0: its answer is missing"}})
	if s := got.String(); got.Faithful() || !strings.HasPrefix(s, "NOT COMPARED: 1 divergence") || strings.Contains(s, "score 1)") {
		t.Error(s)
	}
}

// TestReportLetsGo: whoever keeps a report keeps neither the tapes nor what the comparison was told of them.
func TestReportLetsGo(t *testing.T) {
	compared := func() (*Report, weak.Pointer[[1 << 10]byte]) {
		world := new([1 << 10]byte)
		r, err := CompareLanes(Semantic, tapeOf(), tapeOf(), &LaneOptions{Held: func(*tape.Record) bool { return world[0] == 0 }})
		if err != nil {
			t.Fatal(err)
		}
		return r, weak.Make(world)
	}
	r, world := compared()
	runtime.GC()
	if world.Value() != nil {
		t.Error("the report holds what it was made of")
	}
	runtime.KeepAlive(r)
}
