package script_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// anyAnswer is a model that always gives the same.
func anyAnswer(t testing.TB) testbench.LLM {
	t.Helper()
	rules, err := fixture.ReadRules(strings.NewReader(`{"match":{"any":true},"times":100000,"response":{"text":"the answer","tool_calls":[{"id":"t1","name":"run","arguments":{"args":["status"]}}],"usage":{"input_tokens":5,"output_tokens":3},"stop_reason":"end_turn"},"stream":[{"text":"the answer","delay_ms":7}]}`), "rules")
	if err != nil {
		t.Fatal(err)
	}
	return testbench.LLM{Rules: rules}
}

func TestArgumentErrorsSayWhatIsWanted(t *testing.T) {
	for src, want := range map[string]string{
		"clock.sleep()":                      "clock.sleep: ms is missing: clock.sleep(ms)",
		"clock.sleep(1, 2)":                  "clock.sleep: at most 1 arguments are wanted, got 2: clock.sleep(ms)",
		"clock.sleep(ns = 1)":                "clock.sleep: no parameter ns (did you mean ms?): clock.sleep(ms)",
		"clock.sleep(1, ms = 1)":             "clock.sleep: ms is given twice",
		"clock.sleep('a')":                   "clock.sleep: ms: want",
		"clock.sleep(-1)":                    "clock.sleep: ms: want",
		"clock.sleep(1 << 70)":               "clock.sleep: ms: want",
		"llm.complete('hi')":                 "llm.complete: messages: want",
		"llm.complete([lambda: 1])":          "llm.complete: messages: the value's [0] is a function, which has no form in JSON",
		"llm.complete([{1: 2}])":             "llm.complete: messages: the value's [0] has a key of type int; JSON has strings alone",
		"llm.complete(message = [])":         "llm.complete: no parameter message (did you mean messages?)",
		"random.int(3, 1)":                   "random.int",
		"random.bytes(-1)":                   "random.bytes",
		"process.run('git', 'status')":       "process.run: args: want",
		"process.run('git', [1])":            "process.run: args: want",
		"env.get(1)":                         "env.get: name: want",
		"parallel(1)":                        "parallel: functions: a list of functions is wanted, got the int 1",
		"parallel([1])":                      "parallel: functions[0]: a function is wanted, got the int 1",
		"parallel([lambda x: x])":            "parallel: functions[0]: a function that takes nothing is wanted",
		"on_finish(1)":                       "on_finish: fn: a function is wanted",
		"assert_eq(1)":                       "assert_eq: want is missing: assert_eq(got, want, message=None)",
		"json.encode(b'a')":                  "json.encode: the value is a bytes",
		"llm.complet([])":                    "llm has no function complet; it has complete (did you mean .complete?)",
		"clok.now_ms()":                      "undefined: clok (did you mean clock?)",
		"asert_eq(1, 1)":                     "undefined: asert_eq (did you mean assert_eq?)",
		"http.get('https://example.com', 5)": "http.get: headers: want",
	} {
		_, err := runOn(t, &testbench.Config{LLM: anyAnswer(t)}, body(src), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v: want %s", src, err, want)
		}
	}
}

func TestHostFunctionsGiveWhatTheDocumentationSays(t *testing.T) {
	for src, want := range map[string]string{
		"return clock.now_ms()": "1767225600000",
		"clock.sleep(5)\nclock.advance(ms = 6)\nreturn clock.monotonic_ms()":                         "11",
		"return random.int(low = 4, high = 4)":                                                       "4",
		"return [type(random.bytes(3)), len(random.bytes(3))]":                                       `["bytes",3]`,
		"return [env.get('A'), env.get('B'), env.get('B', 'c'), env.get(name = 'B', default = 'd')]": `["x",null,"c","d"]`,
		"return llm.complete([{'role': 'user', 'content': 'hi'}], system = 's', model = 'm')": `{"text":"the answer","tool_calls":[{"id":"t1","name":"run","arguments":{"args":["status"]}}],` +
			`"usage":{"input_tokens":5,"output_tokens":3},"stop_reason":"end_turn"}`,
		"llm.complete([])\nreturn clock.monotonic_ms()":                          "7",
		"return parallel([lambda: 1, lambda: parallel([lambda: 2, lambda: 3])])": "[1,[2,3]]",
		"return parallel(functions = [])":                                        "[]",
		"l = []\ndef f():\n  l.append(1)\nparallel((f, f))\nreturn l":            "[1,1]",
	} {
		r, err := runOn(t, &testbench.Config{LLM: anyAnswer(t), Env: map[string]string{"A": "x"}}, body(src), nil)
		if err != nil || r.Text != want {
			t.Errorf("%s: got %v, %v: want %s", src, r, err, want)
		}
	}
}

func TestAnErrorOfABranchNamesIt(t *testing.T) {
	src := "def slow():\n  clock.sleep(100)\n  fail('slow')\n" +
		"def bad():\n  clock.sleep(10)\n  return 1 + 'a'\n" +
		"def nested(): return parallel([lambda: 1, bad])\n" +
		body("return parallel([slow, lambda: clock.sleep(1000), nested])")
	_, err := runOn(t, &testbench.Config{}, src, nil)
	var e *script.Error
	if !errors.As(err, &e) || e.Message != "parallel, branch 2: parallel, branch 1: unknown binary op: int + string" || e.Line != 6 {
		t.Fatalf("got %v", err)
	}
	var names []string
	for _, f := range e.Stack {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " > "); got != "main > parallel, branch 2 > nested > parallel, branch 1 > bad" {
		t.Errorf("the stack is %s", got)
	}
}

func TestOnFinishRunsAfterMain(t *testing.T) {
	var out strings.Builder
	src := "def main(args):\n  on_finish(lambda: log('first'))\n  on_finish(lambda: on_finish(lambda: log('last')))\n  on_finish(lambda: log('second'))\n  log('main')\n  if args: fail('no')\n"
	if _, err := runOn(t, &testbench.Config{}, src, &script.Options{Print: &out}); err != nil || out.String() != "main\nfirst\nsecond\nlast\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	out.Reset()
	if _, err := runOn(t, &testbench.Config{}, src, &script.Options{Print: &out, Args: []string{"x"}}); err == nil || !strings.HasSuffix(out.String(), "last\n") {
		t.Errorf("after an error: got %q, %v", out.String(), err)
	}
	_, err := runOn(t, &testbench.Config{}, body("on_finish(lambda: fail('late'))"), nil)
	var e *script.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "late") || e.Line != 2 {
		t.Errorf("got %v", err)
	}
}

func TestAssertionsShowBothValues(t *testing.T) {
	for src, want := range map[string]string{
		"assert_eq(1, 2)":                    "assertion failed: 1 is not 2",
		"assert_eq('a', 'b', 'the name')":    `assertion failed: the name: "a" is not "b"`,
		"assert_eq('1', 1)":                  `"1" is not 1`,
		"assert_true([], message = 'empty')": "assertion failed: empty: [] is not true",
		"assert_in('x', 'abc')":              `"x" is not in "abc"`,
		"assert_in(1, {2: 3})":               "1 is not in {2: 3}",
		"assert_eq({'a': [1, {'b': 'x' * 100}], 'c': 1}, {'a': [1, {'b': 'x' * 100 + 'y'}], 'd': 1})": `["a"][1]["b"]: got`,
		"assert_eq([1] * 50, [1] * 49)":                              "the value: got 50 elements, want 49 elements",
		"assert_eq('a\\n' * 60 + 'b\\n', 'a\\n' * 60 + 'c\\n')":      `line 61, byte 1: got "b" of 62 lines, want "c" of 62 lines`,
		"assert_eq(struct(a = 'x' * 200), struct(a = 'y', b = 'z'))": `.b: got nothing, want "z"`,
	} {
		_, err := runOn(t, &testbench.Config{}, body(src), nil)
		var a *script.AssertionError
		if !errors.As(err, &a) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v: want %s", src, err, want)
		}
	}
	r, err := runOn(t, &testbench.Config{}, body("assert_eq([1], [1])\nassert_true(1)\nassert_in('a', ['a'])"), nil)
	if err != nil || r.Assertions != 3 {
		t.Errorf("got %+v, %v: want 3 assertions that held", r, err)
	}
}

func TestErrorsShowTheirLine(t *testing.T) {
	src := "def f(x):\n\treturn {'ö': x}['b']\n\ndef main(args):\n\treturn f(1)\n"
	_, err := runOn(t, &testbench.Config{}, src, nil)
	var e *script.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	e.File, e.Stack[0].File, e.Stack[1].File = "a.star", "a.star", "a.star"
	want := "a.star:2:17: key \"b\" not in dict\n    2 | \treturn {'ö': x}['b']\n      | \t               ^\n  at a.star:2:17 in f\n  at a.star:5:10 in main\n"
	if got := e.Detail(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPythonsWordsAreExplained(t *testing.T) {
	for src, want := range map[string]string{
		"import os": "load(", "try:\n  pass\n": "no try", "raise 'x'": "fail(", "class A:\n  pass\n": "struct(", "x = 1\nassert x": "assert_eq",
		"with x: pass": "fs.read", "x = 1 is 2": "==", "def f():\n  yield 1": "list",
	} {
		_, err := runOn(t, &testbench.Config{}, src, nil)
		var e *script.Error
		if !errors.As(err, &e) || !strings.Contains(e.Hint, want) {
			t.Errorf("%q: got %v, hint %q: want %q", src, err, e.Hint, want)
		}
	}
}

func TestAScriptWithoutMainSaysSo(t *testing.T) {
	_, err := runOn(t, &testbench.Config{}, "def mian(args): pass", nil)
	if err == nil || !strings.Contains(err.Error(), "no function main (did you mean mian?)") {
		t.Errorf("got %v", err)
	}
	if _, err := runOn(t, &testbench.Config{}, "def test_a(): return 3\ndef main(args): fail('not this')", &script.Options{Entry: "test_a"}); err != nil {
		t.Errorf("an entry of another name: %v", err)
	}
}
