package corpus_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/corpus"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestRecordings sees that a recording of a released version opens, verifies and compares as the case says.
func TestRecordings(t *testing.T) {
	dir := t.TempDir()
	files, err := corpus.RecordingFiles()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	cases, err := corpus.Recordings()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 5 {
		t.Errorf("%d recordings", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { checkRecording(t, dir, &c) })
	}
}

func checkRecording(t *testing.T, dir string, c *corpus.Case) {
	rec := openRecording(t, dir, c)
	if m := rec.Manifest; m.ID != c.Get("id") || m.Exit == nil || fmt.Sprint(m.Exit.Code) != c.Get("exit") || !rec.Finished() {
		t.Errorf("manifest %+v", m)
	}
	v, err := verify.Verify(t.Context(), rec.Dir, &verify.Options{ConfigDir: t.TempDir()}) // where no key is
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Problems) > 0 || fmt.Sprint(v.Records) != c.Get("records") || fmt.Sprint(v.Blobs) != c.Get("blobs") {
		t.Errorf("verified %+v", v)
	}
	if got := saveTape(t, rec); got != c.Get("canonical") {
		t.Errorf("the tape saves to %s", got)
	}
	if _, err := rec.Tree(); err != nil {
		t.Error(err)
	}
	for _, f := range c.Fields {
		if f.Key != "faithful" && f.Key != "diverges" {
			continue
		}
		report, err := deck.Compare(filepath.Join(dir, f.Value), rec.Dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if report.Faithful() != (f.Key == "faithful") {
			t.Errorf("with %s: %s", f.Value, report)
		}
	}
}

// TestReplays replays the recordings that an older version of this program made, in the place of a machine that is gone.
func TestReplays(t *testing.T) {
	if err := deck.Available(); err != nil {
		t.Skip(err)
	}
	cases, err := corpus.Recordings()
	if err != nil {
		t.Fatal(err)
	}
	var packed []gate.Case
	for _, c := range cases {
		if c.Get("replays") != "" {
			packed = append(packed, gate.Case{Path: filepath.Join("recording", c.Get("packed")), Kind: gate.Packed})
		}
	}
	if len(packed) < 12 {
		t.Errorf("%d recordings", len(packed))
	}
	results, err := gate.Run(t.Context(), packed, &gate.Options{ConfigDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if n := results.Count(gate.Faithful); n == 0 {
		t.Errorf("none of %d is faithful", len(results.Results))
	}
	for _, r := range results.Results {
		t.Run(filepath.Base(r.Path), func(t *testing.T) {
			switch {
			case r.Status == gate.NoProgram:
				t.Skip(r.Why)
			case r.Status != gate.Faithful && r.Report != nil && slices.ContainsFunc(r.Report.Notes, func(n string) bool {
				return strings.HasSuffix(n, "is another file than was recorded")
			}):
				t.Skipf("another shell starts other processes, another Python reads other files: %s", r.Why)
			case r.Status != gate.Faithful:
				t.Errorf("%s: %s\n%s", r.Status, r.Why, r.First)
			}
		})
	}
}

func TestMain(m *testing.M) {
	deck.Enter()
	os.Exit(m.Run())
}

// openRecording opens the recording of a case, unpacked where it is packed.
func openRecording(t *testing.T, dir string, c *corpus.Case) *recording.Recording {
	t.Helper()
	var rec *recording.Recording
	var err error
	if file := c.Get("packed"); file != "" {
		place := t.TempDir()
		o := &library.UnpackOptions{Output: filepath.Join(place, "unpacked")}
		rec, err = library.Of(place).Unpack(t.Context(), filepath.Join(dir, file), o)
	} else {
		rec, err = recording.Open(filepath.Join(dir, c.Get("directory")))
	}
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// saveTape returns the SHA-256 of what the recording's tape is saved to.
func saveTape(t *testing.T, rec *recording.Recording) string {
	t.Helper()
	in, err := rec.OpenTape()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	w, err := tape.NewWriter(&out, in.Header())
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range in.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(out.Bytes()))
}
