//go:build daemon

package daemon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"
)

// An ack is one acknowledgement that a writer printed.
type ack struct {
	Task, N, Count int
	Base           *int // nil of a tool call
	Lost           bool
}

// A writer is a client that writes turns.
type writer struct {
	cmd  *exec.Cmd
	run  string
	errs bytes.Buffer
	acks chan ack // closed when it has ended
}

const agent = "writer"

func startWriter(t *testing.T, s *server, file, run string) *writer {
	t.Helper()
	w := &writer{run: run, acks: make(chan ack, 1<<16)}
	w.cmd = script(t, file, "--url", s.place(), "--token="+s.token(s.TokenFile), "--agent", agent, "--run", run)
	w.cmd.Stderr = &w.errs
	stdout, err := w.cmd.StdoutPipe()
	must(t, err)
	must(t, w.cmd.Start())
	go func() {
		defer close(w.acks)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var a ack
			if json.Unmarshal(lines.Bytes(), &a) != nil {
				fmt.Fprintf(&w.errs, "%s\n", lines.Bytes())
			}
			w.acks <- a
		}
	}()
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	return w
}

// some waits for n acknowledgements and gives them.
func (w *writer) some(t *testing.T, n int) (acks []ack) {
	t.Helper()
	for range n {
		select {
		case a, ok := <-w.acks:
			if !ok {
				t.Fatalf("the writer ended early: %s", &w.errs)
			}
			acks = append(acks, a)
		case <-time.After(20 * time.Second):
			t.Fatal("no acknowledgement within 20 s")
		}
	}
	return acks
}

// rest gives what it printed to its end.
func (w *writer) rest(t *testing.T) (acks []ack) {
	t.Helper()
	late := time.AfterFunc(20*time.Second, func() { _ = w.cmd.Process.Kill() })
	defer late.Stop()
	for a := range w.acks {
		acks = append(acks, a)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Fatalf("the writer: %v\n%s", err, &w.errs)
	}
	return acks
}

type record struct {
	Record     string
	Index      int
	Status     string
	Tool       string
	Parameters struct{ Task, N int }
	Output     json.RawMessage
}

// check holds a trace against what was acknowledged: every acknowledged turn stands there once, where it was said to stand; the
// turns of one task stand in its order; those that were not acknowledged may be there; the run is over, and incomplete.
func (w *writer) check(t *testing.T, s *server, acks []ack, file string) {
	t.Helper()
	onDisk := readLines(t, filepath.Join(s.Data, "runs", agent, w.run+".jsonl"))
	trace := readTrace(t, s, w.run, file)
	if !reflect.DeepEqual(onDisk, trace) {
		t.Errorf("get_trace has %d records and the file has %d, or they differ", len(trace), len(onDisk))
	}
	if len(trace) < 2 || trace[0].Record != "started" || trace[len(trace)-1].Record != "ended" || trace[len(trace)-1].Status != "incomplete" {
		t.Fatalf("the trace of %d records does not begin and end as it must", len(trace))
	}
	next, seen := map[int]int{}, map[[2]int]int{}
	for i, r := range trace[1 : len(trace)-1] {
		if r.Record != "turn" || r.Index != i {
			t.Fatalf("record %d is %+v", i+1, r)
		}
		p := r.Parameters
		if p.N != next[p.Task] {
			t.Fatalf("turn %d of task %d is its number %d, want %d", i, p.Task, p.N, next[p.Task])
		}
		next[p.Task]++
		seen[[2]int{p.Task, p.N}] = i
	}
	turns := 0
	for _, a := range acks {
		turns += a.Count
		for n := range a.Count {
			at, ok := seen[[2]int{a.Task, a.N + n}]
			if !ok || a.Base != nil && at != *a.Base+n {
				t.Fatalf("an acknowledged turn is not where it was said to be: %+v, found %t at %d", a, ok, at)
			}
		}
	}
	t.Logf("%d turns, %d acknowledged", len(trace)-2, turns)
}

func readLines(t *testing.T, path string) (records []record) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	for line := range bytes.Lines(b) {
		var r record
		if err := json.Unmarshal(line, &r); err != nil || line[len(line)-1] != '\n' {
			t.Fatalf("%s: %v in %q", path, err, line)
		}
		records = append(records, r)
	}
	return records
}

// readTrace asks for it with a client that is not ours.
func readTrace(t *testing.T, s *server, run, file string) []record {
	t.Helper()
	cmd := script(t, file, "--url", s.place(), "--token="+s.token(s.TokenFile), "--agent", agent, "--run", run, "--read")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	b, err := cmd.Output()
	var trace struct{ Records []record }
	if err != nil || json.Unmarshal(b, &trace) != nil {
		t.Fatalf("read: %v\n%s\n%s", err, b, &errs)
	}
	return trace.Records
}

// The daemon is killed while both clients write; each time it comes up again with everything that it acknowledged.
func TestKilled(t *testing.T) {
	times := 3
	if os.Getenv("TAPEDECK_LONG") != "" {
		times = 30
	}
	s := serve(t, "--grace", "0s")
	for i := range times {
		writers := map[string]*writer{
			"python/writer.py": startWriter(t, s, "python/writer.py", fmt.Sprintf("python-%d", i)),
			"node/writer.mjs":  startWriter(t, s, "node/writer.mjs", fmt.Sprintf("node-%d", i)),
		}
		acks := map[string][]ack{}
		for file, w := range writers {
			acks[file] = w.some(t, 50+rand.IntN(100))
		}
		s.kill()
		for file, w := range writers {
			acks[file] = append(acks[file], w.rest(t)...)
		}
		before := s.token(s.TokenFile) // a killed one leaves it
		s.again()
		if before == s.token(s.TokenFile) {
			t.Error("the token is that of the daemon that was killed")
		}
		for file, w := range writers {
			w.check(t, s, acks[file], file)
		}
	}
	s.stop()
}

// It is told to stop while both clients write: what was acknowledged is there, runs end as incomplete.
func TestStoppedWhileTurnsAreWritten(t *testing.T) {
	s := serve(t)
	writers := map[string]*writer{
		"python/writer.py": startWriter(t, s, "python/writer.py", "python"),
		"node/writer.mjs":  startWriter(t, s, "node/writer.mjs", "node"),
	}
	acks := map[string][]ack{}
	for file, w := range writers {
		acks[file] = w.some(t, 100)
	}
	s.stop()
	for file, w := range writers {
		acks[file] = append(acks[file], w.rest(t)...)
	}
	s.again()
	for file, w := range writers {
		w.check(t, s, acks[file], file)
	}
	s.stop()
}

// A tool that runs when it is told to stop ends, and its turn and its reply come.
func TestStoppedWhileAToolRuns(t *testing.T) {
	s := serve(t)
	cmd := script(t, "python/stopping.py", s.place(), s.token(s.TokenFile), "stopped")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "called\n" {
		t.Fatalf("got %q, %v\n%s", line, err, &errs)
	}
	must(t, s.cmd.Process.Signal(syscall.SIGTERM))
	time.Sleep(200 * time.Millisecond) // nothing says that the signal has arrived
	_, err = io.WriteString(stdin, "go on\n")
	must(t, err)
	line, _ := lines.ReadString('\n')
	if err := cmd.Wait(); err != nil || line != "ok\n" {
		t.Errorf("got %q, %v\n%s", line, err, &errs)
	}
	<-s.end
	if s.err != nil {
		t.Errorf("serve ended with %v", s.err)
	}
	records := readLines(t, filepath.Join(s.Data, "runs", "stopping", "stopped.jsonl"))
	var kinds []string
	for _, r := range records {
		kinds = append(kinds, r.Record+" "+r.Tool+r.Status)
	}
	if want := []string{"started ", "turn first", "turn slow", "ended incomplete"}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("got records %q, want %q", kinds, want)
	}
}

// The index is not what the traces live by: without it, or with rubbish in its place, the daemon comes up with all runs.
func TestWithoutItsIndex(t *testing.T) {
	s := serve(t, "--grace", "0s")
	w := startWriter(t, s, "python/writer.py", "run")
	acks := w.some(t, 50)
	s.kill()
	acks = append(acks, w.rest(t)...)
	for _, damage := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("rubbish "), 4096), 0o600) },
		func(path string) error { return os.Truncate(path, 100) },
	} {
		index, err := filepath.Glob(filepath.Join(s.Data, "index.sqlite*"))
		must(t, err)
		if len(index) == 0 {
			t.Fatal("there is no index")
		}
		for _, path := range index {
			if filepath.Base(path) == "index.sqlite" {
				must(t, damage(path))
			} else {
				must(t, os.Remove(path))
			}
		}
		s.again()
		w.check(t, s, acks, "python/writer.py")
		s.stop()
	}
}
