package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

// printed is what script commands print with --json, as far as it tells of a failure.
type printed struct {
	Version     int
	Mode        string
	Divergences []json.RawMessage
	Refused     []json.RawMessage
	scriptFailure
}

// scriptFiles are programs that end in every way.
var scriptFiles = map[string]string{
	"fails.star":   "def inner():\n    fail(\"no more\")\n\ndef main(args):\n    inner()\n",
	"asserts.star": "def main(args):\n    assert_eq(1, 2)\n",
	"broken.star":  "def main(args):\n    return no_such_name\n",
	"finish.star":  "def main(args):\n    on_finish(late)\n    fail(\"in main\")\n\ndef late():\n    fail(\"in late\")\n",
	"passes.star":  "def main(args):\n    env.get(\"A\")\n",
	"no.wasm":      "this is no module",
}

// TestJSONWhateverHappens has one object on stdout however a program ends, and the status that there is without --json.
func TestJSONWhateverHappens(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for name, text := range scriptFiles {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   string
		exit   int
		status suite.Status
		file   string
		line   int
		stack  string
		also   int
	}{
		{"run fails.star --emit-tape fails.tape", 1, suite.Broken, "fails.star", 2, "inner main", 0},
		{"run passes.star --emit-tape passes.tape", 0, suite.Passed, "", 0, "", 0},
		{"run asserts.star", 2, suite.Failed, "asserts.star", 2, "main", 0},
		{"run broken.star", 1, suite.Broken, "broken.star", 2, "", 0},
		{"run finish.star", 1, suite.Broken, "finish.star", 3, "main", 1},
		{"run no.wasm", 1, suite.Broken, "", 0, "", 0},
		{"run nowhere.star", 1, suite.Broken, "", 0, "", 0},
		{"run fails.star --llm nowhere.jsonl", 1, suite.Broken, "", 0, "", 0},
		{"replay fails.tape fails.star", 1, suite.Broken, "fails.star", 2, "inner main", 0},
		{"replay passes.tape fails.star", 2, suite.Broken, "fails.star", 2, "inner main", 0},
		{"replay fails.tape passes.star", 2, suite.Broken, "passes.star", 2, "main", 0},
		{"replay fails.tape broken.star", 1, suite.Broken, "broken.star", 2, "", 0},
		{"replay passes.tape passes.star", 0, "", "", 0, "", 0},
		{"fidelity fails.tape passes.tape", 2, "", "", 0, "", 0},
		{"fidelity fails.tape nowhere.tape", 1, suite.Broken, "", 0, "", 0},
	} {
		t.Run(c.args, func(t *testing.T) {
			p, status := runJSON(t, append([]string{"script"}, strings.Fields(c.args)...)...)
			if status != c.exit || p.Status != c.status || p.Status != suite.Passed && p.Status != "" && p.Exit != c.exit {
				t.Errorf("status %d %q, exit %d, want %d %q", status, p.Status, p.Exit, c.exit, c.status)
			}
			var stack []string
			for _, f := range p.Error.Stack {
				stack = append(stack, f.Name)
			}
			if e := &p.Error; e.File != c.file || e.Line != c.line || strings.Join(stack, " ") != c.stack || len(e.Also) != c.also {
				t.Errorf("%+v", e)
			}
			if (p.Error.Message == "") != (c.status == suite.Passed || c.status == "") {
				t.Errorf("message %q", p.Error.Message)
			}
			if compared := c.exit == 2 || c.status == ""; strings.HasPrefix(c.args, "replay") && compared && p.Mode != "semantic" {
				t.Error("the verdict is missing")
			}
		})
	}
}

// runJSON runs a command line with --json, whose stdout is to be one object.
func runJSON(t *testing.T, args ...string) (p *printed, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), append(args, "--json"), streams{strings.NewReader(""), &out, &errs})
	d := json.NewDecoder(&out)
	if err := d.Decode(&p); err != nil {
		t.Fatalf("%v in %q; stderr %s", err, out.String(), &errs)
	}
	if d.More() || p.Version != jsonVersion {
		t.Errorf("more than one object, or version %d", p.Version)
	}
	if status == statusFailed && errs.Len() == 0 {
		t.Error("stderr is empty")
	}
	return p, status
}
