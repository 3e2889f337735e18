package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/cas/castest"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func newStaging(t testing.TB, below cas.Store) *Staging {
	t.Helper()
	s, err := NewStaging(below, t.TempDir())
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStagingIsAStore(t *testing.T) {
	castest.Conformance(t, func(t *testing.T) cas.Store { return newStaging(t, cas.NewMemory()) })
}

// TestStagingOfLateSecrets: what is hidden late is put where a tree on the disk can name it.
func TestStagingOfLateSecrets(t *testing.T) {
	root, below := t.TempDir(), cas.NewMemory()
	model{"conf": "key=" + secretWord}.build(t, root)
	s := newStaging(t, below)
	after := snap(t, root, &SnapOptions{Store: s, Scrubber: blind{}})
	found := &Tree{Root: root, Partial: true, Entries: after.Entries, Absent: []string{"named-" + secretWord, "other"}}
	changed, err := HideLate(&LateOptions{Store: s, Late: fakeScrubber{}, All: fakeScrubber{}}, found)
	if err != nil || changed == 0 {
		t.Fatalf("%d, %v", changed, err)
	}
	e, _ := found.Lookup("conf")
	if _, err := below.Get(e.Digest); err != nil || e.Secret == "" {
		t.Errorf("%+v: %v", e, err)
	}
	if len(found.Absent) != 1 || found.NotCovered[0] != (NotCovered{"named-" + placeholder, SecretName}) {
		t.Errorf("absent %q, not covered %v", found.Absent, found.NotCovered)
	}
}

// TestStagingKeepsShortTextsOutOfTheStore: and gives everything back.
func TestStagingKeepsShortTextsOutOfTheStore(t *testing.T) {
	below := openStore(t, filepath.Join(t.TempDir(), "s"))
	s := newStaging(t, below)
	for text, staged := range map[string]bool{
		"": true, "short": true, strings.Repeat("x", tape.InlineLimit): true, strings.Repeat("x", tape.InlineLimit+1): false, "no text \xff": false,
	} {
		d, err := s.Put([]byte(text))
		must(t, err)
		if b, err := s.Get(d); err != nil || string(b) != text {
			t.Errorf("%.20q: %.20q, %v", text, b, err)
		}
		if _, err := below.Size(d); (err != nil) != staged {
			t.Errorf("%.20q below: %v", text, err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(s.file.Name())); err == nil && len(left) > 0 && s.path == "" {
		t.Errorf("%s is left", left[0].Name())
	}
}

// TestAfterOfTextsOnTheTape: a recording has no blobs of the short texts that its records hold; what is made of it has them all
// the same.
func TestAfterOfTextsOnTheTape(t *testing.T) {
	text := []byte("on the tape")
	d := cas.Sum(text)
	rec := &tape.Record{Kind: &tape.FileWrite{File: tape.File{
		Path: "a", Mode: "100644", ContentHash: d, LenBytes: int64(len(text)), Content: &tape.Payload{Hash: d, Len: int64(len(text)), Text: string(text), Inline: true},
	}}}
	records := func(yield func(*tape.Record, error) bool) { yield(rec, nil) }
	s := newStaging(t, cas.NewMemory())
	after, err := After(&Tree{}, records, s)
	must(t, err)
	to := t.TempDir()
	must(t, Apply(to, Changes(&Tree{}, after), s, false))
	if b, err := os.ReadFile(filepath.Join(to, "a")); err != nil || string(b) != string(text) {
		t.Errorf("%q, %v", b, err)
	}
	tape.ChangedFile(rec.Kind).Content.Text = "changed"
	if _, err := After(&Tree{}, records, s); err == nil {
		t.Error("a text that is not what its hash says is taken")
	}
}
