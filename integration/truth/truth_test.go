package truth

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var both = []*language{python, node}

// TestSharesNoCode holds that the harness imports nothing but the standard library.
func TestSharesNoCode(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if strings.Contains(i.Path.Value, ".") {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
	}
}

// TestSameProgramEveryTime holds that a seed and an index name one program, and each change another.
func TestSameProgramEveryTime(t *testing.T) {
	sources := map[string]bool{}
	for index := range uint64(40) {
		for _, m := range []mode{jailed, proxied} {
			p, again := generate(1, index, m, both), generate(1, index, m, both)
			if p.source() != again.source() || len(p.changes) != len(again.changes) {
				t.Fatalf("%d in %s: another program the second time", index, m)
			}
			sources[p.source()] = true
			for n, c := range p.changes {
				q := generate(1, index, m, both)
				q.changes[n].apply()
				if q.source() == p.source() && c.origin == inSource {
					t.Errorf("%d in %s: %s: %s changes nothing", index, m, c.place, c.kind)
				}
			}
		}
	}
	if len(sources) < 78 {
		t.Errorf("80 programs are %d", len(sources))
	}
}

// TestProgramsParse has the interpreters read programs with and without a change.
func TestProgramsParse(t *testing.T) {
	have, missing := languages()
	if missing != "" {
		t.Log(missing)
	}
	dir := t.TempDir()
	for _, l := range have {
		for index := range uint64(4) {
			p := generate(2, index, jailed, []*language{l})
			path := filepath.Join(dir, "program"+l.suffix)
			if err := os.WriteFile(path, []byte(p.source()), 0o644); err != nil {
				t.Fatal(err)
			}
			check := map[*language][]string{python: {"-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"}, node: {"--check"}}[l]
			if out, err := exec.Command(l.interpreter, append(check, path)...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", l.name, err, out)
			}
		}
	}
}

// TestEveryPlaceIsMade holds that programs of a run reach every kind of change, each source of what differs, and each label.
func TestEveryPlaceIsMade(t *testing.T) {
	kinds, varied, wants := map[string]bool{}, map[string]bool{}, map[want]bool{}
	for index := range uint64(300) {
		for _, m := range []mode{jailed, proxied} {
			p := generate(1, index, m, both)
			for _, c := range p.changes {
				kinds[c.kind], wants[c.want] = true, true
				if (c.want == unseen || c.want == harmless) != (c.why != "") {
					t.Fatalf("%s: %s is %s and says %q", c.place, c.kind, c.want, c.why)
				}
				if len(c.words) == 0 && c.want == caught {
					t.Fatalf("%s: %s: nothing would name it", c.place, c.kind)
				}
			}
			for _, v := range p.varies {
				kind, _, _ := strings.Cut(v, " / ")
				varied[kind] = true
			}
		}
	}
	for _, f := range forms {
		if !kinds[f.kind] {
			t.Errorf("no program changes a %s", f.kind)
		}
	}
	for _, s := range sources {
		if !varied[s.kind] {
			t.Errorf("no program has %s", s.kind)
		}
	}
	for _, w := range []want{caught, noted, unseen, harmless} {
		if !wants[w] {
			t.Errorf("no change is %s", w)
		}
	}
}

func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{0, 100, 0, 3.7}, {50, 100, 40.4, 59.6}, {100, 100, 96.3, 100}, {0, 0, 0, 100}} {
		low, high := wilson(c.k, c.n)
		if low < c.low-0.05 || low > c.low+0.05 || high < c.high-0.05 || high > c.high+0.05 {
			t.Errorf("%d of %d: %.2f to %.2f, want %.1f to %.1f", c.k, c.n, low, high, c.low, c.high)
		}
	}
}

// TestJudge gives it replays and holds what each comes to.
func TestJudge(t *testing.T) {
	of := func(status int, text string) result {
		r := result{Status: status}
		r.Report.read([]byte(text), "/nowhere")
		return r
	}
	plain := of(0, `{"divergences":[],"notes":["it was 17 before"]}`)
	for _, c := range []struct {
		name string
		r    result
		want string
	}{
		{"named", of(2, `{"divergences":[{"category":"x","cause":"17 became 18"}]}`), redNamed},
		{"not by the first", of(2, `{"divergences":[{"category":"x"},{"cause":"18"}]}`), red},
		{"without a report", of(2, ``), red},
		{"green", of(0, `{"divergences":[],"notes":["it was 17 before"]}`), green},
		{"a note", of(0, `{"divergences":[],"notes":["a mask hides 17, 18"]}`), greenNote},
		{"the command line", of(0, `{"divergences":[],"notes":["ran /x/agent/program.py 18"]}`), green},
		{"hung", of(-1, ``), broken},
		{"could not compare", of(1, `{}`), broken},
	} {
		var o outcome
		if o.judge([]string{"18"}, c.r, plain); o.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, o.Verdict, c.want)
		}
	}
}

// TestCheck holds that what is wrong fails unless it is known, and what is known and right fails too.
func TestCheck(t *testing.T) {
	defer func(m, a []gap) { missing, alarming = m, a }(missing, alarming)
	missing, alarming = []gap{{jailed, "date", "prompt", false}, {jailed, "port", "*", true}}, []gap{{jailed, "PID", "*", false}}
	o := func(change int, kind, place, verdict string) *outcome {
		w := caught
		if change < 0 {
			w = harmless
		}
		return &outcome{Mode: jailed, Change: change, Kind: kind, Place: place, Want: w, Verdict: verdict}
	}
	for _, c := range []struct {
		name  string
		of    []*outcome
		fails int
	}{
		{"all right", []*outcome{o(1, "word", "prompt", redNamed), o(-1, "nothing", "a moment later", green)}, 0},
		{"missed", []*outcome{o(1, "word", "prompt", green)}, 1},
		{"known", []*outcome{o(1, "date", "prompt", green)}, 0},
		{"known in part", []*outcome{o(1, "date", "prompt", green), o(2, "date", "prompt", red)}, 0},
		{"known and right", []*outcome{o(1, "date", "prompt", red), o(2, "date", "prompt", red), o(3, "date", "prompt", red)}, 1},
		{"too few to say", []*outcome{o(1, "date", "prompt", red), o(2, "date", "prompt", red)}, 0},
		{"known and right sometimes", []*outcome{o(1, "port", "prompt", red), o(2, "port", "prompt", red), o(3, "port", "prompt", red)}, 0},
		{"known elsewhere", []*outcome{o(1, "date", "stdout", green)}, 1},
		{"false alarm", []*outcome{o(-1, "UUID 4 / stdout", "a moment later", red)}, 1},
		{"known alarm", []*outcome{o(-1, "UUID 4 / stdout + PID / prompt", "a moment later", red)}, 0},
		{"known alarm that is none", slices.Repeat([]*outcome{o(-1, "PID / prompt", "a moment later", green)}, enough), 1},
		{"hung", []*outcome{o(1, "date", "prompt", broken)}, 1},
	} {
		var said strings.Builder
		if err := check(c.of, &said); (err != nil) != (c.fails == 1) {
			t.Errorf("%s: %v: %s", c.name, err, said.String())
		}
	}
}

// TestReportIsWhole holds that outcomes survive the way into JSON and that the document has each table.
func TestReportIsWhole(t *testing.T) {
	o := &options{n: 1, seed: 1, modes: "jail"}
	outcomes := []*outcome{{Seed: 1, Index: 7, Mode: jailed, Change: 3, Kind: "date", Place: "prompt", Origin: inSource, Want: caught, Verdict: green}}
	text := o.document(outcomes)
	for _, part := range []string{"1 of 1: 100.0% (20.7 to 100.0)", "## By kind", "## By place", "| prompt | date | jail | green | 1 | `-modes=jail -only 1/7`, change 3 |", "## What cannot be seen"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	b, err := json.Marshal(outcomes[0])
	var back outcome
	if err != nil || json.Unmarshal(b, &back) != nil || back != *outcomes[0] {
		t.Errorf("%s, %v", b, err)
	}
}
