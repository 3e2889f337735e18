package wasi_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

func TestFunctionsOfTheHost(t *testing.T) {
	r := run(t, &testbench.Config{Env: map[string]string{"MODE": "daily"}}, nil, "calls").ended(t)
	for _, want := range []string{
		"clock.now_ms 1.7672256e+12 <nil>\n", "clock.sleep <nil> <nil>\nclock.monotonic_ms 1500 <nil>\n", "fs.read hello\n <nil>\n",
		"fs.read map[base64:/wA=] <nil>\n", "fs.list [d raw] <nil>\n", "fs.exists true <nil>\n", "+hello", "random.bytes map[base64:",
		"env.get daily <nil>\nenv.get x <nil>\nenv.get <nil> <nil>\n", "clock.advance <nil> <nil>\n",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s", want, r.stdout)
		}
	}
	if want := "a 1 null {\"b\":2}\nthe end\n"; r.stderr != want {
		t.Errorf("standard error has %q, want %q", r.stderr, want)
	}
}

// TestDenied: a bench without fixtures says of each call what was asked for and how to give it.
func TestDenied(t *testing.T) {
	r := run(t, nil, nil, "denied").ended(t)
	for _, want := range []string{"--mcp", "Config.MCP", "--net", "Config.Net.Tape", "--llm", "Config.LLM.Fixture", "--processes", "Config.Processes.Tape"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%s is not in\n%s", want, r.stdout)
		}
	}
}

func TestArgumentsThatAreWrong(t *testing.T) {
	r := run(t, nil, nil, "wrong").ended(t)
	for _, want := range []string{
		"clock.sleep clock.sleep: ms is missing: clock.sleep(ms)\n", "clock.sleep clock.sleep: ms: want ms from 0 to 292 years, got the int -1\n",
		`clock.sleep clock.sleep: ms: want an integer of 64 bits, got the string "1"` + "\n", "got the float 1e+300\n",
		"clock.sleep clock.sleep: no parameter s", "clock.sleep clock.sleep: want the arguments as a JSON object",
		"fs.read clean ../x: the path leads out", "fs.read clean /etc/passwd: the path is absolute", "the path holds a NUL",
		"random.bytes random.bytes: n: want from 0 to 16777216, got the int 1099511627776\n", "random number from 2 to 1",
		"process.run: args: want a list of strings", "llm.complete: messages: want a list", "http.get: headers: want a dict",
		"missing protocol scheme", "log: want values, a list", "no.such: no such function",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s", want, r.stdout)
		}
	}
	if n := strings.Count(r.stdout, "<nil>"); n > 0 {
		t.Errorf("%d calls went through:\n%s", n, r.stdout)
	}
}

// Calls by hand: addresses outside of the module's memory, and its own text for arguments.
func TestAddressesOutsideOfMemory(t *testing.T) {
	llm, take := function("tapedeck", "llm.complete", 1), function("tapedeck", "take", 2)
	poll, random := function("wasi_snapshot_preview1", "poll_oneoff", 3), function("wasi_snapshot_preview1", "random_get", 1)
	far := []byte{opI32Const, 0x80, 0x80, 0x04} // 65536, where one page ends
	for name, tt := range map[string]struct {
		code []byte
		want string
	}{
		"arguments": {importing([]part{llm}, join(far, part{opI32Const, 1, opCall, 0, opDrop})...), "llm.complete: the arguments, 1 bytes at 65536, lie outside"},
		"length":    {importing([]part{llm}, opI32Const, 0, opI32Const, 0x7f, opCall, 0, opDrop), "4294967295 bytes at 0, lie outside"},
		"a name": {importing([]part{function("tapedeck", "call", 3)}, join(far, part{opI32Const, 1, opI32Const, 0, opI32Const, 0, opCall, 0, opDrop})...),
			"call: the name, 1 bytes at 65536, lies outside"},
		"answer": {importing([]part{llm, take}, join(part{opI32Const, 0, opI32Const, 0, opCall, 0, opDrop}, far, part{opCall, 1})...),
			"does not fit into the module's memory"},
		"subscriptions":            {importing([]part{poll}, join(far, part{opI32Const, 0, opI32Const, 1, opI32Const, 0, opCall, 0, opI32Const, 21, opI32Ne}, trapIf)...), ""},
		"many of them":             {importing([]part{poll}, join(part{opI32Const, 0, opI32Const, 0, opI32Const, 0x7f, opI32Const, 0, opCall, 0, opI32Const, 21, opI32Ne}, trapIf)...), ""},
		"none of them":             {importing([]part{poll}, join(part{opI32Const, 0, opI32Const, 0, opI32Const, 0, opI32Const, 0, opCall, 0, opI32Const, 28, opI32Ne}, trapIf)...), ""},
		"random bytes":             {importing([]part{random}, join(far, part{opI32Const, 1, opCall, 0, opI32Const, 21, opI32Ne}, trapIf)...), ""},
		"an empty answer is taken": {importing([]part{take}, opI32Const, 0, opCall, 0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := runBytes(t, nil, nil, tt.code)
			if tt.want == "" {
				r.ended(t)
			} else if r.err == nil || !strings.Contains(r.err.Error(), tt.want) {
				t.Errorf("got %v, want %q", r.err, tt.want)
			}
		})
	}
}

// trapIf is unreachable where the number on the stack is not 0.
var trapIf = part{0x04, noResult, opUnreachable, opEnd}
