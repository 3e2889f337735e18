package script_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// tree writes files below a directory and runs its main.star.
func runTree(t *testing.T, dir string, files map[string]string) (*script.Result, error) {
	t.Helper()
	for name, src := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := testbench.Open(&testbench.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return script.Run(t.Context(), b, filepath.Join(dir, "main.star"), nil)
}

func TestLoad(t *testing.T) {
	r, err := runTree(t, t.TempDir(), map[string]string{
		"main.star":      "load('lib/a.star', 'a', other='b')\nload('lib/sub/../b.star', 'count')\ndef main(args): return [a(), other, count]",
		"lib/a.star":     "load('b.star', 'count')\ncount.append(1)\ndef a(): return clock.monotonic_ms()\nb = 'b'",
		"lib/b.star":     "load('../top.star', 'top')\ncount = [top]",
		"top.star":       "top = 7",
		"lib/sub/x.star": "",
	})
	if err != nil || r.Text != `[0,"b",[7,1]]` {
		t.Errorf("got %v, %v", r, err)
	}
}

func TestLoadStaysBelowTheScript(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.star"), []byte("x = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret.star"), filepath.Join(dir, "link.star")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.star"), 0o700); err != nil {
		t.Fatal(err)
	}
	names := []string{"../secret.star", "out/secret.star", "link.star", outside + "/secret.star", "", ".", "folder.star", "a/../../x.star", `..\\x.star`, `x\x00.star`, "none.star"}
	if mkfifo(filepath.Join(dir, "fifo.star")) == nil {
		names = append(names, "fifo.star")
	}
	for _, name := range names {
		_, err := runTree(t, dir, map[string]string{"main.star": "load('" + name + "', 'x')\ndef main(args): return x"})
		var e *script.Error
		if !errors.As(err, &e) || e.Line != 1 || !strings.HasSuffix(e.File, "main.star") {
			t.Errorf("load(%q): got %v: want an error at line 1", name, err)
		}
	}
}

func TestLoadNamesACircle(t *testing.T) {
	_, err := runTree(t, t.TempDir(), map[string]string{
		"main.star": "load('a.star', 'x')", "a.star": "load('lib/b.star', 'x')", "lib/b.star": "load('../a.star', 'x')\nx = 1",
	})
	var e *script.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "a.star → lib/b.star → a.star") {
		t.Fatalf("got %v", err)
	}
	if !strings.HasSuffix(e.File, filepath.ToSlash("lib/b.star")) || e.Line != 1 || len(e.Stack) != 3 {
		t.Errorf("got %+v: want the place of the load that closes it, and three files on the stack", e)
	}
}

func TestLoadErrorsHaveThePlaceInTheModule(t *testing.T) {
	for src, want := range map[string]string{
		"x = 1\ny = x +":              "got end of file",
		"x = 1\ny = nothing":          "undefined: nothing",
		"x = 1\ny = x + 'a'":          "unknown binary op",
		"x = 1\nllm.complete([])":     "llm.complete",
		"x = 1\ndef f(): return clok": "undefined: clok (did you mean clock?)",
		"x = 1\nimport os":            "",
	} {
		_, err := runTree(t, t.TempDir(), map[string]string{"main.star": "load('m.star', 'x')\ndef main(args): pass", "m.star": src})
		var e *script.Error
		if !errors.As(err, &e) || !strings.HasSuffix(e.File, "m.star") || e.Line != 2 || !strings.Contains(e.Message, want) || e.Source == "" && want != "got end of file" {
			t.Errorf("%q: got %v, %+v: want line 2 of m.star and %q", src, err, e, want)
		}
	}
	_, err := runTree(t, t.TempDir(), map[string]string{"main.star": "load('m.star', 'greet')", "m.star": "def great(): pass"})
	if err == nil || !strings.Contains(err.Error(), "did you mean great?") {
		t.Errorf("got %v", err)
	}
}

func TestAScriptIsARegularFile(t *testing.T) {
	b, err := testbench.Open(&testbench.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	dir := t.TempDir()
	names := []string{dir, filepath.Join(dir, "none.star")}
	if fifo := filepath.Join(dir, "fifo.star"); mkfifo(fifo) == nil {
		names = append(names, fifo)
	}
	for _, name := range names {
		if _, err := script.Run(t.Context(), b, name, nil); err == nil {
			t.Errorf("%s ran", name)
		}
		if _, err := script.Tests(name); err == nil {
			t.Errorf("%s has tests", name)
		}
	}
}

// TestWhatIsNoText: neither its beginning runs, nor is it told as what a text lacks.
func TestWhatIsNoText(t *testing.T) {
	for source, want := range map[string]string{
		"def main(args): return 1\n\u00e4\x00garbage ((": "a.star:2:2: a NUL",
		"\x00asm\x01\x00\x00\x00":                        "a.star: this is WebAssembly",
		"# " + strings.Repeat("#", 1<<20):                "a.star: a script has at most",
	} {
		b, err := testbench.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = script.Run(t.Context(), b, write(t, source), nil)
		var e *script.Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), want) || e.Line == 0 && e.Source != "" {
			t.Errorf("error %v, want %q", err, want)
		}
		b.Close()
	}
	b, err := testbench.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if r, err := script.Run(t.Context(), b, write(t, "\uFEFFdef main(args): return 1\n"), nil); err != nil || r.Text != "1" {
		t.Errorf("behind a byte order mark: %v", err)
	}
}

func TestTestsAreListed(t *testing.T) {
	names, err := script.Tests(write(t, "def test_b(): pass\ndef helper(): pass\ndef test_a(): pass\ntest_c = 1\n"))
	if err != nil || strings.Join(names, " ") != "test_b test_a" {
		t.Errorf("got %v, %v", names, err)
	}
	if _, err := script.Tests(write(t, "def test_b(:")); err == nil {
		t.Error("what does not parse has tests")
	}
}
