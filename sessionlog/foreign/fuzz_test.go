package foreign

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// FuzzImport gives what a mutation of a transcript became to every importer that reads files: none panics, and what it emits can
// be written and read again.
func FuzzImport(f *testing.F) {
	for _, pattern := range []string{"testdata/*/made*", "testdata/pi/*.jsonl", "testdata/qwen-code/*.jsonl"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range found {
			if e := filepath.Ext(path); e == logEnding || e == reportEnding {
				continue
			}
			if b, err := os.ReadFile(path); err == nil {
				f.Add(b)
				f.Add(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))[:len(b)*2/3])
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "session-fuzz.jsonl")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, i := range importers {
			i.looks(path, b[:min(len(b), HeadSize)])
			log, _, _ := readAs(t, i, path)
			for line := range bytes.Lines(log) {
				e, err := sessionlog.ParseEvent(bytes.TrimSuffix(line, []byte("\n")))
				if err != nil {
					t.Fatalf("%s: %v\n%s", i.Name(), err, line)
				}
				again, err := sessionlog.AppendEvent(nil, e)
				if err != nil || string(again)+"\n" != string(line) {
					t.Fatalf("%s: %v\n%s%s", i.Name(), err, line, again)
				}
			}
		}
	})
}
