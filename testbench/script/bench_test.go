package script_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// thousandCalls asks for something a thousand times, of every axis that needs no wire.
const thousandCalls = `
def main(args):
    for i in range(100):
        name = "out/%d.txt" % (i % 10)
        answer = llm.complete([{"role": "user", "content": "file %d" % i}], system = "Be brief.")
        fs.write(name, answer["text"])
        assert_eq(fs.read(name), answer["text"])
        clock.sleep(1000)
        process.run("git", ["status", "--short"])
        clock.now_ms()
        random.int(0, 100)
        fs.exists(name)
        fs.list("out")
        env.get("MODE")
`

// BenchmarkThousandCalls starts a script that makes 1,000 host calls, without a tape and with one on disk. Of what the latter costs the kernel's
// part stands beside: making a file anew and writing its bytes (file-us).
func BenchmarkThousandCalls(b *testing.B) {
	c := world(b, 100)
	for i := range c.LLM.Rules {
		c.LLM.Rules[i].Times = 1 << 30
	}
	path := write(b, thousandCalls)
	run := func(b *testing.B, emit string) time.Duration {
		with := *c
		with.Emit = emit
		begin := cputime.Spent()
		bench, err := testbench.Open(&with)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := script.Run(b.Context(), bench, path, nil); err != nil {
			b.Fatal(err)
		}
		if err := bench.Close(); err != nil {
			b.Fatal(err)
		}
		return cputime.Spent() - begin
	}
	emit := filepath.Join(b.TempDir(), "run.tape")
	run(b, emit) // what is made once
	bytes, err := os.ReadFile(emit)
	if err != nil {
		b.Fatal(err)
	}
	bare := emit + ".bytes"
	file := func() time.Duration {
		begin := cputime.Spent()
		_ = os.Remove(bare)
		if err := os.WriteFile(bare, bytes, 0o600); err != nil {
			b.Fatal(err)
		}
		return cputime.Spent() - begin
	}
	file()
	var off, on, made time.Duration
	b.ResetTimer()
	for range b.N { // by turns, so that what else the machine does falls on both
		off += run(b, "")
		made += file()
		on += run(b, emit)
	} // by the processor's time: the machine's disk is nobody's
	b.ReportMetric(float64(on)/float64(off), "ratio")
	b.ReportMetric(float64(made.Microseconds())/float64(b.N), "file-us")
	b.ReportMetric(float64(off.Microseconds())/float64(b.N), "off-us")
	b.ReportMetric(float64(on.Microseconds())/float64(b.N), "on-us")
}

// testScript is what people test: a loop that calls a model and a service. integration/bench has the same in Python.
const testScript = `
def ask(question):
    reply = llm.complete([{"role": "user", "content": question}])
    return reply["text"]

def main(args):
    words = []
    for i in range(5):
        words.append(ask("word %d" % i))
        page = http.post("https://api.example.com/log", json.encode({"word": words[-1]}))
        assert_eq(page["status"], 200)
    assert_eq(words, ["quick"] * 5)
`

// BenchmarkThousandScripts runs 1,000 test scripts in one process, each on a bench of its own with a tape in memory.
func BenchmarkThousandScripts(b *testing.B) {
	rules, err := fixture.ReadRules(strings.NewReader(`{"match":{"any":true},"times":5,"response":{"text":"quick"}}`), "rules")
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.star", i)), []byte(testScript), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		begin := time.Now()
		for i := range 1000 {
			bench, err := testbench.Open(&testbench.Config{
				Name: "test.star", LLM: testbench.LLM{Rules: rules}, Net: testbench.Net{Transport: constant{}}, EmitTo: new(bytes.Buffer),
			})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := script.Run(b.Context(), bench, filepath.Join(dir, fmt.Sprintf("%d.star", i)), nil); err != nil {
				b.Fatal(err)
			}
			if err := bench.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(time.Since(begin).Microseconds()), "thousand-us")
	}
}

// BenchmarkStart is a script that does nothing.
func BenchmarkStart(b *testing.B) {
	path := write(b, "def main(args): pass\n")
	for b.Loop() {
		bench, err := testbench.Open(&testbench.Config{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := script.Run(b.Context(), bench, path, &script.Options{Print: io.Discard}); err != nil {
			b.Fatal(err)
		}
		if err := bench.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoop is the interpreter alone: operators and indexes as they are checked.
func BenchmarkLoop(b *testing.B) {
	src := "def main(args):\n  l = [0] * 100\n  for i in range(100000):\n    l[i % 100] += i * 2\n  return len(l)\n"
	for b.Loop() {
		if _, err := runOn(b, &testbench.Config{}, src, nil); err != nil {
			b.Fatal(err)
		}
	}
}
