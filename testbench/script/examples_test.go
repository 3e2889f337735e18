package script_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// Every example of the documentation runs, on a bench that has what they ask for.
func TestExamplesRun(t *testing.T) {
	for _, f := range script.Functions() {
		t.Run(f.Name, func(t *testing.T) {
			if !strings.Contains(f.Example, f.Name+"(") {
				t.Errorf("the example of %s does not call it: %s", f.Name, f.Example)
			}
			src := "def main(args):\n  fs.write('done.txt', 'done\\n')\n  before = clock.monotonic_ms()\n  " + strings.ReplaceAll(f.Example, "\n", "\n  ") + "\n"
			taped(t, *world(t, 3), write(t, src))
		})
	}
}

// What the page shows whole runs, too.
func TestThePageRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/script.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```python\n(def main.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("no block of the page begins with def main")
	}
	for _, b := range blocks {
		taped(t, *world(t, 3), write(t, b[1]))
	}
}

// The stub names what a script has: nothing more, nothing less.
func TestTheStubNamesEveryFunction(t *testing.T) {
	stub := string(script.Stub())
	for _, f := range script.Functions() {
		name := f.Name[strings.IndexByte(f.Name, '.')+1:]
		if !strings.Contains(stub, "def "+name+"(") {
			t.Errorf("%s is not in the stub", f.Name)
		}
	}
	ofStarlark := []string{"def fail(", "def load("}
	for _, def := range ofStarlark {
		if !strings.Contains(stub, def) {
			t.Errorf("%s…) is not in the stub: editors would call it undefined", def)
		}
	}
	if got, want := strings.Count(stub, "def "), len(script.Functions())+len(ofStarlark); got != want {
		t.Errorf("the stub has %d functions, a script and Starlark %d", got, want)
	}
}
