package foreign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

var update = flag.Bool("update", false, "rewrite the goldens")

const (
	logEnding    = ".log"    // the session log, an event a line
	reportEnding = ".report" // the report, as JSON
)

// TestGolden imports every fixture: testdata/IMPORTER/NAME, a file or a folder, has its log in NAME.log and its report in
// NAME.report beside it. Fixtures that real programs wrote are made again by TestFixtures* in integration/agents.
func TestGolden(t *testing.T) {
	found, err := filepath.Glob("testdata/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if e := filepath.Ext(path); e == logEnding || e == reportEnding || filepath.Base(filepath.Dir(path)) == "fuzz" {
			continue
		}
		name, err := filepath.Rel("testdata", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			log, r, err := read(t, path)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Base(filepath.Dir(path)); r.Format != want {
				t.Errorf("detected as %s, want %s", r.Format, want)
			}
			report, err := json.MarshalIndent(r, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, path+logEnding, log)
			golden(t, path+reportEnding, append(report, '\n'))
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// read imports what Detect takes path for, and returns its events, one a line.
func read(t testing.TB, path string) ([]byte, *Report, error) {
	t.Helper()
	i, err := Detect(path)
	if err != nil {
		return nil, nil, err
	}
	return readAs(t, i, path)
}

func readAs(t testing.TB, i *Importer, path string) ([]byte, *Report, error) {
	t.Helper()
	var log []byte
	r, err := i.Import(context.Background(), path, func(e sessionlog.Event) error {
		var err error
		log, err = sessionlog.AppendEvent(log, e)
		log = append(log, '\n')
		return err
	})
	if r != nil { // paths differ between systems
		r.File = filepath.ToSlash(r.File)
		for n := range r.Notes {
			r.Notes[n] = filepath.ToSlash(r.Notes[n])
		}
	}
	return log, r, err
}

// fixture writes a transcript and returns its path.
func fixture(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// real gives each fixture that is one file of lines.
func realLines(t *testing.T, each func(t *testing.T, path string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(path) != ".jsonl" || strings.Contains(path, "fuzz") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t.Run(filepath.ToSlash(path), func(t *testing.T) { each(t, path, content) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSameOtherwise: a byte order mark, CRLF, empty lines and a missing last newline change nothing.
func TestSameOtherwise(t *testing.T) {
	realLines(t, func(t *testing.T, path string, content []byte) {
		want, _, err := read(t, path)
		if err != nil {
			t.Skip(err) // a part of a folder
		}
		for what, other := range map[string][]byte{
			"mark":  append([]byte(byteOrderMark), content...),
			"CRLF":  bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n")),
			"empty": bytes.ReplaceAll(content, []byte("\n"), []byte("\n\n \n")),
			"end":   bytes.TrimSuffix(content, []byte("\n")),
		} {
			got, _, err := read(t, fixture(t, filepath.Base(path), other))
			if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s: another log", what)
			}
		}
	})
}

// TestTorn cuts each fixture in the middle of its last line: that line is dropped and said. Cut in the middle of another line it
// is an error that names the file and the line.
func TestTorn(t *testing.T) {
	realLines(t, func(t *testing.T, path string, content []byte) {
		if _, _, err := read(t, path); err != nil {
			t.Skip(err)
		}
		lines := bytes.SplitAfter(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
		last := len(lines) - 1
		cut := append(bytes.Join(lines[:last], nil), lines[last][:len(lines[last])/2]...)
		torn := fixture(t, filepath.Base(path), cut)
		if _, r, err := read(t, torn); err != nil {
			t.Errorf("torn: %v", err)
		} else if !strings.Contains(strings.Join(r.Notes, "\n"), "is cut off") {
			t.Errorf("torn: nothing is said: %q", r.Notes)
		}
		cut = bytes.Join(append(append([][]byte{}, lines[:last-1]...), lines[last-1][:len(lines[last-1])/2], []byte("\n"), lines[last]), nil)
		_, _, err := read(t, fixture(t, filepath.Base(path), cut))
		var e *Error
		if !errors.As(err, &e) || e.Line != last {
			t.Errorf("broken line %d: %v", last, err)
		}
	})
}
