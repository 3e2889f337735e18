package corpus_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/corpus"
)

var add = flag.Bool("add", false, "add the cases that are not frozen yet to frozen.sum")

// TestFrozen sees every case as it was when it was added.
func TestFrozen(t *testing.T) {
	frozen := readFrozen(t)
	var fresh strings.Builder
	for _, path := range frozenPaths(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, got := filepath.ToSlash(path), fmt.Sprintf("%x", sha256.Sum256(b))
		switch want, ok := frozen[name]; {
		case !ok && *add:
			fmt.Fprintf(&fresh, "%s  %s\n", got, name)
		case !ok:
			t.Errorf("%s is not frozen: go test ./corpus -add", name)
		case got != want:
			t.Errorf("%s was changed: a case is added, never changed", name)
		}
		delete(frozen, name)
	}
	for name := range frozen {
		t.Errorf("%s is gone: a case stays for ever", name)
	}
	appendFrozen(t, fresh.String())
}

// frozenPaths returns the cases, and every file of a recording, of a cassette and of a sealed recording.
func frozenPaths(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("*/*.case")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"recording", "cassettes", "seals"} {
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) != ".case" {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// readFrozen returns the digests of frozen.sum by path, as sha256sum writes them.
func readFrozen(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("frozen.sum")
	if err != nil && (!*add || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(b)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || all[name] != "" {
			t.Fatalf("frozen.sum: %q", line)
		}
		all[name] = sum
	}
	return all
}

func appendFrozen(t *testing.T, lines string) {
	t.Helper()
	if lines == "" {
		return
	}
	f, err := os.OpenFile("frozen.sum", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(lines); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAnotherReader runs a reader that has this folder's README alone to go by.
func TestAnotherReader(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: check.py was not run")
	}
	out, err := exec.Command(python, "check.py").CombinedOutput()
	if err != nil || !bytes.HasSuffix(out, []byte(", 0 differences\n")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAnotherReaderDiffers sees that check.py reads tapes and stores, and does not take a case at its word.
func TestAnotherReaderDiffers(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: check.py was not run")
	}
	dir := t.TempDir()
	script, err := os.ReadFile("check.py")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join("tape", "good-header-only.case"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := os.ReadFile(filepath.Join("pairs", "bad-mcp-server.case"))
	if err != nil {
		t.Fatal(err)
	}
	unsound, err := os.ReadFile(filepath.Join("tape", "bad-mcp-opens-twice.case"))
	if err != nil {
		t.Fatal(err)
	}
	digest := strings.Repeat("a", 64)
	files := map[string][]byte{
		"check.py":              script,
		"store/bad-list.case":   []byte("shows: \nentry: " + digest + " file \n\n"),
		"store/bad-get.case":    []byte("shows: \nget: " + digest + " whole\n\n"),
		"store/bad-dir.case":    []byte("shows: \nentry: " + digest + " dir\nget: " + digest + " missing\nlist: " + digest + "\n\n"),
		"store/bad-parse.case":  []byte("shows: \nparse: " + digest + " refused\n\n"),
		"pairs/bad-mcp.case":    bytes.Replace(pair, []byte("semantic: mcp_server"), []byte("semantic: none"), 1),
		"pairs/bad-short.case":  pair[:len(pair)-9],
		"tape/bad-sound.case":   bytes.Replace(unsound, []byte("conversations: unsound\n"), nil, 1),
		"tape/bad-version.case": bytes.Replace(whole, []byte(`"version":1`), []byte(`"version":3`), 1),
		"tape/bad-saved.case":   bytes.Replace(whole, []byte(`"agent"`), []byte(`"other"`), 1),
	}
	for name, b := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, filepath.FromSlash(name))), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(python, filepath.Join(dir, "check.py")).CombinedOutput()
	for name := range files {
		if base := filepath.Base(name); base != "check.py" && !bytes.Contains(out, []byte(base+": ")) {
			t.Errorf("no difference in %s\n%s", base, out)
		}
	}
	if err == nil {
		t.Error("differences, and status 0")
	}
}

func TestCasesSayWhatTheyAre(t *testing.T) {
	tapes, err := corpus.Tapes()
	if err != nil {
		t.Fatal(err)
	}
	stores, err := corpus.Stores()
	if err != nil {
		t.Fatal(err)
	}
	pairs, err := corpus.Pairs()
	if err != nil {
		t.Fatal(err)
	}
	if len(tapes) < 470 || len(pairs) < 11 || len(stores) < 25 {
		t.Errorf("%d tapes, %d pairs, %d stores", len(tapes), len(pairs), len(stores))
	}
	for _, c := range slices.Concat(tapes, pairs, stores) {
		if c.Shows == "" || !strings.HasPrefix(c.Name, "good-") && !strings.HasPrefix(c.Name, "bad-") {
			t.Errorf("%s shows %q", c.Name, c.Shows)
		}
	}
}

func FuzzParse(f *testing.F) {
	tapes, err := corpus.Tapes()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range tapes[:20] {
		f.Add([]byte("shows: " + c.Shows + "\n\n" + string(c.Body)))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := corpus.Parse(in)
		if err != nil {
			return
		}
		var b bytes.Buffer
		for _, field := range c.Fields {
			fmt.Fprintf(&b, "%s: %s\n", field.Key, field.Value)
		}
		b.WriteByte('\n')
		b.Write(c.Body)
		if !bytes.Equal(b.Bytes(), in) {
			t.Fatalf("%q is another case than %q", b.Bytes(), in)
		}
	})
}
