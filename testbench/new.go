package testbench

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// New begins a run for a test, and ends it when the test and its subtests have ended. c may be nil, and c.Name empty: it is then
// that of the test. The run's tape is kept in memory where c asks for no other, so that Golden has it.
//
// The test fails at once where the run cannot begin, and with a call that nothing answers (its caller has the error too, and may go on
// without a word), of which its end tells: of ten, each with its line of the test. There it fails with what Close returns too and, unless
// c.Unused is set, with the rules and recorded calls that nobody asked for. Of a test that failed already these are no news.
func New(t testing.TB, c *Config) *Bench {
	t.Helper()
	conf := ofTest(t, c)
	f := &failing{t: t}
	b, err := open(conf, nil, f.told)
	return f.watch(b, err)
}

// NewReplay is Replay for a test, as New is Open. Check gives the verdict.
func NewReplay(t testing.TB, tapePath string, c *Config) *Bench {
	t.Helper()
	conf := ofTest(t, c)
	conf.Unused = true // what nobody asked for is a divergence
	f := &failing{t: t}
	b, err := replay(tapePath, conf, f.told)
	return f.watch(b, err)
}

// Check fails the test where the verdict on a replay (see Bench.Verdict) is not faithful, and tells why.
func Check(t testing.TB, b *Bench, mode fidelity.Mode) {
	t.Helper()
	switch report, err := b.Verdict(mode); {
	case err != nil:
		t.Fatalf("%v", err)
	case !report.Faithful():
		t.Errorf("the replay is not what the tape %s holds; where the change is meant, record the run again\n%s", b.from.path, text(report))
	}
}

// ofTest is c as a test has it.
func ofTest(t testing.TB, c *Config) *Config {
	var conf Config
	if c != nil {
		conf = *c
	}
	if conf.Name == "" {
		conf.Name = t.Name()
	}
	conf.Keep = true
	return &conf
}

// shownUnanswered is how many calls that nothing answered a test tells of.
const shownUnanswered = 10

// failing fails a test with what a run meets.
type failing struct {
	t testing.TB

	mu    sync.Mutex
	calls int      // that nothing answered
	said  []string // of the first of them
}

// told is called by whichever goroutine made the call.
func (f *failing) told(err error) {
	f.t.Fail() // what it was is said at the test's end, where the line of New is known
	said := callerInTest() + err.Error()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if len(f.said) < shownUnanswered {
		f.said = append(f.said, said)
	}
}

// callerInTest is the innermost line of a test that the caller stands below, as "agent_test.go:21: "; "" where there is none.
func callerInTest() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s:%d: ", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

// unanswered is what the test says of the calls that nothing answered; "" where all were.
func (f *failing) unanswered() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch f.calls {
	case 0:
		return ""
	case 1:
		return "testbench: " + f.said[0]
	}
	text := fmt.Sprintf("testbench: nothing answered %d calls:\n\t%s", f.calls, strings.Join(f.said, "\n\t"))
	if more := f.calls - len(f.said); more > 0 {
		text += fmt.Sprintf("\n\tand %d more", more)
	}
	return text
}

// watch ends b with the test.
func (f *failing) watch(b *Bench, err error) *Bench {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("%v", err)
		return nil
	}
	f.t.Cleanup(func() {
		f.t.Helper()
		if f.t.Failed() {
			b.Fail()
		}
		if err := b.Close(); err != nil {
			f.t.Errorf("%v", err)
		}
		if text := f.unanswered(); text != "" {
			f.t.Error(text)
		}
		if b.conf.Unused || f.t.Failed() || f.t.Skipped() {
			return
		}
		if unused := b.Unused(); len(unused) > 0 {
			f.t.Errorf("testbench: never asked for (Config.Unused lets them be):\n\t%s", strings.Join(unused, "\n\t"))
		}
	})
	return b
}
