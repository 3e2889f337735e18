package cassette_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/corpus"
)

var update = flag.Bool("update", false, "write the cassettes of the corpus that are not there yet")

// An outcome is what must come of a cassette of the corpus: its outcome.json.
type outcome struct {
	Shows    string             `json:"shows"`
	Strict   string             `json:"strict"`           // "loads", or the code of the refusal
	File     string             `json:"file,omitempty"`   // of the refusal
	Line     int                `json:"line,omitempty"`   // of the refusal
	Partial  string             `json:"partial"`          // the state that Partial says, or a code
	Events   int                `json:"events"`           // that Partial gives
	Bytes    int64              `json:"bytes"`            // of output that Partial gives
	Expect   *cassette.Binding  `json:"expect,omitempty"` // what is opened with
	Emulator *cassette.Emulator `json:"emulator,omitempty"`
}

// TestCorpus opens every cassette of the corpus.
func TestCorpus(t *testing.T) {
	t.Parallel()
	if *update {
		generate(t)
	}
	files, err := corpus.CassetteFiles()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil || len(entries) < 40 {
		t.Fatal(len(entries), err)
	}
	seen := map[string]bool{}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), entry.Name())
			sub, err := fs.Sub(files, entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(dir, sub); err != nil {
				t.Fatal(err)
			}
			want := readOutcome(t, dir)
			got := try(t, dir, want)
			if a, b := inJSON(t, got), inJSON(t, want); a != b {
				t.Errorf("%s\nis said to give\n%s", a, b)
			}
			if good := strings.HasPrefix(entry.Name(), "good-"); good != (got.Strict == "loads") {
				t.Errorf("%s", got.Strict)
			}
			seen[got.Strict] = true
		})
	}
	for _, code := range []string{"unfinished", "missing-file", "version", "no-id", "no-digest", "digest", "chunk-digest", "chunk-range",
		"sequence", "time", "feature", "no-emulator", "resolution", "bad-json", "not-bound", "emulator"} {
		if !seen[code] {
			t.Errorf("no cassette of the corpus is refused as %s", code)
		}
	}
}

func readOutcome(t *testing.T, dir string) *outcome {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "outcome.json"))
	if err != nil {
		t.Fatal(err)
	}
	o := new(outcome)
	if err := json.Unmarshal(b, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// try opens a cassette as want says, and says what came of it.
func try(t *testing.T, dir string, want *outcome) *outcome {
	t.Helper()
	got := &outcome{Shows: want.Shows, Strict: "loads", Expect: want.Expect, Emulator: want.Emulator}
	o := &cassette.OpenOptions{Expect: want.Expect, Emulator: want.Emulator}
	r, err := cassette.Open(dir, o)
	if err == nil {
		usable(t, r)
		r.Close()
	} else {
		got.Strict = cassette.Code(err)
		var at *cassette.FileError
		if errors.As(err, &at) {
			got.File, got.Line = at.File, at.Line
		}
		t.Log(err)
	}
	lazily(t, dir, err)
	o.Partial = true
	r, err = cassette.Open(dir, o)
	if err != nil {
		got.Partial = cassette.Code(err)
		return got
	}
	defer r.Close()
	got.Partial = string(r.State())
	events, output := lines(t, r)
	got.Events, got.Bytes = len(events), int64(len(output))
	return got
}

// lazily sees that a reader that checks late refuses of the output what one does that checks at once.
func lazily(t *testing.T, dir string, want error) {
	t.Helper()
	r, err := cassette.Open(dir, &cassette.OpenOptions{Lazy: true})
	if err != nil {
		return
	}
	defer r.Close()
	err = r.CheckOutput()
	for _, of := range []error{cassette.ErrDigest, cassette.ErrChunkDigest, cassette.ErrChunkRange} {
		if errors.Is(want, of) && !errors.Is(err, of) {
			t.Errorf("lazily %v, expected %v", err, want)
		}
	}
	if want == nil && err != nil {
		t.Error(err)
	}
}

// usable sees that everything can be done with what loads.
func usable(t *testing.T, r *cassette.Reader) {
	t.Helper()
	lines(t, r)
	for f, err := range r.Derive(nil) {
		if err != nil || len(f.Text) != f.Size.Rows {
			t.Fatal(f, err)
		}
	}
	for _, err := range r.Frames() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if r.Final() == nil || r.ScrubReport() == nil || r.State() != cassette.StateFinished {
		t.Fatal(r.Final(), r.ScrubReport(), r.State())
	}
}

// base is a cassette as the format's first producer writes one, by file.
func base() map[string]string {
	raw := "hello\r\n\x1b[1mworld\x1b[0m"
	return map[string]string{
		"output.raw":           raw,
		"output.jsonl":         chunk(1, 0, 0, raw[:7]) + chunk(4, 100, 7, raw[7:]),
		"input.jsonl":          `{"seq":2,"t_ms":0,"kind":"input","bytes":"aGkN","key":"enter"}` + "\n",
		"frames.jsonl":         `{"seq":3,"t_ms":0,"size":{"Rows":2,"Cols":8},"text":["hello",""],"cells":[[{"Char":104,"Mode":0,"FG":16777216,"BG":16777217},{"Char":101,"Mode":4,"FG":1,"BG":0}],[]],"cursor":{"Row":1,"Col":0,"Visible":true},"raw_start":0,"raw_end":7,"parser_offset":7}` + "\n",
		"service-events.jsonl": `{"seq":5,"t_ms":200,"payload":{"type":"final","data":[1,null,"x"]}}` + "\n",
		"final.json":           `{"seq":6,"t_ms":300,"exit":{"Code":0,"Signal":"","Exited":true,"Signaled":false,"Err":null},"duration_ms":312,"final_text":"done"}` + "\n",
		"scrub-report.json":    `{"status":"clean","rules":[],"hit_counts":{}}` + "\n",
		"manifest.json":        manifest(raw),
	}
}

func manifest(raw string) string {
	return fmt.Sprintf(`{
  "version": 1,
  "id": "base",
  "content_digest": {"sha256": "%x"},
  "harness": {"name": "codex", "capability": {"quota": true}},
  "command": {"argv": ["codex", "--no-alt-screen"], "workdir_policy": "temp"},
  "terminal": {"initial_rows": 2, "initial_cols": 8, "term": "xterm-256color", "pty_mode": {"raw": true}, "emulator": {"name": "vt10x", "version": "v0.0.0"}},
  "timing": {"resolution_ms": 100, "clock_policy": "monotonic-elapsed", "replay_default": "collapsed"},
  "provenance": {"os": "linux", "arch": "amd64", "recorded_at": "2026-05-01T00:00:00Z", "recorder_version": "first"}
}
`, sha256.Sum256([]byte(raw)))
}

func chunk(seq, ms, offset int, s string) string {
	return fmt.Sprintf(`{"seq":%d,"t_ms":%d,"offset":%d,"length":%d,"sha256":"%x"}`+"\n", seq, ms, offset, len(s), sha256.Sum256([]byte(s)))
}

// A made is a cassette of the corpus as it is made: the base with some files otherwise.
type made struct {
	name, shows string
	strict      string
	change      func(map[string]string)
	expect      *cassette.Binding
	emulator    *cassette.Emulator
}

func replace(file, old, new string) func(map[string]string) {
	return func(f map[string]string) {
		if !strings.Contains(f[file], old) {
			panic(file + " has no " + old)
		}
		f[file] = strings.Replace(f[file], old, new, 1)
	}
}

func without(file string) func(map[string]string) {
	return func(f map[string]string) { delete(f, file) }
}

func with(files ...string) func(map[string]string) {
	return func(f map[string]string) {
		for i := 0; i < len(files); i += 2 {
			f[files[i]] = files[i+1]
		}
	}
}

// generate writes what is not there yet; what is there is never changed.
func generate(t *testing.T) {
	t.Helper()
	for _, m := range made1() {
		dir := filepath.Join("..", "corpus", "cassettes", m.name)
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		files := base()
		m.change(files)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		o := try(t, dir, &outcome{Shows: m.shows, Expect: m.expect, Emulator: m.emulator})
		if o.Strict != m.strict {
			t.Errorf("%s: %s, expected %s", m.name, o.Strict, m.strict)
			os.RemoveAll(dir)
			continue
		}
		b, err := json.MarshalIndent(o, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "outcome.json"), append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
