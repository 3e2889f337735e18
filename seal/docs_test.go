package seal_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/seal"
)

var updateDocs = flag.Bool("update-docs", false, "write the generated part of docs/reference/seal.md")

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", "reference", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// block returns the first code of a language on a page.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, code, ok := strings.Cut(text, "```"+language+"\n")
	code, _, ok2 := strings.Cut(code, "```\n")
	if !ok || !ok2 {
		t.Fatalf("the page has no %s", language)
	}
	return code
}

// TestDocsCodes holds the table of codes to the comments in the code.
func TestDocsCodes(t *testing.T) {
	const from, to = "do not edit -->\n", "<!-- end of the generated part -->"
	text := page(t, "seal.md")
	before, rest, ok := strings.Cut(text, from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatal("docs/reference/seal.md has no generated part")
	}
	want := before + from + "\n| code | what |\n|---|---|\n" + codes(t) + "\n" + to + after
	if want == text {
		return
	}
	if !*updateDocs {
		t.Fatal("docs/reference/seal.md is not what the code says: go test ./seal -run Docs -update-docs")
	}
	write(t, filepath.Join("..", "docs", "reference", "seal.md"), []byte(want))
}

func codes(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "checkpoint.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Code") {
			return true
		}
		code, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil || v.Comment == nil {
			t.Errorf("%s: %v", v.Names[0].Name, err)
			return true
		}
		fmt.Fprintf(&out, "| `%s` | %s |\n", code, strings.TrimSpace(v.Comment.Text()))
		return true
	})
	return out.String()
}

// driver runs the page's checker over several things in one process.
const driver = `
import contextlib, io, json, os, runpy, sys
script, key, all, out = sys.argv[1], sys.argv[2], sys.argv[3:], []
sys.path.insert(0, os.path.dirname(script))
for path in all:
    sys.argv, printed, refused = [script, key, path], io.TextIOWrapper(io.BytesIO(), "utf-8", "replace"), ""
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as e:
            refused = str(e)
        except Exception as e:
            refused = repr(e)
    printed.flush()
    out.append({"Printed": printed.buffer.getvalue().decode("utf-8", "replace"), "Refused": refused})
print(json.dumps(out))
`

// A checked is what the page's checker made of one proof or recording.
type checked struct{ Printed, Refused string }

// check runs the Python that docs/reference/seal.md names.
func check(t *testing.T, key seal.PublicKey, paths ...string) (all []checked) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the page's checker is not run")
	}
	needOpenSSL(t)
	dir := t.TempDir()
	script, public := filepath.Join(dir, "sealcheck.py"), filepath.Join(dir, "seal.pub")
	write(t, script, []byte(page(t, "../examples/formats/sealcheck.py")))
	write(t, filepath.Join(dir, "b3.py"), []byte(page(t, "../examples/formats/b3.py")))
	write(t, public, []byte(key.String()+"\n"))
	cmd := exec.Command(python, append([]string{"-c", driver, script, public}, paths...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil || len(all) != len(paths) {
		t.Fatalf("%d of %d, %v", len(all), len(paths), err)
	}
	return all
}

func needOpenSSL(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("openssl", "version").Output(); err != nil || !strings.HasPrefix(string(out), "OpenSSL 3") {
		t.Skip("openssl 3 is not installed: the page's checker is not run")
	}
}

// TestDocsPython checks proofs and recordings by the page alone.
func TestDocsPython(t *testing.T) {
	dir, to := small(t), t.TempDir()
	k := sealed(t, dir)
	paths := []string{dir}
	for i, c := range everyProof {
		path := filepath.Join(to, strconv.Itoa(i))
		write(t, path, prove(t, dir, &c.o))
		paths = append(paths, path)
	}
	for i, got := range check(t, k.Public(), paths...) {
		want := "8 streams"
		if i > 0 {
			want = strings.ToValidUTF8(everyProof[i-1].data, "\ufffd")
		}
		if got.Refused != "" || !strings.Contains(got.Printed, "20261122-test") || !strings.Contains(got.Printed, want) {
			t.Errorf("%s: %+v", paths[i], got)
		}
	}
	for i, got := range check(t, newKey(t).Public(), paths[:2]...) {
		if !strings.Contains(got.Refused, "another key") {
			t.Errorf("%s by another's key: %+v", paths[i], got)
		}
	}
}

// TestDocsPythonRefuses gives the page's checker proofs and recordings that do not hold.
func TestDocsPythonRefuses(t *testing.T) {
	dir, to := small(t), t.TempDir()
	k := sealed(t, dir)
	whole := prove(t, dir, &seal.ProveOptions{Seq: 1, Payloads: true})
	var paths []string
	parts := 4
	if long {
		parts = 40
	}
	for i := 3; i < len(whole); i += len(whole) / parts {
		whole[i] ^= 1
		path := filepath.Join(to, fmt.Sprintf("byte %d", i))
		write(t, path, whole)
		paths = append(paths, path)
		whole[i] ^= 1
	}
	for i, c := range tamperings {
		if strings.Contains(c.path, "seal.tiles") || !long && i%4 != 0 {
			continue // the page leaves tiles out
		}
		changed := filepath.Join(to, c.name)
		if err := os.CopyFS(changed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		c.do(t, changed)
		paths = append(paths, changed)
	}
	for i, got := range check(t, k.Public(), paths...) {
		if got.Refused == "" {
			t.Errorf("%s: %+v", paths[i], got)
		}
	}
}

// TestDocsShell runs the page's lines for a shell.
func TestDocsShell(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	needOpenSSL(t)
	write(t, filepath.Join(dir, "seal.pub"), []byte(k.Public().String()+"\n"))
	run := func() (string, error) {
		cmd := exec.Command("sh", "-e", "-c", block(t, page(t, "seal.md"), "sh"))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err != nil || !strings.Contains(out, "Verified Successfully") {
		t.Errorf("%v\n%s", err, out)
	}
	edit("seal.json", replace("/recording/20261122", "/recording/20261123"))(t, dir)
	if out, err := run(); err == nil {
		t.Errorf("it verifies what was changed: %s", out)
	}
}
