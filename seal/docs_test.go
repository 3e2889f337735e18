package seal_test

import (
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

var updateDocs = flag.Bool("update-docs", false, "write the generated part of docs/seal.md")

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", name))
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
		t.Fatal("docs/seal.md has no generated part")
	}
	want := before + from + "\n| code | what |\n|---|---|\n" + codes(t) + "\n" + to + after
	if want == text {
		return
	}
	if !*updateDocs {
		t.Fatal("docs/seal.md is not what the code says: go test ./seal -run Docs -update-docs")
	}
	write(t, filepath.Join("..", "docs", "seal.md"), []byte(want))
}

func codes(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "problem.go", nil, parser.ParseComments)
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

// checkers puts the page's Python beside that of docs/tape.md and returns what runs it with a key.
func checkers(t *testing.T, key seal.PublicKey) (run func(args ...string) (string, error)) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the page's checker is not run")
	}
	if out, err := exec.Command("openssl", "version").Output(); err != nil || !strings.HasPrefix(string(out), "OpenSSL 3") {
		t.Skip("openssl 3 is not installed: the page's checker is not run")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sealcheck.py"), []byte(block(t, page(t, "seal.md"), "python")))
	write(t, filepath.Join(dir, "b3.py"), []byte(block(t, page(t, "tape.md"), "python")))
	public := filepath.Join(dir, "seal.pub")
	write(t, public, []byte(key.String()+"\n"))
	return func(args ...string) (string, error) {
		out, err := exec.Command(python, append([]string{filepath.Join(dir, "sealcheck.py"), public}, args...)...).CombinedOutput()
		return string(out), err
	}
}

// TestDocsPython checks proofs and recordings by the page alone.
func TestDocsPython(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	check, others := checkers(t, k.Public()), checkers(t, newKey(t).Public())
	path := filepath.Join(t.TempDir(), "proof.json")
	for _, c := range everyProof {
		b := prove(t, dir, &c.o)
		write(t, path, b)
		if out, err := check(path); err != nil || !strings.Contains(out, "20261122-test") || !strings.Contains(out, c.data) {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
	if out, err := others(path); err == nil || !strings.Contains(out, "another key") {
		t.Errorf("by another's key: %v\n%s", err, out)
	}
	if out, err := check(dir); err != nil || !strings.Contains(out, "8 streams") {
		t.Errorf("the recording: %v\n%s", err, out)
	}
	if out, err := others(dir); err == nil || !strings.Contains(out, "another key") {
		t.Errorf("by another's key: %v\n%s", err, out)
	}
}

// TestDocsPythonRefuses gives the page's checker what does not hold.
func TestDocsPythonRefuses(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	check := checkers(t, k.Public())
	whole := prove(t, dir, &seal.ProveOptions{Seq: 1, Payloads: true})
	path := filepath.Join(t.TempDir(), "proof.json")
	for i := 3; i < len(whole); i += len(whole) / 40 {
		whole[i] ^= 1
		write(t, path, whole)
		if out, err := check(path); err == nil {
			t.Errorf("byte %d of the proof: %s", i, out)
		}
		whole[i] ^= 1
	}
	for i, c := range tamperings {
		if strings.Contains(c.path, "seal.tiles") || testing.Short() && i%8 != 0 {
			continue // the page leaves tiles out
		}
		dir := small(t)
		k := sealed(t, dir)
		c.do(t, dir)
		check := checkers(t, k.Public())
		if out, err := check(dir); err == nil {
			t.Errorf("%s: %s", c.name, out)
		}
	}
}

// TestDocsShell runs the page's lines for a shell.
func TestDocsShell(t *testing.T) {
	dir := small(t)
	k := sealed(t, dir)
	checkers(t, k.Public()) // skips where there is no openssl
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
