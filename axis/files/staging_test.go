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
