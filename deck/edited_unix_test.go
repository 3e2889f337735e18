//go:build unix

package deck_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// edited opens a copy of a recording of the corpus in which texts of the tape and the manifest are others.
func edited(t *testing.T, name string, texts ...string) *recording.Recording {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "corpus", "recording", name)))
	for _, file := range []string{recording.TapeName, recording.ManifestName} {
		path := filepath.Join(dir, file)
		b, errRead := os.ReadFile(path)
		text := strings.NewReplacer(texts...).Replace(string(b))
		err = errors.Join(err, errRead, os.WriteFile(path, []byte(text), 0o644))
	}
	rec, errOpen := recording.Open(dir)
	if err = errors.Join(err, errOpen); err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestWorse: a recording does not take the place of one that came to more.
func TestWorse(t *testing.T) {
	old := edited(t, "called")
	for name, test := range map[string]struct {
		texts   []string
		signals int
		want    string
	}{
		"the same":           {},
		"interrupted":        {signals: 1, want: "it was interrupted"},
		"an exit":            {texts: []string{`"code": 0`, `"code": 3`}, want: "it ended with exit 3, and the recorded one with exit 0"},
		"a status":           {texts: []string{`"status":200`, `"status":503`}, want: "503 Service Unavailable, 1 times instead of 0"},
		"no call of a model": {texts: []string{`"kind":"llm_call"`, `"kind":"x_call"`}, want: "it called no model, and the recorded one did so 1 times"},
	} {
		got, err := deck.Worse(old, edited(t, "called", test.texts...), test.signals)
		if err != nil || !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q, %v: want %q", name, got, err, test.want)
		}
	}
}

// TestOneFollowsMCP: where one of two recordings alone followed tool servers, and it talked with one, not all was compared.
func TestOneFollowsMCP(t *testing.T) {
	rec, done, err := library.UnpackTemp(t.Context(), filepath.Join("..", "corpus", "recording", "second-mcp.tar.zst"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	report, err := deck.Compare(edited(t, "printed").Dir, rec.Dir, &deck.CompareOptions{})
	if err != nil || !strings.Contains(strings.Join(report.NotCompared, "\n"), "axis mcp was on in one recording only") {
		t.Errorf("%v: %q", err, report.NotCompared)
	}
}

// TestHeadersOfTheProject: tapedeck.yaml has a header that compares left alone, and one compared that does not.
func TestHeadersOfTheProject(t *testing.T) {
	for _, test := range []struct{ name, config, want string }{
		{"User-Agent", "", "the header user-agent changed"},
		{"User-Agent", "headers: {ignore: [User-*]}\n", ""},
		{"X-Request-Id", "", ""},
		{"X-Request-Id", "headers: {compare: [x-request-id]}\n", "the header x-request-id changed"},
	} {
		tree := t.TempDir()
		if err := os.WriteFile(filepath.Join(tree, recording.ConfigName), []byte(test.config), 0o644); err != nil {
			t.Fatal(err)
		}
		recorded := func(value string) string {
			return edited(t, "called", "/tmp/demo/work", tree, `["User-Agent","demo"]`, fmt.Sprintf(`[%q,%q]`, test.name, value)).Dir
		}
		report, err := deck.Compare(recorded("one"), recorded("two"), nil)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := report.WriteText(&text, nil); err != nil || report.Faithful() != (test.want == "") || !strings.Contains(text.String(), test.want) {
			t.Errorf("%s with %q: want %q, %v:\n%s", test.name, test.config, test.want, err, &text)
		}
	}
}
