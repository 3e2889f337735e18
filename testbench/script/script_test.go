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

// write puts a script into a directory of its own.
func write(t testing.TB, src string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.star")
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runOn runs a script on a bench of c.
func runOn(t testing.TB, c *testbench.Config, src string, o *script.Options) (*script.Result, error) {
	t.Helper()
	b, err := testbench.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return script.Run(t.Context(), b, write(t, src), o)
}

func TestMainReturns(t *testing.T) {
	for src, want := range map[string]string{
		"def main(args): return 'a\\nb'":                "a\nb\n",
		"def main(args): pass":                          "",
		"def main(): return {'z': [1, 2.5], 'a': True}": `{"z":[1,2.5],"a":true}` + "\n",
		"def main(args): return args":                   `["x","y"]` + "\n",
	} {
		r, err := runOn(t, &testbench.Config{}, src, &script.Options{Args: []string{"x", "y"}})
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		var b strings.Builder
		if _ = r.Fprint(&b); b.String() != want {
			t.Errorf("%s prints %q: want %q", src, b.String(), want)
		}
	}
}

func TestPrint(t *testing.T) {
	var b strings.Builder
	src := "def main(args):\n  print('a', 1, [None])\n  print('b', 2, sep='')\n  print()\n"
	if _, err := runOn(t, &testbench.Config{}, src, &script.Options{Print: &b}); err != nil || b.String() != "a 1 [None]\nb2\n\n" {
		t.Errorf("printed %q, %v", b.String(), err)
	}
}

func TestErrorsHaveAPlace(t *testing.T) {
	_, err := runOn(t, &testbench.Config{}, "def f(x):\n\treturn x + [1]\n\ndef main(args):\n\treturn f('a')\n", nil)
	var e *script.Error
	if !errors.As(err, &e) || e.Line != 2 || e.Col == 0 || e.Source != "\treturn x + [1]" || len(e.Stack) != 2 {
		t.Errorf("got %+v", e)
	}
}
