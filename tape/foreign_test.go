package tape_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// foreignScript is a producer in another language, in twenty lines. Its standard library has no BLAKE3, so it records what
// needs none, or takes it from elsewhere: BLAKE3 of nothing is a constant.
const foreignScript = `
import json, sys, time
begun, seq, out = time.monotonic(), 0, open(sys.argv[1], "w", encoding="utf-8", newline="\n")
NOTHING = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
def line(v):
    print(json.dumps(v, ensure_ascii=False), file=out)
def record(kind, **keys):
    global seq
    mono = int((time.monotonic() - begun) * 1000)
    line({"type": "record", "seq": seq, "phase": "user_script", "virtual_time_ms": 1767225600000 + mono,
          "monotonic_ms": mono, "kind": {"kind": kind, **keys}})
    seq += 1
line({"type": "header", "version": 1, "harn_version": "script 1", "argv": sys.argv[2:]})
record("clock_read", source="wall", value_ms=1767225600000)
record("clock_sleep", duration_ms=int(sys.argv[2]))
record("file_read", path="naïve \"a\"\n\u2028<&>", content_hash=NOTHING, len_bytes=0)
record("file_delete", path="b")
record("process_spawn", program="true", args=[], cwd=None, exit_code=0, duration_ms=1,
       stdout_payload={"content_hash": NOTHING, "text": ""}, stderr_payload={"content_hash": NOTHING, "text": ""})
`

// runForeign runs the script and returns its tape.
func runForeign(t *testing.T, sleep string) []byte {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: no tape of another language")
	}
	path := filepath.Join(t.TempDir(), "run.tape")
	if out, err := exec.Command(python, "-c", foreignScript, path, sleep).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestATapeOfAnotherLanguageLoads(t *testing.T) {
	t.Parallel()
	l := loadBytes(runForeign(t, "10"), nil)
	if l.err != nil {
		t.Fatal(l.err)
	}
	if h := l.reader.Header(); h.Producer != "script 1" || len(h.Argv) != 1 || h.Argv[0] != "10" || h.StartedAtUnixMS != nil {
		t.Errorf("header %+v", h)
	}
	if len(l.records) != 5 {
		t.Fatalf("%d records", len(l.records))
	}
	checkOrder(t, l, "")
	checkBlobs(t, l.records, nil, "whole")
	if got := l.records[1].Kind.(*tape.ClockSleep).DurationMS; got != 10 {
		t.Errorf("slept %d ms", got)
	}
	if got, want := l.records[2].Kind.(*tape.FileRead).Path, "naïve \"a\"\n\u2028<&>"; got != want {
		t.Errorf("path %q, want %q", got, want)
	}
	if got := l.records[4].Kind.(*tape.ProcessSpawn).Program; got != "true" {
		t.Errorf("program %q", got)
	}
}

// Saved by us, the tapes of two runs of the script differ in what the runs did, and in nothing else.
func TestTapesOfAnotherLanguageCompare(t *testing.T) {
	t.Parallel()
	same, other := foreignKinds(t, "10"), foreignKinds(t, "11")
	if again := foreignKinds(t, "10"); again != same {
		t.Errorf("equal runs:\n%s\n%s", same, again)
	}
	if want := strings.Replace(same, `"duration_ms":10`, `"duration_ms":11`, 1); other != want || other == same {
		t.Errorf("another sleep:\n%s\nwant\n%s", other, want)
	}
}

// foreignKinds returns what a run did, without when.
func foreignKinds(t *testing.T, sleep string) string {
	t.Helper()
	l := loadBytes(runForeign(t, sleep), nil)
	if l.err != nil {
		t.Fatal(l.err)
	}
	var b []byte
	for _, rec := range l.records {
		b = append(tape.AppendKind(b, rec.Kind), '\n')
	}
	return string(b)
}

func TestABrokenTapeOfAnotherLanguageFails(t *testing.T) {
	t.Parallel()
	whole := runForeign(t, "10")
	head, rest, _ := bytes.Cut(whole, []byte("\n"))
	head = append(bytes.Clone(head), '\n')
	replace := func(old, with string) []byte { return bytes.Replace(whole, []byte(old), []byte(with), 1) }
	for name, tt := range map[string]struct {
		in   []byte
		want error
		line int
	}{
		"empty":            {nil, tape.ErrEmpty, 1},
		"no header":        {rest, tape.ErrNoHeader, 1},
		"two headers":      {append(bytes.Clone(head), whole...), tape.ErrSecondHeader, 2},
		"newer":            {replace(`"version": 1`, `"version": 2`), tape.ErrVersion, 1},
		"not JSON":         {replace(`"duration_ms": 10`, `'duration_ms': 10`), tape.ErrNotJSON, 3},
		"a key is missing": {replace(`, "duration_ms": 10`, ``), tape.ErrMalformed, 3},
		"a float":          {replace(`"duration_ms": 10`, `"duration_ms": 10.0`), tape.ErrMalformed, 3},
		"a time below 0":   {replace(`"duration_ms": 10`, `"duration_ms": -5`), tape.ErrMalformed, 3},
		"torn":             {whole[:len(whole)-2], tape.ErrTorn, 6},
	} {
		var at *tape.LoadError
		if err := loadBytes(tt.in, nil).err; !errors.Is(err, tt.want) || !errors.As(err, &at) || at.Line != tt.line {
			t.Errorf("%s: %v, want %v on line %d", name, err, tt.want, tt.line)
		}
	}
}
