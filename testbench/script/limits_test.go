package script_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// limited are small, so that going over them is quick; the time is for machines that have much to do.
var limited = script.Options{Steps: 5_000_000, Memory: 16 << 20, Timeout: time.Minute}

// body is a main of these lines.
func body(lines string) string {
	return "def main(args):\n  " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n  ") + "\n"
}

var tooMuch = []struct{ name, limit, src string }{
	{"loop", "steps", body("while True: pass")},
	{"recursion", "depth", "def f(n): return f(n+1)\n" + body("return f(0)")},
	{"recursion through sorted", "depth", "def f(n): return sorted([1, 2], key=lambda x: f(n+1))\n" + body("return f(0)")},
	{"recursion through parallel", "depth", "def f(): return parallel([f])\n" + body("return f()")},
	{"string times", "memory", body(`return len("x" * 10000000000)`)},
	{"string times what no int64 holds", "memory", body(`return len("xy" * (1 << 63))`)},
	{"times string", "memory", body(`return len(10000000000 * "x")`)},
	{"string doubled", "memory", body("s = 'x'\nfor i in range(40): s = s + s")},
	{"string doubled in place", "memory", body("s = 'x'\nfor i in range(40): s += s")},
	{"string doubled in a dict", "memory", body("d = {'s': 'x'}\nfor i in range(40): d['s'] += d['s']")},
	{"string doubled by format", "memory", body("s = 'x'\nfor i in range(40): s = '{0}{0}'.format(s)")},
	{"string doubled by percent", "memory", body("s = 'x'\nfor i in range(40): s = '%s%s' % (s, s)")},
	{"string doubled by percent in place", "memory", body("s = 'x'\nfor i in range(40):\n  t = '%s%s'\n  t %= (s, s)\n  s = t")},
	{"join", "memory", body("return len(('x' * 100000).join(['a'] * 100000))")},
	{"replace", "memory", body("return len(('x' * 100000).replace('x', 'y' * 100000))")},
	{"format", "memory", body("return len(('{0}' * 100000).format('x' * 100000))")},
	{"format by name", "memory", body("return len(('{a}' * 100000).format(a='x' * 100000))")},
	{"percent", "memory", body("return len(('%s' * 10000) % tuple(['x' * 100000] * 10000))")},
	{"percent of a dict", "memory", body("return len(('%(a)s' * 10000) % {'a': 'x' * 1000000})")},
	{"method by getattr", "memory", body("return len(getattr('x' * 100000, 'join')(['a'] * 100000))")},
	{"list of range", "memory", body("return len(list(range(10000000000)))")},
	{"set of range", "memory", body("return len(set(range(10000000)))")},
	{"unions kept", "memory", body("s = set(range(20000))\nl = []\nfor i in range(60): l.append(s.union([i]))")},
	{"keys kept", "memory", body("d = dict(enumerate(range(50000)))\nl = []\nfor i in range(60): l.append(d.keys())")},
	{"substrings replaced", "memory", body("return len(('x' * 100000).replace('x', 'y' * 100000, 90000))")},
	{"enumerate", "memory", body("return len(enumerate(range(10000000)))")},
	{"zip", "memory", body("return len(zip(range(10000000), range(10000000)))")},
	{"sorted", "memory", body("return len(sorted(range(10000000)))")},
	{"codepoints", "memory", body("s = 'x' * 10000000\nreturn len(list(s.codepoints()))")},
	{"split", "memory", body("s = ' x' * 5000000\nreturn len(s.split())")},
	{"list times", "memory", body("return len([0] * 1000000000)")},
	{"list extended by itself", "memory", body("s = [1]\nfor i in range(40): s.extend(s)")},
	{"list added to itself", "memory", body("s = [1]\nfor i in range(40): s += s")},
	{"strings kept", "memory", body("s = 'x' * 1000000\nl = []\nfor i in range(100000): l.append(s + 'y')")},
	{"slices kept", "memory", body("s = [1] * 100000\nl = []\nfor i in range(100000): l.append(s[:])")},
	{"arguments kept", "memory", "def f(*a): return a\n" + body("s = [1] * 100000\nl = []\nfor i in range(100000): l.append(f(*s))")},
	{"dicts kept", "memory", body("l = []\nfor i in range(100000000): l.append({})")},
	{"int squared", "memory", body("x = 3\nfor i in range(100): x = x * x")},
	{"one text in many places as JSON", "memory", body("return len(json.encode(['x' * 1000000] * 100))")},
	{"one text in many places for a model", "memory", body("llm.complete([{'role': 'user', 'content': 'x' * 1000000}] * 100)")},
	{"one text in many places returned", "memory", body("return ['x' * 1000000] * 100")},
	{"one int in many places as JSON", "memory", body("x = 3\nfor i in range(18): x = x * x\nreturn len(json.encode([x] * 1000))")},
	{"branches", "memory", body("return len(parallel([lambda: 1] * 1000000))")},
	{"max of range", "steps", body("return max(range(1000000000000000))")},
	{"all of range", "steps", body("return all(range(1, 1000000000000000))")},
	{"deep list as text", "depth", body("x = []\nfor i in range(100000): x = [x]\nreturn str(x)")},
	{"deep list in a format", "depth", body("x = []\nfor i in range(100000): x = [x]\nreturn '%s' % x")},
	{"deep list in a method", "depth", body("x = []\nfor i in range(100000): x = [x]\nreturn '{}'.format(x)")},
	{"deep list logged", "depth", body("x = []\nfor i in range(100000): x = [x]\nlog(x)")},
	{"deep dict as JSON", "depth", body("x = {}\nfor i in range(3000): x = {'a': x}\nreturn json.encode(x)")},
	{"deep list returned", "depth", body("x = []\nfor i in range(100000): x = [x]\nreturn x")},
	{"deep list in a call", "depth", body("x = []\nfor i in range(100000): x = [x]\nllm.complete(x)")},
	{"deep tuple as a key", "depth", body("x = ()\nfor i in range(100000): x = (x,)\nreturn {x: 1}")},
	{"deep tuple looked up", "depth", body("x = ()\nfor i in range(100000): x = (x,)\nd = {}\nd[x] = 1")},
	{"deep tuple looked for", "depth", body("x = ()\nfor i in range(100000): x = (x,)\nreturn x in {}")},
	{"deep tuple in a set", "depth", body("x = ()\nfor i in range(100000): x = (x,)\nreturn len(set([x]))")},
	{"deep tuple by get", "depth", body("x = ()\nfor i in range(100000): x = (x,)\nreturn {}.get(x)")},
	{"deep struct as a key", "depth", body("x = ()\nfor i in range(10000): x = struct(x = x)\nreturn {x: 1}")},
	{"wide tuple as a key", "depth", body("x = (1,)\nfor i in range(60): x = (x, x)\nreturn {x: 1}")},
	{"wide list as text", "memory", body("x = ['0123456789' * 1000]\nfor i in range(60): x = [x, x]\nreturn str(x)")},
	{"wide list returned", "memory", body("x = ['x'] * 1000\nfor i in range(60): x = [x, x]\nreturn x")},
	{"deep JSON read", "depth", body("return json.decode('[' * 100000)")},
}

func TestLimits(t *testing.T) {
	for _, tt := range tooMuch {
		t.Run(tt.name, func(t *testing.T) {
			o := limited
			_, err := runOn(t, &testbench.Config{}, tt.src, &o)
			var limit *script.LimitError
			if !errors.As(err, &limit) || limit.Limit != tt.limit {
				t.Fatalf("got %v: want the limit of %s", err, tt.limit)
			}
			if limit.Limit != "depth" && !strings.Contains(err.Error(), "limit of "+tt.limit) {
				t.Errorf("%v does not name its limit", err)
			}
			var e *script.Error
			if !errors.As(err, &e) || e.File == "" {
				t.Errorf("%v has no place", err)
			}
		})
	}
}

func TestLimitsAreNamedWithTheirFlags(t *testing.T) {
	for flag, o := range map[string]*script.Options{
		"--steps": {Steps: 1000}, "--memory": {Memory: 1 << 20}, "--timeout": {Timeout: time.Millisecond},
	} {
		_, err := runOn(t, &testbench.Config{}, body("l = []\nwhile True: l.append('x' * 1000)"), o)
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("got %v: want the name of %s", err, flag)
		}
	}
}

func TestStepsAreMetExactly(t *testing.T) {
	src := body("x = 0\nfor i in range(100): x += i\nreturn x")
	r, err := runOn(t, &testbench.Config{}, src, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runOn(t, &testbench.Config{}, src, &script.Options{Steps: r.Steps + 1}); err != nil {
		t.Errorf("with one step more: %v", err)
	}
	if _, err := runOn(t, &testbench.Config{}, src, &script.Options{Steps: r.Steps - 1}); err == nil {
		t.Error("with a step less it went through")
	}
}

func TestAStepWithoutEndIsLeftBehind(t *testing.T) {
	// Two equal values of 2^60 parts: comparing them is one step.
	src := body("x = [1]\ny = [1]\nfor i in range(25):\n  x = [x, x]\n  y = [y, y]\nreturn x == y")
	begin := time.Now()
	_, err := runOn(t, &testbench.Config{}, src, &script.Options{Timeout: 50 * time.Millisecond})
	var limit *script.LimitError
	if !errors.As(err, &limit) || limit.Limit != "time" {
		t.Errorf("got %v after %v: want the limit of time", err, time.Since(begin))
	}
}

func TestACallerEndsAScript(t *testing.T) {
	b, err := testbench.Open(&testbench.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user went away")
	o := script.Options{Print: writerFunc(func(b []byte) (int, error) { cancel(why); return len(b), nil })}
	if _, err := script.Run(ctx, b, write(t, body("log('here')\nwhile True: pass")), &o); !errors.Is(err, why) {
		t.Errorf("got %v: want %v", err, why)
	}
}

// waits is a command that ends with its context.
type waits struct{}

func (waits) Run(ctx context.Context, _ *process.Command) (*process.Result, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestACallThatWaitsEndsWithTheLimit(t *testing.T) {
	c := &testbench.Config{Processes: testbench.Processes{Runner: waits{}}}
	_, err := runOn(t, c, body("process.run('sleep', ['100'])"), &script.Options{Timeout: 50 * time.Millisecond})
	var limit *script.LimitError
	if !errors.As(err, &limit) || limit.Limit != "time" {
		t.Errorf("got %v: want the limit of time", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestDeepSourcesAreRefused(t *testing.T) {
	for name, src := range map[string]string{
		"brackets": "x=" + strings.Repeat("(", 500_000), "minus": "x=" + strings.Repeat("-", 1_000_000) + "1",
		"not": "x=" + strings.Repeat("not ", 250_000) + "1", "plus": "x=1" + strings.Repeat("+1", 250_000),
		"dots": "x=a" + strings.Repeat(".a", 250_000), "calls": "x=a" + strings.Repeat("()", 250_000),
		"indexes": "x=a" + strings.Repeat("[1]", 250_000), "lambda": "x=" + strings.Repeat("lambda:", 140_000) + "1",
		"elif": "if 1:\n  2\n" + strings.Repeat("elif 1:\n  2\n", 60_000), "long": strings.Repeat("#", 1<<20+1),
		"else": "x=" + strings.Repeat("1 if 1 else ", 80_000) + "1",
	} {
		if os.Getenv("TAPEDECK_LONG") == "" && !slices.Contains([]string{"brackets", "calls", "lambda", "elif", "long"}, name) {
			continue
		}
		var e *script.Error
		if _, err := runOn(t, &testbench.Config{}, src, nil); !errors.As(err, &e) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOrdinaryLargeThingsPass(t *testing.T) {
	for src, want := range map[string]string{
		"return len('x' * 1000000)":                                                         "1000000",
		"return len(('x' * 1000000).replace('x', 'yy'))":                                    "2000000",
		"return len(' '.join([str(i) for i in range(10000)]))":                              "48889",
		"d = {}\nfor i in range(10000): d[(i, str(i))] = i\nreturn len(d)":                  "10000",
		"x = [1]\nfor i in range(90): x = [x]\nreturn str(x) == str(x)":                     "true",
		"x = {}\nfor i in range(50): x = {'a': x}\nreturn x == json.decode(json.encode(x))": "true",
		"l = [1]\nl += l\nl.extend(l)\nreturn l":                                            "[1,1,1,1]",
		"d = {'a': 1}\nd |= {'b': 2}\nd['a'] += 5\nreturn d":                                `{"a":6,"b":2}`,
		"l = [[1, 2]]\nl[0][1] *= 4\nreturn l":                                              "[[1,8]]",
		"t = (1, 2)\nt += (3,)\nreturn t":                                                   "[1,2,3]",
		"a, (b, c) = 1, (2, 3)\nreturn [a, b, c][1:]":                                       "[2,3]",
		"return '%s %r %d %%' % ('a', 'b', 3)":                                              `a "b" 3 %`,
		"return '%s' % ([1, 'a'],)":                                                         `[1, "a"]`,
		"return '%(a)s-%(b)d' % {'a': [1], 'b': 2}":                                         "[1]-2",
		"return '{} {x} {{}}'.format([1], x={'a': 1})":                                      `[1] {"a": 1} {}`,
		"return str(struct(a = 1, b = [2]))":                                                "struct(a = 1, b = [2])",
		"return [x for x in 'a,b'.split(',')] + list('ab'.elems())":                         `["a","b","a","b"]`,
		"return sorted({2: 1, 1: 1}) + [len(set([1, 1]))]":                                  "[1,2,1]",
		"return {k: v for k, v in [('a', 1)]} | {'b': 2}":                                   `{"a":1,"b":2}`,
		"return 7 % 3 + -7 // 2":                                                            "-3",
	} {
		r, err := runOn(t, &testbench.Config{}, body(src), nil)
		if err != nil || r.Text != want {
			t.Errorf("%s: got %v, %v: want %s", src, r, err, want)
		}
	}
}

func TestErrorsReadAsIfNothingHadBeenRewritten(t *testing.T) {
	for src, want := range map[string]string{
		"'a' + 1":             "unknown binary op: string + int",
		"x = 1\nx += 'a'":     "unknown binary op: int + string",
		"{}['a']":             `key "a" not in dict`,
		"[1][3]":              "list index 3 out of range [-1:0]",
		"'%d' % 'a'":          "",
		"[].joni":             "list has no .joni field or method",
		"'a'.joinn(1)":        "string has no .joinn field or method (did you mean .join?)",
		"(1).join":            "int has no .join field or method",
		"', '.join([1])":      "join: in list, want string, got int",
		"{[]: 1}":             "unhashable type: list",
		"d = {}\nd['a'] += 1": `key "a" not in dict`,
		"int('1' * 10000000)": "int: a text of at most",
	} {
		_, err := runOn(t, &testbench.Config{}, body(src), nil)
		var e *script.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, want) || e.Line < 2 || len(e.Stack) != 1 || strings.Contains(fmt.Sprint(e.Stack), "$") {
			t.Errorf("%s: got %v, %+v: want %q", src, err, e, want)
		}
	}
}

// canceled is a command that ends with its context, and does not say why that ended.
type canceled struct{}

func (canceled) Run(ctx context.Context, _ *process.Command) (*process.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestACallThatSaysNoReasonEndsWithTheLimit(t *testing.T) {
	for _, src := range []string{body("process.run('sleep', ['100'])"), body("parallel([lambda: process.run('sleep', ['100'])])")} {
		c := &testbench.Config{Processes: testbench.Processes{Runner: canceled{}}}
		_, err := runOn(t, c, src, &script.Options{Timeout: 50 * time.Millisecond})
		var limit *script.LimitError
		if !errors.As(err, &limit) || limit.Limit != "time" || !strings.Contains(err.Error(), "--timeout") {
			t.Errorf("got %v: want the limit of time", err)
		}
	}
}

func TestTheLimitBetweenTwoFunctionsIsAnError(t *testing.T) {
	for range 20 { // the time is over within a function, or behind it
		_, err := runOn(t, &testbench.Config{}, "def again(): on_finish(again)\n"+body("on_finish(again)"), &script.Options{Timeout: 10 * time.Millisecond})
		var limit *script.LimitError
		if !errors.As(err, &limit) || limit.Limit != "time" {
			t.Fatalf("got %v: want the limit of time", err)
		}
	}
}

// TestTestsThatWouldNeverRun: a file whose tests are not all run is an error, with the place.
func TestTestsThatWouldNeverRun(t *testing.T) {
	for name, tt := range map[string]struct{ source, want string }{
		"twice":      {"def test_a():\n    pass\ndef test_a():\n    fail()\n", ":3:5: test_a stands twice"},
		"parameters": {"def test_a(x = 1):\n    pass\n", ":1:5: test_a takes parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x_test.star")
			if err := os.WriteFile(path, []byte(tt.source), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := script.Tests(path); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestEndlessLoopsHaveAPlace: what ends them says where they turn.
func TestEndlessLoopsHaveAPlace(t *testing.T) {
	for _, loop := range []string{"while True:\n    pass", "while 1:\n    pass", "while True:\n    x = x + 1", "while True:\n    if x: continue", "while not x:\n    pass"} {
		b, err := testbench.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = script.Run(t.Context(), b, write(t, "def main(args):\n  x = 0\n\n  "+loop+"\n"), &script.Options{Steps: 5000})
		var at *script.Error
		if !errors.As(err, &at) || at.Line < 4 {
			t.Errorf("%s ended with %v, want a place within it", loop, err)
		}
		b.Close()
	}
}

// TestCallsCount: a script that asks without end is ended by its steps, long before its tape has filled a disk.
func TestCallsCount(t *testing.T) {
	b, err := testbench.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	path := filepath.Join(t.TempDir(), "x.star")
	if err := os.WriteFile(path, []byte("def main(args):\n    while True:\n        clock.now_ms()\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = script.Run(t.Context(), b, path, &script.Options{Steps: 100_000})
	var limit *script.LimitError
	if !errors.As(err, &limit) || limit.Limit != "steps" {
		t.Errorf("error %v, want the limit of steps", err)
	}
}
