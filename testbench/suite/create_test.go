package suite_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

func TestAFirstScriptPassesItsTests(t *testing.T) {
	t.Chdir(t.TempDir())
	paths, err := suite.Create("agents/new", "my-agent.star")
	if err != nil || len(paths) != 4 {
		t.Fatalf("%q, %v", paths, err)
	}
	lines, s := runAll(t, nil)
	if len(lines) != 2 || s.Count(suite.Passed) != 2 || len(s.Notes) != 0 {
		t.Errorf("%q, %q", lines, s.Notes)
	}
	for _, path := range paths {
		if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "NAME") {
			t.Errorf("%s: %v\n%s", path, err, b)
		}
	}
	if again, err := suite.Create("agents/new", "my-agent"); err == nil {
		t.Errorf("written over: %q", again)
	}
	if more, err := suite.Create("agents/new", "other"); err != nil || len(more) != 3 { // the stub is there
		t.Errorf("%q, %v", more, err)
	}
	for _, name := range []string{"", ".", "..", "a b", "a_test", "-a", "a/b", "é"} {
		if paths, err := suite.Create("x", name); err == nil {
			t.Errorf("%q became %q", name, paths)
		}
	}
}

func TestHoldTests(t *testing.T) {
	put(t, map[string]string{"a.star": "", "a_test.star": "def test_a(): pass\n", "main_test.star": "def main(args): pass\n", "broken_test.star": "def", "d/x": "", "m.wasm": ""})
	for _, tt := range []struct {
		paths []string
		tests bool
		ok    bool
	}{
		{[]string{"a.star"}, false, true}, {[]string{"m.wasm"}, false, true}, {[]string{"a_test.star"}, true, true}, {[]string{"d", "a_test.star"}, true, true},
		{[]string{"main_test.star"}, false, true}, {[]string{"main_test.star", "a_test.star"}, true, true}, {[]string{"broken_test.star"}, true, true},
		{[]string{"a.star", "m.wasm"}, false, false}, {[]string{"d", "a.star"}, false, false}, {[]string{"nowhere"}, false, false},
	} {
		if tests, err := suite.HoldTests(tt.paths); tests != tt.tests || (err == nil) != tt.ok {
			t.Errorf("%v: %v, %v", tt.paths, tests, err)
		}
	}
}
