package foreign

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// fuzzFile imports whatever stands in a file: an error or a report, whose numbers are those of the events, all of which can be
// written to a log and read again; never a panic.
func fuzzFile(f *testing.F, kind, name string, seeds ...string) {
	for _, pattern := range seeds {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			f.Fatalf("no %s: %v", pattern, err)
		}
		for _, path := range found {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	importer, _ := ByName(kind)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		_, _ = Detect(path)
		turns, calls, results := 0, 0, 0
		r, err := importer.Import(context.Background(), path, func(e sessionlog.Event) error {
			switch e := e.(type) {
			case *sessionlog.LLMCompleted:
				turns++
			case *sessionlog.ToolRequested:
				calls += len(e.Calls)
			case *sessionlog.ToolCompleted:
				results += len(e.Results)
			}
			line, err := sessionlog.AppendEvent(nil, e)
			if err == nil {
				_, err = sessionlog.ParseEvent(line)
			}
			if err != nil {
				t.Errorf("%T: %v", e, err)
			}
			return nil
		})
		if r == nil {
			t.Fatalf("no report, %v", err)
		}
		if err == nil && (r.Turns != turns || r.Calls != calls || r.Results != results) {
			t.Errorf("%+v, got %d turns, %d calls, %d results", r, turns, calls, results)
		}
	})
}

func FuzzPi(f *testing.F)       { fuzzFile(f, "pi", "s.jsonl", "testdata/pi/*.jsonl") }
func FuzzQwen(f *testing.F)     { fuzzFile(f, "qwen-code", "s.jsonl", "testdata/qwen-code/*.jsonl") }
func FuzzATIF(f *testing.F)     { fuzzFile(f, "atif", "trajectory.json", "testdata/atif/*.json") }
func FuzzOpencode(f *testing.F) { fuzzFile(f, "opencode", "export.json", "testdata/opencode/*.json") }

// FuzzOpencodeDatabase changes the JSON of a part in a database that is sound otherwise: a damaged one is SQLite's own to tell.
func FuzzOpencodeDatabase(f *testing.F) {
	fuzzFile(f, "opencode", "opencode.db", "testdata/opencode/opencode.db")
}
