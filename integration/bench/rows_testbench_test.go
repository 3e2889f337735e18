package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// What a testbench costs: its tape, its scripts beside the same in Python, its hooks where nobody records.
var testbenchRows = []row{
	{
		name: "testbench/tape", unit: "x", target: atMost(1.2),
		what: "starting a script and running 1,000 host calls (ten kinds, by turns) with the tape on disk, by the same without a tape (processor time); beside it what making a file of its bytes takes",
		from: goBench{"./testbench/script", "^BenchmarkThousandCalls$", "200x", "10x", metric("BenchmarkThousandCalls", "ratio", "on-us", "off-us", "file-us")},
	},
	{
		name: "testbench/scripts", unit: "x", target: atLeast(20), needs: []need{needResponses},
		what: "1,000 runs of a test in Python whose HTTP is mocked by responses, by 1,000 test scripts of the same calls in one process",
		from: whole{"`BenchmarkThousandScripts` of testbench/script, and /usr/bin/python3 as often (a short run: 100 times, scaled)", againstPython},
	},
	{
		name: "testbench/hooks", unit: "ns", target: below(2),
		what: "the slowest hook of clock, model, commands, tools and network where nobody records",
		from: whole{"the benchmarks of each room's hook with a nil recorder", slowestHook},
	},
	{
		name: "testbench/module-start", unit: "x", target: atMost(2),
		what: "a Go program of one line, compiled before and taken from a directory, from its file to its end with a tape: by wazero alone (processor time)",
		from: goBench{"./testbench/wasi", "^BenchmarkStart$", "40x", "5x", metric("BenchmarkStart/directory", "of-bare-wazero", "ours-ms", "bare-ms")},
	},
	{
		name: "testbench/module-again", unit: "x", target: atMost(2),
		what: "the same in a process that has run it before: by wazero alone with the compiled module at hand",
		from: goBench{"./testbench/wasi", "^BenchmarkStart$", "40x", "5x", metric("BenchmarkStart/memory", "of-bare-wazero", "ours-ms", "bare-ms")},
	},
}

// needResponses is Debian's package for its own Python.
func needResponses(ctx context.Context, _ *env) string {
	if err := exec.CommandContext(ctx, debianPython, "-c", "import requests, responses").Run(); err != nil {
		return "python3-responses (install with apt-get install python3-responses)"
	}
	return ""
}

const debianPython = "/usr/bin/python3"

// pythonTest is testScript of testbench/script, as a test in Python has it.
const pythonTest = `
import json
import requests
import responses

def ask(question):
    reply = requests.post("https://api.anthropic.com/v1/messages", json={"model": "m", "messages": [{"role": "user", "content": question}]})
    return reply.json()["content"][0]["text"]

@responses.activate
def test():
    responses.add(responses.POST, "https://api.anthropic.com/v1/messages", json={"content": [{"type": "text", "text": "quick"}]})
    responses.add(responses.POST, "https://api.example.com/log", body="hello")
    words = []
    for i in range(5):
        words.append(ask("word %d" % i))
        page = requests.post("https://api.example.com/log", data=json.dumps({"word": words[-1]}))
        assert page.status_code == 200
    assert words == ["quick"] * 5

test()
`

func againstPython(ctx context.Context, e *env) (reading, error) {
	ours, err := goBench{
		"./testbench/script", "^BenchmarkThousandScripts$", "3x", "1x", metric("BenchmarkThousandScripts", "thousand-us"),
	}.measure(ctx, e)
	if err != nil {
		return reading{}, err
	}
	path := filepath.Join(e.tmp, "mocked.py")
	if err := os.WriteFile(path, []byte(pythonTest), 0o600); err != nil {
		return reading{}, err
	}
	times := 1000
	if e.short {
		times = 100
	}
	var theirs time.Duration
	for range times {
		took, err := do(e.command(ctx, e.tmp, debianPython, path))
		if err != nil {
			return reading{}, err
		}
		theirs += took
	}
	python := theirs.Seconds() * 1000 / float64(times)
	scripts := ours.value / 1e6
	return reading{value: python / scripts, beside: fmt.Sprintf("%s against %s s", figure(python), figure(scripts))}, nil
}

// hooks are the benchmarks of the rooms' hooks.
var hooks = []struct{ room, pkg, bench string }{
	{"clock", "./axis/clock", "BenchmarkHook"},
	{"model", "./axis/llm/fixture", "BenchmarkHookWithoutRecorder"},
	{"commands", "./axis/process", "BenchmarkNoRecorder"},
	{"tools", "./testbench", "BenchmarkToolsNoRecorder"},
	{"network", "./axis/network/roundtrip", "BenchmarkHookOff"},
}

func slowestHook(ctx context.Context, e *env) (reading, error) {
	var out reading
	var each []string
	for _, h := range hooks {
		g := goBench{h.pkg, "^" + h.bench + "$", "1s", "1000000x", metric(h.bench, "ns/op")}
		r, err := g.measure(ctx, e)
		if err != nil {
			return reading{}, err
		}
		out.value = max(out.value, r.value)
		each = append(each, fmt.Sprintf("%s %s", h.room, figure(r.value)))
	}
	out.beside = strings.Join(each, ", ")
	return out, nil
}
