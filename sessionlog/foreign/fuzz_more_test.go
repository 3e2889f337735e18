package foreign

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	f.Fuzz(func(t *testing.T, b []byte) { sound(t, importer, filepath.Join(dir, name), b) })
}

// sound imports what stands in b, from a file, as fuzzFile says.
func sound(t *testing.T, importer *Importer, path string, b []byte) {
	t.Helper()
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
}

// TestMutated imports each fixture some forty times (2,000 in the long form) with something in it changed, the same way in every run.
func TestMutated(t *testing.T) {
	found, err := filepath.Glob("testdata/*/*.json*")
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, "testdata/opencode/opencode.db")
	for _, path := range found {
		importer, ok := ByName(filepath.Base(filepath.Dir(path)))
		if e := filepath.Ext(path); !ok || e == logEnding || e == reportEnding {
			continue
		}
		t.Run(filepath.ToSlash(path), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), filepath.Base(path))
			random := rand.New(rand.NewPCG(1, 2))
			rounds := 10
			if os.Getenv("TAPEDECK_LONG") != "" {
				rounds = 2000
			}
			for range rounds {
				changed := mutated(random, b)
				sound(t, importer, file, changed)
				if t.Failed() {
					_ = os.WriteFile(filepath.Join(os.TempDir(), "tapedeck-mutated-"+filepath.Base(path)), changed, 0o600)
					return
				}
			}
		})
	}
}

// mutated returns b with one to four changes: a byte, a piece gone, twice or elsewhere, a token put in.
func mutated(r *rand.Rand, b []byte) []byte {
	tokens := []string{`{`, `}`, `[`, `]`, `"`, `,`, `:`, `null`, `true`, `-1e999`, `18446744073709551616`, `"\ud800"`, `"\u0000"`, "\x00", "\xff", "\n", `[[[[`, `{"type":`, `"id":"",`}
	out := slices.Clone(b)
	for range 1 + r.IntN(4) {
		at := r.IntN(len(out))
		end := min(len(out), at+1+r.IntN(40))
		piece := slices.Clone(out[at:end])
		switch r.IntN(5) {
		case 0:
			out[at] ^= byte(1 << r.IntN(8))
		case 1:
			out = slices.Delete(out, at, end)
		case 2:
			out = slices.Insert(out, at, piece...)
		case 3:
			out = slices.Insert(out, r.IntN(len(out)), piece...)
		default:
			out = slices.Insert(out, at, []byte(tokens[r.IntN(len(tokens))])...)
		}
		if len(out) == 0 {
			return []byte(" ")
		}
	}
	return out
}

func FuzzPi(f *testing.F)       { fuzzFile(f, "pi", "s.jsonl", "testdata/pi/*.jsonl") }
func FuzzQwen(f *testing.F)     { fuzzFile(f, "qwen-code", "s.jsonl", "testdata/qwen-code/*.jsonl") }
func FuzzATIF(f *testing.F)     { fuzzFile(f, "atif", "trajectory.json", "testdata/atif/*.json") }
func FuzzOpencode(f *testing.F) { fuzzFile(f, "opencode", "export.json", "testdata/opencode/*.json") }
