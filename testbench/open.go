package testbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// producer begins the header's harn_version of tapes of ours.
const producer = "tapedeck "

// Open begins a run. Nil is the zero Config. The error says which part of c does not hold, or what could not be read or made.
//
// Close ends the run; what is not closed leaves a tape that may lack its last records.
func Open(c *Config) (*Bench, error) {
	if c == nil {
		c = new(Config)
	}
	return open(c, nil, nil)
}

// open is Open for a replay too. told is told of each call that nothing answers.
func open(c *Config, from *recorded, told func(error)) (*Bench, error) {
	b := &Bench{core: &core{conf: *c, from: from}}
	b.conf.Args = slices.Clone(c.Args)
	b.watch = watch{replay: from != nil, told: told, now: b.place}
	if err := b.conf.check(); err != nil {
		return nil, err
	}
	if err := b.begin(); err != nil {
		for _, f := range b.closers {
			_ = f() // why it did not begin is the error of Open
		}
		return nil, err
	}
	return b, nil
}

// A core is what the pieces of a run share: its clock, its tape, what it knows of secrets and of calls that nothing answers.
type core struct {
	conf    Config
	clock   *clock.Clock
	out     *output        // nil where there is no tape
	rec     *tape.Recorder // of out; nil where there is none
	from    *recorded      // what a replay answers from; nil for others
	secrets *secrets
	watch   watch
	// What Close does, in this order, each list in its own: what may still record, what the Config asks to be written, what is let
	// go. A run that does not begin is let go only.
	late, writes, closers []func() error
	unused                []func() []string

	failed   atomic.Bool // Fail
	finished atomic.Bool // Finish
}

// check refuses what contradicts itself.
func (c *Config) check() error {
	if n := given(c.LLM.Fixture != "", c.LLM.Rules != nil, c.LLM.Source != nil, c.LLM.Live); n > 1 {
		return errors.New("testbench: of Config.LLM's Fixture, Rules, Source and Live at most one answers: leave one")
	}
	if n := given(c.Processes.Tape != "", c.Processes.Calls != nil, c.Processes.Runner != nil, c.Processes.Live); n > 1 {
		return errors.New("testbench: of Config.Processes' Tape, Calls, Runner and Live at most one answers: leave one")
	}
	if c.Net.Tape != "" && c.Net.Transport != nil && len(c.Net.Allow) == 0 {
		return errors.New("testbench: of Config.Net's Tape and Transport one answers: leave one, or name in Allow what Transport is asked for")
	}
	if c.Files.WriteBack && c.Files.Dir == "" {
		return errors.New("testbench: Config.Files.WriteBack wants Config.Files.Dir to write into")
	}
	if c.Clock.Real && !c.Clock.Start.IsZero() {
		return errors.New("testbench: Config.Clock is real or starts at a time, not both")
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return &ConfigError{"Env", fmt.Errorf("%q is no name of a variable", name)}
		}
	}
	return c.checkPaths()
}

func given(flags ...bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

func (b *core) openClock() {
	o := clock.Options{Start: b.conf.Clock.Start, Real: b.conf.Clock.Real, Idle: b.flush}
	if b.from != nil {
		b.timeOf(&o)
	}
	b.clock = clock.New(&o)
}

// flush hands the tape to the kernel before the run waits: whoever kills it then finds what came before. What fails sticks to the
// recorder, which tells the next that records.
func (b *core) flush() {
	if b.out != nil && b.out.file != nil && b.out.file.begun() {
		_ = b.rec.Flush()
	}
}

// place is where a record would stand now.
func (b *core) place() (records int, wallMS, monotonicMS int64, phase tape.Phase) {
	if b.finished.Load() {
		phase = tape.PhaseRuntimeFinalize
	}
	wallMS, monotonicMS = b.clock.Stamp()
	return b.rec.Count(), wallMS, monotonicMS, phase
}

// wait lets the time of an answer pass.
func (b *core) wait(ctx context.Context, d time.Duration) error { return b.clock.Wait(ctx, d) }

// openTape begins the run's tape, and has the clock record: the first of the pieces.
func (b *core) openTape() error {
	b.secrets = newSecrets(&b.conf, b.live(), b.from)
	out, err := newOutput(&b.conf, b.header(), tape.RecorderOptions{Now: b.clock.Stamp, Clean: b.secrets.clean, Bare: true})
	if err != nil {
		return err
	}
	if b.out = out; out != nil {
		b.rec = out.rec
		b.closers = append(b.closers, out.close)
		b.clock.Record(out.rec)
	}
	return nil
}

// live reports whether a call may leave this process with a key of the host.
func (b *core) live() bool {
	return b.from == nil && (b.conf.LLM.Live || b.conf.LLM.Record != "" || b.conf.Processes.Live || b.conf.Processes.Record != "")
}

// header is that of the run's tape.
func (b *core) header() *tape.Header {
	h := &tape.Header{Producer: producer + version.Version, Argv: make([]string, len(b.conf.Args))}
	for i, a := range b.conf.Args {
		h.Argv[i] = strings.ToValidUTF8(string(b.secrets.clean([]byte(a))), "\uFFFD")
	}
	if b.clock.Paused() && (b.from == nil || b.from.header.StartedAtUnixMS != nil) {
		ms := b.clock.Start().UnixMilli()
		h.StartedAtUnixMS = &ms
	}
	if name := scriptPath(b.conf.Name); name != "" {
		h.ScriptPath = &name
	}
	return h
}

// scriptPath is the name of what runs as it stands in the header: the same wherever the project lies.
func scriptPath(name string) string {
	if filepath.IsAbs(name) {
		name = filepath.Base(name)
	}
	return strings.ToValidUTF8(filepath.ToSlash(name), "\uFFFD")
}

// readFile opens a fixture and has read read it.
func readFile[T any](path string, read func(r io.Reader, name string) (T, error)) (T, error) {
	var none T
	f, err := regular.Open(path)
	if err != nil {
		return none, err
	}
	defer f.Close()
	return read(f, path)
}

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

// payload is the payload that the tape would have for bytes of a call that nothing answers.
func (b *core) payload(p []byte) *tape.Payload {
	out, err := b.rec.Payload(p)
	if err != nil {
		return nil // the recorder failed, which Close says
	}
	return out
}

func (b *core) cleanText(s string) string { return string(b.secrets.clean([]byte(s))) }

// now is the time of what is written or answered: the run's, unrecorded.
func (b *core) now() time.Time {
	ms, _ := b.clock.Stamp()
	return time.UnixMilli(ms).UTC()
}
