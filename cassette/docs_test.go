package cassette_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/corpus"
)

func document(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", "reference", "cassette.md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// TestDocumentPython runs the reader that docs/reference/cassette.md names over the corpus: it reads what loads, as we do, and no more.
func TestDocumentPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	script := filepath.FromSlash("../docs/examples/formats/read_cassette.py")
	if !strings.Contains(document(t), "(../examples/formats/read_cassette.py)") {
		t.Fatal("docs/reference/cassette.md names no reader")
	}
	files, err := corpus.CassetteFiles()
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(files, "*/outcome.json")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-c", driver, script}
	for _, name := range names {
		args = append(args, filepath.Join("..", "corpus", "cassettes", filepath.Dir(name)))
	}
	out, err := exec.Command(python, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var read []*string // what was printed; null where it refused
	if err := json.Unmarshal(out, &read); err != nil || len(read) != len(names) {
		t.Fatal(len(read), err)
	}
	for i, dir := range args[3:] {
		want := readOutcome(t, dir)
		switch loads := want.Strict == "loads"; {
		case want.Expect != nil || want.Emulator != nil:
		case loads != (read[i] != nil):
			t.Errorf("%s: %s, but Python says otherwise", dir, want.Strict)
		case loads && *read[i] != listing(t, dir):
			t.Errorf("%s: Python reads\n%s", dir, *read[i])
		}
	}
}

// driver runs the reader over several cassettes in one process.
const driver = `
import contextlib, io, json, runpy, sys
script, dirs, out = sys.argv[1], sys.argv[2:], []
for d in dirs:
    sys.argv = [script, d]
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(script)
        out.append(printed.getvalue())
    except Exception:
        out.append(None)
print(json.dumps(out))
`

func listing(t *testing.T, dir string) string {
	t.Helper()
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b strings.Builder
	for e, err := range r.Events(nil) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, e.Seq, e.TMS, [...]string{"", "input", "output", "frame", "service", "final"}[e.Stream])
	}
	return b.String()
}

// TestDocumentCodes holds the table of refusals to the code.
func TestDocumentCodes(t *testing.T) {
	text := document(t)
	for _, code := range cassette.Codes() {
		if !strings.Contains(text, "`"+code+"`") {
			t.Errorf("docs/reference/cassette.md does not say %s", code)
		}
	}
	_, table, ok := strings.Cut(text, "| code | what |")
	if table, _, _ = strings.Cut(table, "\n\n"); !ok {
		t.Fatal("docs/reference/cassette.md has no table of codes")
	}
	for line := range strings.Lines(table) {
		_, code, ok := strings.Cut(line, "| `")
		if code, _, _ = strings.Cut(code, "`"); ok && !slices.Contains(cassette.Codes(), code) {
			t.Errorf("docs/reference/cassette.md says %s, which no error has", code)
		}
	}
}
