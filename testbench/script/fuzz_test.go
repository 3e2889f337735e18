package script_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// hold runs a source under small limits. It may do what it likes but panic, hang or give an error without a place.
func hold(t *testing.T, src string) {
	t.Helper()
	o := script.Options{Steps: 20_000, Memory: 16 << 20, Timeout: 5 * time.Second}
	begin := time.Now()
	_, err := runOn(t, &testbench.Config{LLM: anyAnswer(t), Net: testbench.Net{Transport: constant{}}, Unused: true}, src, &o)
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if err == nil {
		return
	}
	if strings.Contains(err.Error(), "panic:") {
		t.Fatalf("%v\n%s", err, src)
	}
	var e *script.Error
	if !errors.As(err, &e) || e.File == "" {
		t.Errorf("an error without a place: %v", err)
	}
	_ = e.Detail()
}

func seeds() []string {
	all := []string{thousandCalls, testScript, sixtyFour, "", "\x00", "def main(args): return args", "\xff\xfe", "load('a.star', 'b')"}
	for _, f := range script.Functions() {
		all = append(all, body(f.Example))
	}
	for i, tt := range tooMuch {
		if i%6 == 0 || os.Getenv("TAPEDECK_LONG") != "" { // TestLimits runs them all
			all = append(all, tt.src)
		}
	}
	return all
}

func FuzzSource(f *testing.F) {
	for _, src := range seeds() {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) { hold(t, string(src)) })
}

// Scripts that hold, with bytes changed, taken out, doubled and mixed.
func TestMutatedScripts(t *testing.T) {
	times := 60
	if os.Getenv("TAPEDECK_LONG") != "" {
		times = 300
	}
	r := rand.New(rand.NewPCG(1, 2))
	all := seeds()
	words := []string{"(", ")", "[", "]", ":", "\n  ", "=", "+=", "*", "**", "%", "None", "parallel", "lambda: ", "llm.complete", "[:]", ".join", "'", "while True:", "1 << 500", "{}", "in "}
	for range times {
		src := []byte(all[r.IntN(len(all))])
		for range 1 + r.IntN(6) {
			if len(src) == 0 {
				break
			}
			at, end := r.IntN(len(src)), r.IntN(len(src))
			at, end = min(at, end), max(at, end)
			switch r.IntN(5) {
			case 0:
				src[at] = byte(r.IntN(256))
			case 1:
				src = append(src[:at:at], src[end:]...)
			case 2:
				src = append(src[:end:end], src[at:]...)
			case 3:
				src = append(src[:at:at], append([]byte(words[r.IntN(len(words))]), src[at:]...)...)
			case 4:
				other := all[r.IntN(len(all))]
				src = append(src[:at:at], other[r.IntN(len(other)+1):]...)
			}
			src = src[:min(len(src), 1<<16)]
		}
		hold(t, string(src))
	}
}
