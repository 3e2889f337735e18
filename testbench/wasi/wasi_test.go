package wasi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// TestTheSameTapeEveryTime holds what a tape is for: goroutines, maps, sleeps, random numbers of a Go program are the same in every
// run.
func TestTheSameTapeEveryTime(t *testing.T) {
	times := 50
	if testing.Short() {
		times = 5
	}
	c := &testbench.Config{Env: map[string]string{"B": "2", "A": "1"}, Seed: 7}
	first := run(t, c, nil, "all", "x").ended(t)
	if kinds := kindsOf(t, first.tape); kinds["clock_read"] < 10 || kinds["clock_sleep"] < 5 || kinds["random_read"] != 2 ||
		kinds["env_read"] != 2 || kinds["file_write"] != 1 {
		t.Errorf("the tape has %v", kinds)
	}
	for i := range times {
		again := run(t, c, nil, "all", "x").ended(t)
		if !bytes.Equal(again.tape, first.tape) || again.stdout != first.stdout {
			t.Fatalf("run %d differs:\n%s\nfirst:\n%s", i, again.stdout, first.stdout)
		}
	}
	other := run(t, &testbench.Config{Env: c.Env, Seed: 8}, nil, "all", "x").ended(t)
	if other.stdout == first.stdout {
		t.Error("another seed gives the same random numbers")
	}
}

// kindsOf counts the kinds of a tape's records.
func kindsOf(t testing.TB, tape []byte) map[string]int {
	t.Helper()
	kinds := map[string]int{}
	for line := range bytes.Lines(tape) {
		var r struct{ Kind struct{ Kind string } }
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		kinds[r.Kind.Kind]++
	}
	return kinds
}

func TestADayTakesNoTime(t *testing.T) {
	began := time.Now()
	r := run(t, nil, nil, "sleep", "8760h").ended(t)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("a year of sleep took %v", took)
	}
	if !bytes.Contains(r.tape, []byte(`{"kind":"clock_sleep","duration_ms":`)) {
		t.Errorf("no sleep on the tape:\n%s", r.tape)
	}
}

func TestFiles(t *testing.T) {
	r := run(t, nil, nil, "files").ended(t)
	want := `"one\ntwo\nthree\n"
6 6789 5 2026-01-01 00:00:00 +0000 UTC
moved.txt <nil>
. true d---------
a true d---------
a/b true d---------
a/link false L---------
a/moved.txt false ----------
a/seek.bin false ----------
remove a: Directory not empty <nil> <nil> remove none: No such file or directory
`
	if r.stdout != want {
		t.Errorf("got\n%s\nwant\n%s", r.stdout, want)
	}
}

func TestStandardInput(t *testing.T) {
	r := run(t, nil, &wasi.Options{Stdin: strings.NewReader(strings.Repeat("ab", 5000))}, "stdin").ended(t)
	if r.stdout != "10000 ABABABABABABABABABAB\n" {
		t.Errorf("got %q", r.stdout)
	}
	if n := bytes.Count(r.tape, []byte(`"path":"/dev/stdin"`)); n != 1 {
		t.Errorf("it stands %d times on the tape:\n%s", n, r.tape)
	}
}

// TestStandardInputThatNeverEnds: the limit holds while the module waits for others, too.
func TestStandardInputThatNeverEnds(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	r := run(t, nil, &wasi.Options{Stdin: in, Timeout: 100 * time.Millisecond}, "stdin")
	var limit *wasi.LimitError
	if !errors.As(r.err, &limit) || limit.Limit != "timeout" {
		t.Errorf("got %v", r.err)
	}
}

func TestExitStatus(t *testing.T) {
	r := run(t, nil, nil, "exit", "3")
	var exit *wasi.ExitError
	if !errors.As(r.err, &exit) || exit.Code != 3 || r.res == nil || r.res.ExitCode != 3 {
		t.Errorf("got %+v, %v", r.res, r.err)
	}
	if want := "prog.wasm: the module ended with status 3"; r.err.Error() != want {
		t.Errorf("got %q, want %q", r.err, want)
	}
	run(t, nil, nil, "exit", "0").ended(t)
	if r := run(t, nil, nil, "panic"); !errors.As(r.err, &exit) || exit.Code != 2 || !strings.Contains(r.stderr, "panic: no") {
		t.Errorf("a panic: got %v\n%s", r.err, r.stderr)
	}
}
