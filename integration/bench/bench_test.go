package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

const benchOutput = `goos: linux
cpu: A Processor
BenchmarkAppend/big-2    	       2	 996.83 MB/s	      2143 ns/record	         3.259 x-raw
BenchmarkAppend/big-2    	       2	 996.83 MB/s	      2000 ns/record	         2.5 x-raw
BenchmarkAppend/big-2    	       2	 996.83 MB/s	      1999 ns/record	         9.0 x-raw
BenchmarkOne 	       1	 400 ns/op
--- BENCH: BenchmarkOne
    x_test.go:1: 12 ns/op of prose
BenchmarkTwo-16          	 1000000	      1.0e+03 ns/op	       0 B/op	       0 allocs/op
PASS
ok  	example.com/x	2.240s
`

func TestParseBenches(t *testing.T) {
	bs := parseBenches(benchOutput)
	if len(bs) != 3 {
		t.Errorf("%d benchmarks, want 3: %v", len(bs), bs)
	}
	for _, tt := range []struct {
		name, unit string
		want       float64
	}{
		{"BenchmarkAppend/big", "x-raw", 3.259},
		{"BenchmarkAppend/big", "ns/record", 2000},
		{"BenchmarkOne", "ns/op", 400},
		{"BenchmarkTwo", "ns/op", 1000},
		{"BenchmarkTwo", "allocs/op", 0},
	} {
		if got, err := bs.median(tt.name, tt.unit); got != tt.want || err != nil {
			t.Errorf("%s %s: %v, %v, want %v", tt.name, tt.unit, got, err, tt.want)
		}
	}
	got, err := ratio("BenchmarkOne", "BenchmarkTwo")(bs)
	if want := "400 ns against 1.00 µs"; got.value != 0.4 || got.beside != want || err != nil {
		t.Errorf("ratio: %+v, %v, want 0.4, %s", got, err, want)
	}
	if _, err := metric("BenchmarkAppend/big", "x-other")(bs); err == nil || !strings.Contains(err.Error(), "BenchmarkAppend/big x-raw") {
		t.Errorf("a metric that is missing: %v, want an error that names those there are", err)
	}
}

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		target       target
		value        float64
		met          bool
		unit, phrase string
	}{
		{atMost(3), 3, true, "x", "≤ 3x"},
		{atMost(3), 3.01, false, "x", "≤ 3x"},
		{atLeast(0.7), 0.69, false, "x", "≥ 0.7x"},
		{atLeast(0.7), 0.7, true, "x", "≥ 0.7x"},
		{below(64), 64, false, "MiB", "< 64 MiB"},
		{target{}, 1e9, true, "ms", ""},
	} {
		if got := tt.target.met(tt.value); got != tt.met {
			t.Errorf("%+v of %v: met %v, want %v", tt.target, tt.value, got, tt.met)
		}
		if got := tt.target.text(tt.unit); got != tt.phrase {
			t.Errorf("%+v: %q, want %q", tt.target, got, tt.phrase)
		}
	}
}

// fixed is a source of one reading.
type fixed struct {
	reading
	err error
}

func (fixed) how(bool) string { return "thought up" }

func (f fixed) measure(context.Context, *env) (reading, error) { return f.reading, f.err }

var errBroken = errors.New("it broke |\nin two")

// inventions are rows of every state.
func inventions() []group {
	lacking := func(context.Context, *env) string { return "a tool (install with apt-get install tool)" }
	return []group{{title: "Inventions", rows: []row{
		{name: "x/met", what: "a", unit: "x", target: atMost(3), from: fixed{reading: reading{value: 2.5, beside: "so | so"}}},
		{name: "x/missed", what: "b", unit: "ms", target: below(5), from: fixed{reading: reading{value: 7}}},
		{name: "x/told", what: "c", unit: "ms", from: fixed{reading: reading{value: 123.4}}},
		{name: "x/failed", what: "d", unit: "x", from: fixed{err: errBroken}},
		{name: "x/lacking", what: "e", unit: "x", from: fixed{}, needs: []need{lacking}},
		{name: "y/left", what: "f", unit: "x", from: fixed{}},
	}}}
}

const wantTable = `| row | what is measured | target | measured | |
|---|---|---|---|---|
| x/met | a | ≤ 3x | **2.50x** (so \| so) | met |
| x/missed | b | < 5 ms | **7.00 ms** | **missed** |
| x/told | c |  | **123 ms** |  |
| x/failed | d |  | failed: it broke \| in two | **failed** |
| x/lacking | e |  | not measured: needs a tool (install with apt-get install tool) |  |
| y/left | f |  | not measured: not chosen |  |

How:

- x/met, x/missed, x/told, x/failed, x/lacking, y/left: thought up
`

func TestReport(t *testing.T) {
	var page bytes.Buffer
	o := &options{rows: "^x/", date: "2026-01-02"}
	if err := measureAll(t.Context(), o, inventions(), &page, t.Output()); err == nil {
		t.Error("a row failed, and the whole did not")
	}
	for _, want := range []string{wantTable, "rows: 1 met, 1 missed, 1 told, 2 not measured, 1 failed\n", "date: 2026-01-02\n",
		"command: `" + measureCommand + " -rows '^x/' -date 2026-01-02`\n"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks\n%s\nit is\n%s", want, &page)
		}
	}
}

// TestSomeRowsAgain: a run of some rows leaves the others on the page as they were, with the commit that they are of.
func TestSomeRowsAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	grows := &curve{X: "agents", Y: "ms", Lines: []curveLine{{Name: "run", At: []float64{1, 10}, Values: []float64{2, 20}}}}
	again := func(value float64, chosen string) string {
		before, err := readKept(path)
		if err != nil {
			t.Fatal(err)
		}
		groups := []group{{title: "Inventions", rows: []row{
			{name: "x/one", what: "a", unit: "x", target: atMost(3), from: fixed{reading: reading{value: value, curve: grows}}},
			{name: "x/two", what: "b", unit: "x", target: atMost(value), from: fixed{reading: reading{value: value, beside: "so"}}},
		}}}
		rep := &report{Machine: &machine{Commit: fmt.Sprintf("c%g", value), Date: "2026-01-02"}}
		rep.measure(t.Context(), &env{log: io.Discard}, groups, regexp.MustCompile(chosen).MatchString, before)
		if err := rep.write(path); err != nil {
			t.Fatal(err)
		}
		return rep.markdown()
	}
	again(2, "")
	if page := again(1, "x/one"); !strings.Contains(page, "| x/one | a | ≤ 3x | **1.00x** | met |\n"+
		"| x/two | b | ≤ 1x | **2.00x** (so) at c2, 2026-01-02 | **missed** |\n") {
		t.Errorf("the page is\n%s", page)
	}
	if page := again(4, "x/two"); !strings.Contains(page, "**1.00x** at c1, 2026-01-02") || !strings.Contains(page, "| 10 | 20.0 |") {
		t.Errorf("the page is\n%s", page)
	}
}

func TestRowsThatTakeTooLong(t *testing.T) {
	slow := row{name: "x/slow", unit: "x", timeout: time.Millisecond, from: whole{"waits", func(ctx context.Context, _ *env) (reading, error) {
		<-ctx.Done()
		return reading{}, ctx.Err()
	}}}
	res := slow.begin(true)
	slow.measure(t.Context(), new(env), res)
	if res.State != stateFailed || !strings.Contains(res.Why, "longer than 1ms") {
		t.Errorf("%s: %s, want failed with the limit", res.State, res.Why)
	}
}

func TestChooseNamesTheRows(t *testing.T) {
	if _, err := choose("^none$", inventions()); err == nil || !strings.Contains(err.Error(), "x/met") {
		t.Errorf("a pattern without rows: %v, want an error that names rows", err)
	}
	seen := make(map[string]bool)
	for _, g := range groups {
		for _, r := range g.rows {
			if seen[r.name] || r.what == "" || r.unit == "" || r.from.how(false) == "" || r.from.how(true) == "" {
				t.Errorf("row %q: a name that no other has, what, unit and how are required", r.name)
			}
			seen[r.name] = true
		}
	}
}

func TestOffTime(t *testing.T) {
	due := []tape.Chunk{{Offset: 0, Length: 10, TMS: 1}, {Offset: 10, Length: 5, TMS: 20}, {Offset: 15, Length: 5, TMS: 40}}
	got, err := offTime(due, []arrival{{4, 1}, {15, 21}, {20, 38}}) // two chunks in one read, one chunk in two
	if want := []float64{1, 2, 20}; err != nil || len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if _, err := offTime(due, []arrival{{4, 1}}); err == nil {
		t.Error("an answer that ended early: no error")
	}
}

func TestModelRequest(t *testing.T) {
	for _, size := range []int{100, 2 << 10, 100 << 10} {
		body := modelRequest(3, size)
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			t.Fatal(err)
		}
		if last := m.Messages[len(m.Messages)-1]; last["content"] != question+" 3?" {
			t.Errorf("%d bytes: the last message is %v", size, last)
		}
		if len(body) < size || len(body) > size+400 {
			t.Errorf("%d bytes, want about %d", len(body), size)
		}
	}
}

// TestTinyRow measures a row of a real benchmark.
func TestTinyRow(t *testing.T) {
	tinyEnv(t)
	var stdout bytes.Buffer
	if err := measureAll(t.Context(), &options{short: true, rows: "^tape/nil-allocations$"}, groups, &stdout, t.Output()); err != nil {
		t.Fatal(err)
	}
	if want := "| ≤ 0 allocations | **0 allocations** | met |"; !strings.Contains(stdout.String(), want) {
		t.Errorf("the table lacks %q:\n%s", want, &stdout)
	}
}

// TestLoad has the load generator and the peer that is net/http talk to each other, as processes.
func TestLoad(t *testing.T) {
	e, err := newEnv(t.Context(), &options{short: true}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	s, err := startJSON(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.sendLoad(t.Context(), s, load{Bytes: 2000, Warm: 5, Requests: 50, Conns: 4})
	if err := errors.Join(err, s.stop()); err != nil {
		t.Fatal(err)
	}
	if p.Requests != 50 || p.Rate <= 0 || p.P50 <= 0 || p.P99 < p.P50 {
		t.Errorf("%+v, want 50 requests", p)
	}
}

// TestTalk has a client and a server of WebSockets talk to each other, as processes, for as many turns as they are asked for.
func TestTalk(t *testing.T) {
	e, err := newEnv(t.Context(), &options{short: true}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	srv, err := e.startJob(t.Context(), "echoes")
	if err != nil {
		t.Fatal(err)
	}
	defer srv.stop()
	c, err := e.startTalker(t.Context(), e.jobArgs("talk", talk{URL: "ws" + strings.TrimPrefix(srv.url, "http"), Bytes: 1024, Flight: 8}))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{20, 1} {
		if took, err := c.turn(n)(); err != nil || took <= 0 {
			t.Errorf("%d messages: %v, %v", n, took, err)
		}
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	if m := (&talk{Bytes: 1024}).message(7); len(m) != 1024 || !json.Valid(m) {
		t.Errorf("a message of %d bytes, want 1024 of JSON: %s", len(m), m)
	}
}
