package cassette_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// lines returns a line for each event of a cassette, and its output as events give it.
func lines(t *testing.T, r *cassette.Reader) (all []string, output []byte) {
	t.Helper()
	for e, err := range r.Events(nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(e.Seq, e.TMS, e.Stream, e.G, inJSON(t, e.Chunk, e.Input, e.Frame, e.Service, e.Final), string(e.Bytes)))
		output = append(output, e.Bytes...)
	}
	return all, output
}

func inJSON(t *testing.T, v ...any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestCutAnywhere cuts every file at every byte where TAPEDECK_LONG is set, else at some and around the ends of some lines: what is
// left never looks finished, and Partial gives a begin of the whole.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	whole := record(t, &cassette.CreateOptions{ResolutionMS: 1})
	r, err := cassette.Open(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want, _ := lines(t, r)
	entries, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(whole, entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := range content {
			atEnd := (content[n] == '\n' || n > 0 && content[n-1] == '\n') && bytes.Count(content[:n], []byte("\n"))%4 == 0 || n+1 == len(content)
			if os.Getenv("TAPEDECK_LONG") == "" && n%64 != 0 && !atEnd {
				continue
			}
			if err := os.WriteFile(path, content[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			cutOpens(t, whole, want, fmt.Sprintf("%s of %d bytes", entry.Name(), n))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		cutOpens(t, whole, want, entry.Name()+" missing")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func cutOpens(t *testing.T, dir string, want []string, what string) {
	t.Helper()
	strict, strictErr := cassette.Open(dir, nil)
	if strictErr == nil {
		got, _ := lines(t, strict)
		strict.Close()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: opens, with %d events of %d", what, len(got), len(want))
		}
	} else if cassette.Code(strictErr) == "" {
		t.Fatalf("%s: %v is no refusal", what, strictErr)
	}
	r, err := cassette.Open(dir, &cassette.OpenOptions{Partial: true})
	if err != nil {
		t.Fatalf("%s: partial: %v", what, err)
	}
	defer r.Close()
	if (r.State() == cassette.StateFinished) != (strictErr == nil) {
		t.Fatalf("%s: %s, but %v", what, r.State(), strictErr)
	}
	if (r.Final() != nil) != (strictErr == nil) {
		t.Fatalf("%s: final %v, but %v", what, r.Final(), strictErr)
	}
	prefix(t, r, want, what)
}

// prefix sees that r has a begin of the events, and all output of them.
func prefix(t *testing.T, r *cassette.Reader, want []string, what string) {
	t.Helper()
	got, output := lines(t, r)
	if len(got) > len(want) || fmt.Sprint(got) != fmt.Sprint(want[:len(got)]) {
		t.Fatalf("%s: partial: %q is no begin of %q", what, got, want)
	}
	raw, err := r.RawOutput()
	if err != nil || !bytes.Equal(raw, output) {
		t.Fatalf("%s: output %q of events %q: %v", what, raw, output, err)
	}
	for _, err := range r.Derive(nil) {
		if err != nil {
			t.Fatal(what, err)
		}
	}
	if _, err := r.LastFrame(); err != nil {
		t.Fatal(what, err)
	}
}

const killedEnv = "CASSETTE_TEST_KILLED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		recordUntilKilled(dir)
	}
	if root := os.Getenv(lockEnv); root != "" {
		lockUntilKilled(root)
	}
	os.Exit(m.Run())
}

// recordUntilKilled records numbered lines, keys and sizes, and says on standard output when it has begun.
func recordUntilKilled(dir string) {
	r, err := cassette.Create(dir, &cassette.CreateOptions{ResolutionMS: 1, FrameEvery: 5 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	os.Stdout.Write([]byte("begun\n"))
	for i := 0; ; i++ {
		err := r.Output(fmt.Appendf(nil, "line %06d\r\n", i))
		switch i % 50 {
		case 7:
			err = r.Input([]byte("k"), "k")
		case 13:
			err = r.Resize(cassette.Size{Rows: 10 + i%7, Cols: 40})
		case 17:
			time.Sleep(time.Millisecond)
		}
		if err != nil {
			panic(err)
		}
	}
}

// TestKilled kills a recorder at several moments.
func TestKilled(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	kills := 4
	if os.Getenv("TAPEDECK_LONG") != "" {
		kills = 16
	}
	for i := range kills {
		dir := filepath.Join(t.TempDir(), "c")
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), killedEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i*i) * 7 * time.Millisecond) // the moment is what is tried
		cmd.Process.Kill()
		cmd.Wait()
		if _, err := cassette.Open(dir, nil); cassette.Code(err) != "unfinished" {
			t.Fatalf("%d: %v", i, err)
		}
		r, err := cassette.Open(dir, &cassette.OpenOptions{Partial: true})
		if err != nil {
			t.Fatal(i, err)
		}
		got, output := lines(t, r)
		for n, line := range bytes.SplitAfter(output, []byte("\r\n")) {
			if len(line) > 0 && string(line) != fmt.Sprintf("line %06d\r\n", n) {
				t.Fatalf("%d: line %d is %q", i, n, line)
			}
		}
		t.Logf("%d: %d events, %d bytes of output: %v", i, len(got), len(output), r.Unfinished())
		all += len(output)
		r.Close()
	}
	if all == 0 {
		t.Error("nothing is left of any")
	}
}
