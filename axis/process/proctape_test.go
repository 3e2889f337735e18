package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// readCalls reads a process tape that is there.
func readCalls(t *testing.T, path string) (text string, calls []process.Call) {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("it is not here:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if calls, err = process.ReadCalls(strings.NewReader(string(b)), path); err != nil {
		t.Fatal(err)
	}
	return string(b), calls
}

func written(t testing.TB, calls []process.Call) string {
	t.Helper()
	var b strings.Builder
	if err := process.WriteCalls(&b, calls); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestProcessTapeIsWrittenAsItStood reads process tapes, of which one is another producer's, and writes them back.
func TestProcessTapeIsWrittenAsItStood(t *testing.T) {
	for name, path := range map[string]string{
		"harn": filepath.Join("..", "..", "..", "shared", "samples", "harn", "process-tape.json"),
		"ours": filepath.Join("testdata", "calls.process-tape.json"),
	} {
		t.Run(name, func(t *testing.T) {
			text, calls := readCalls(t, path)
			if diff := cmp.Diff(text, written(t, calls)); diff != "" {
				t.Errorf("written otherwise than it was read (-read +written):\n%s", diff)
			}
		})
	}
}

func TestReadCalls(t *testing.T) {
	_, calls := readCalls(t, filepath.Join("testdata", "calls.process-tape.json"))
	dir := "src/<app>"
	want := []process.Call{{
		Program: "git", Args: []string{"commit", "-m", "say \"hé\"\n\x00"}, Cwd: &dir,
		Env:    map[string]string{"A": "1", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z"},
		Stdout: "[main 1a2b3c4] say \"hé\"\n", DurationMS: 42,
		Changes: []process.Change{
			{Path: ".git/HEAD", Content: []byte("ref: refs/heads/main\n"), Perm: 0o644},
			{Path: ".git/index", Content: []byte("DIRC\xff"), Perm: 0o644},
			{Path: "build.sh", Content: []byte{}, Perm: 0o755},
			{Path: "old", Deleted: true},
		},
		Extra: []tape.Field{{Name: "recorded_by", Value: []byte(`{"name":"another", "version":[1,2]}`)}},
	}, {
		Program: "cat", Args: []string{"\xff.txt"}, Env: map[string]string{}, Stdout: "\x89PNG", ExitCode: 137,
		DurationMS: 9223372036854, Signal: "SIGKILL", Failure: process.FailureCancelled,
	}}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadCallsRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:                                    "want a JSON list of calls",
		`{"program":"ls"}`:                    "want a JSON list of calls",
		"\ufeff[]":                            "byte order mark",
		`[{"program":"ls"}] x`:                "something stands behind the value",
		`[{"program":"ls"}`:                   "does not go on",
		`[{"program":"ls"},{"args":["a"]}]`:   "call 2: ",
		`[{"args":["a"]}]`:                    "a call needs a program",
		`[{"program":"ls","exit_code":1.5}]`:  "want an integer",
		`[{"program":"ls","duration_ms":-1}]`: "a command cannot last -1 ms",
		`[{"program":"ls","duration_ms":9223372036855}]`:            "a command cannot last",
		`[{"program":"ls","exit_code":4294967296}]`:                 "no program exits with",
		`[{"program":"ls","args":"a"}]`:                             "want a list",
		`[{"program":"ls","cwd":1}]`:                                "want a string",
		`[{"program":"ls","program":"cat"}]`:                        `"program" stands twice`,
		`[{"program":"ls","env":{"A":"1","A":"2"}}]`:                `"A" stands twice`,
		`[{"program":"ls","raw":{"stdout":"!"}}]`:                   `"stdout" is not base64`,
		`[{"program":"ls","changes":[{"content":"x"}]}]`:            "a changed file needs a path",
		`[{"program":"ls","changes":[{"path":"x","base64":"!"}]}]`:  "want base64",
		`[{"program":"ls","changes":[{"path":"x","delete":true}]}]`: "is no key of a changed file",
		"[{\"program\":\"\xff\"}]":                                  "UTF-8",
	} {
		_, err := process.ReadCalls(strings.NewReader(in), "some.process-tape.json")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "some.process-tape.json") {
			t.Errorf("%s: want an error with %q, got %v", in, want, err)
		}
	}
}

func TestReadCallsOfNothing(t *testing.T) {
	calls, err := process.ReadCalls(strings.NewReader(" [ ] \n"), "empty")
	if err != nil || calls == nil || len(calls) != 0 {
		t.Errorf("%#v, %v", calls, err)
	}
	if got := written(t, nil); got != "[]\n" {
		t.Errorf("%q", got)
	}
}

// TestRawOfAnotherString leaves text alone that raw does not fit: somebody edited one and not the other.
func TestRawOfAnotherString(t *testing.T) {
	in := `[{"program":"ls","stdout":"edited","raw":{"stdout":"/w==","args.7":"/w==","nonsense":"/w=="}}]`
	calls, err := process.ReadCalls(strings.NewReader(in), "raw")
	if err != nil || calls[0].Stdout != "edited" {
		t.Errorf("%+v, %v", calls, err)
	}
}

func TestWriteCallsRefusesAnEnvironmentWithoutText(t *testing.T) {
	err := process.WriteCalls(new(strings.Builder), []process.Call{{Program: "a"}, {Program: "b", Env: map[string]string{"A": "\xff"}}})
	if err == nil || !strings.Contains(err.Error(), "call 2") {
		t.Error(err)
	}
}

// FuzzReadCalls reads anything: what is read can be written, and is read again as the same.
func FuzzReadCalls(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[{"program":"git","args":["status"],"cwd":null,"env":{},"stdout":"x","stderr":"","exit_code":0,"duration_ms":42}]`,
		`[{"program":"a","args":["\ufffd"],"raw":{"args.0":"/w=="},"x":[1.0e5,{}],"changes":[{"path":"p","base64":"/w=="}]}]`,
		`[{"program":"\ud800","cwd":"","env":{"":""},"signal":"","failure":"","duration_ms":9223372036854}]`,
	} {
		f.Add([]byte(seed))
	}
	if b, err := os.ReadFile(filepath.Join("testdata", "calls.process-tape.json")); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		calls, err := process.ReadCalls(strings.NewReader(string(b)), "fuzz")
		if err != nil {
			return
		}
		text := written(t, calls)
		again, err := process.ReadCalls(strings.NewReader(text), "written")
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if second := written(t, again); second != text {
			t.Fatalf("written otherwise the second time:\n%s\n%s", text, second)
		}
		if !reflect.DeepEqual(normal(calls), normal(again)) {
			t.Fatal(cmp.Diff(calls, again))
		}
	})
}

// normal makes what reads the same the same: no arguments, no variables, no bytes.
func normal(calls []process.Call) []process.Call {
	for i := range calls {
		if c := &calls[i]; len(c.Args) == 0 {
			c.Args = nil
		}
		if c := &calls[i]; len(c.Env) == 0 {
			c.Env = nil
		}
		if c := &calls[i]; len(c.Changes) == 0 {
			c.Changes = nil
		}
		for j := range calls[i].Changes {
			if c := &calls[i].Changes[j]; len(c.Content) == 0 || c.Deleted {
				c.Content = nil
			}
		}
	}
	return calls
}
