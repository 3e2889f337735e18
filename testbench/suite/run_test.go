package suite_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

// runAll runs the tests below the working directory and returns a line each.
func runAll(t *testing.T, o *suite.Options) (lines []string, s *suite.Summary) {
	t.Helper()
	files, err := suite.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	if s, err = suite.Run(t.Context(), files, o); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Results {
		line := r.Name() + " " + string(r.Status)
		if r.Written {
			line += " written"
		}
		lines = append(lines, line)
	}
	return lines, s
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const asks = `
def ask(): return llm.complete([{"role": "user", "content": "hi"}])["text"]
def test_a(): assert_eq(ask(), "hello")
def test_b(): assert_eq(env.get("WHO"), "me")
`

func TestEachTestHasABenchOfItsOwn(t *testing.T) {
	put(t, map[string]string{
		"a_test.star":      asks + "def test_c(): assert_eq(ask(), \"hello\")\n",
		"a_test.llm.jsonl": `{"match":{"any":true},"response":{"text":"hello"}}` + "\n" + `{"match":{"any":true},"response":{"text":"never"}}` + "\n",
	})
	lines, s := runAll(t, &suite.Options{Config: &testbench.Config{Env: map[string]string{"WHO": "me"}}})
	want(t, lines, "a_test.star:test_a passed", "a_test.star:test_b passed", "a_test.star:test_c passed")
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "a_test.llm.jsonl:2") {
		t.Errorf("the second rule was never asked for: %q", s.Notes)
	}
	lines, s = runAll(t, &suite.Options{Match: regexp.MustCompile("test_b$")})
	want(t, lines, "a_test.star:test_b failed")
	if len(s.Notes) != 0 {
		t.Errorf("others might have asked: %q", s.Notes)
	}
}

func TestAGoldenTapeIsHeldWhereverItIsRunFrom(t *testing.T) {
	sleeps := func(ms string) map[string]string {
		return map[string]string{"sub/a_test.star": "def test_a(): clock.sleep(" + ms + ")\ndef test_b(): fs.write('x', 'ä' * 5000)\ndef test_c(): fail('no')\n"}
	}
	put(t, sleeps("5"))
	lines, _ := runAll(t, nil)
	want(t, lines, "sub/a_test.star:test_a passed", "sub/a_test.star:test_b passed", "sub/a_test.star:test_c broken")
	lines, s := runAll(t, &suite.Options{Update: true})
	want(t, lines, "sub/a_test.star:test_a passed written", "sub/a_test.star:test_b passed written", "sub/a_test.star:test_c broken")
	if s.Written() != 2 || s.Count(suite.Broken) != 1 {
		t.Errorf("%d written, %d broken", s.Written(), s.Count(suite.Broken))
	}
	if blobs, err := os.ReadDir("sub/a_test.test_b.tape.cas"); err != nil || len(blobs) != 1 {
		t.Errorf("beside the tape: %v, %v", blobs, err)
	}
	lines, _ = runAll(t, &suite.Options{Update: true})
	want(t, lines, "sub/a_test.star:test_a passed", "sub/a_test.star:test_b passed", "sub/a_test.star:test_c broken")
	t.Chdir("sub")
	lines, _ = runAll(t, nil)
	want(t, lines, "a_test.star:test_a passed", "a_test.star:test_b passed", "a_test.star:test_c broken")
	if err := os.WriteFile("a_test.star", []byte(sleeps("6")["sub/a_test.star"]), 0o644); err != nil {
		t.Fatal(err)
	}
	_, s = runAll(t, nil)
	var golden *suite.GoldenError
	if r := s.Results[0]; r.Status != suite.Failed || !errors.As(r.Err, &golden) || golden.Path != "a_test.test_a.tape" || r.Golden != golden.Path {
		t.Errorf("%+v", s.Results[0])
	} else if !strings.Contains(golden.Differs, "clock_sleep") {
		t.Errorf("differs: %s", golden.Differs)
	}
}

func TestWhatLiesBesideAFile(t *testing.T) {
	put(t, map[string]string{
		"a_test.star": `
def test_all():
    assert_eq(fs.read("in.txt"), "in\n")
    assert_eq(process.run("git", ["status"])["stdout"], "clean")
    assert_eq(clock.now_ms(), 5000)
`,
		"b_test.star": "def main(): assert_true(not fs.exists('in.txt'))\n", "a_test.files/in.txt": "in\n",
		"a_test.process-tape.json": `[{"program":"git","args":["status"],"cwd":null,"env":{},"stdout":"clean","stderr":"","exit_code":0,"duration_ms":1}]`,
	})
	lines, _ := runAll(t, &suite.Options{Config: &testbench.Config{Clock: testbench.Clock{Start: time.UnixMilli(4999)}}})
	want(t, lines, "a_test.star:test_all passed", "b_test.star:main passed")
	if err := os.WriteFile("a_test.process-tape.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	lines, s := runAll(t, nil)
	want(t, lines, "a_test.star:test_all broken", "b_test.star:main passed")
	if err := s.Results[0].Err; !strings.Contains(err.Error(), "a_test.process-tape.json") {
		t.Errorf("names not what cannot be read: %v", err)
	}
}

func TestAFileThatDoesNotCompileIsOneResult(t *testing.T) {
	put(t, map[string]string{"a_test.star": "def test_a(:", "b_test.star": "def test_b(): nothing()"})
	lines, s := runAll(t, nil)
	want(t, lines, "a_test.star broken", "b_test.star:test_b broken")
	if text := suite.Detail(s.Results[1].Err); !strings.HasPrefix(text, "b_test.star:1:15: undefined: nothing\n") {
		t.Errorf("told as %q", text)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	put(t, map[string]string{"a_test.star": "def test_a(): pass\ndef test_b():\n    while True: pass\n", "b_test.star": "def main(): pass"})
	ctx, cancel := context.WithCancel(t.Context())
	files, err := suite.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	s, err := suite.Run(ctx, files, &suite.Options{Report: func(*suite.Result) { cancel() }})
	if !errors.Is(err, context.Canceled) || len(s.Results) != 1 {
		t.Errorf("%d ran, %v", len(s.Results), err)
	}
}

func TestAScriptThatCannotBeStoppedEndsAll(t *testing.T) {
	put(t, map[string]string{
		"a_test.star": "def test_a(): ('é' * 1000000).strip('x' * 5000000 + 'é')\ndef test_b(): pass\n", // minutes in one step
		"b_test.star": "def main(): pass",
	})
	files, err := suite.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, callers := range []bool{false, true} { // whose time is over
		var s *suite.Summary
		for timeout := 50 * time.Millisecond; timeout < time.Minute; timeout *= 4 {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			o := script.Options{Timeout: timeout}
			if callers {
				ctx, cancel = context.WithTimeout(ctx, timeout)
				o.Timeout = 4 * timeout
			}
			s, err = suite.Run(ctx, files, &suite.Options{Script: o})
			cancel()
			if errors.Is(err, suite.ErrLeftBehind) {
				break // else the time was over before the step began, on a machine with much to do
			}
		}
		if !errors.Is(err, suite.ErrLeftBehind) || len(s.Results) != 1 || !suite.LeftBehind(s.Results[0].Err) {
			t.Errorf("%d ran, %v", len(s.Results), err)
		}
	}
}

func TestDetailTellsEachError(t *testing.T) {
	err := errors.Join(errors.New("one"), errors.Join(&script.Error{Message: "two", Hint: "then three"}, errors.New("four")))
	if got := suite.Detail(err); got != "one\ntwo\n  then three\nfour" {
		t.Errorf("%q", got)
	}
}
