package deck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/stopread"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// streams are the standard streams of one run: the program's ends, ours, and what was kept of each.
type streams struct {
	s       *session
	caller  Streams
	tty     *recording.TTY
	stdin   *stopread.Reader // of the caller; nil for none
	program [3]*os.File      // the program's stdin, stdout, stderr; of the terminal's, all the same file
	ours    [3]*os.File      // our end of each pipe; nil where the stream is the terminal
	keys    io.Reader        // replay: typed beside a stdin that was no terminal; nil for none
	replay  bool
	con     *console // nil where no stream is a terminal
	out     [3]*process.Stream

	shown   terminal.Leftovers // of what was written to the caller's terminal
	shownOn io.Writer          // that terminal; nil where there is none

	outputs sync.WaitGroup // the relays of what the program writes; they end with it
}

// openStreams makes a pipe for each stream of r and a terminal for those that its tty names.
func openStreams(r *run) (_ *streams, err error) {
	s, tty := r.s, r.tty
	st := &streams{s: s, caller: r.std, tty: tty, keys: r.keys, replay: s.replay}
	defer func() {
		if err != nil {
			st.closeProgram()
			st.close()
		}
	}()
	if st.caller.Stdout == nil {
		st.caller.Stdout = io.Discard
	}
	if st.caller.Stderr == nil {
		st.caller.Stderr = io.Discard
	}
	if sameWriter(st.caller.Stdout, st.caller.Stderr) {
		one := &lockedWriter{w: st.caller.Stdout}
		st.caller.Stdout, st.caller.Stderr = one, one
	}
	if st.caller.Stdin != nil {
		if st.stdin, err = stopread.New(st.caller.Stdin); err != nil {
			return nil, err
		}
	}
	if tty != nil {
		if st.con, err = newConsole(st, r); err != nil {
			return nil, err
		}
	}
	for i := range st.program {
		st.out[i] = process.NewStream(s.store, s.scrub, s.mask)
		if st.tty.Has(i) {
			if i == tty.ShownAs() {
				size := st.con.size.OrDefault()
				st.out[i] = process.NewTerminalStream(s.store, s.scrub, s.mask, size.Rows, size.Cols)
			}
			st.program[i] = st.con.pty.Slave
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		st.program[i], st.ours[i] = w, r
		if i == 0 {
			st.program[i], st.ours[i] = r, w
		}
	}
	return st, nil
}

// ttyIndex is the stream that becomes the program's controlling terminal, or -1.
func (st *streams) ttyIndex() int {
	if st.tty == nil {
		return -1
	}
	return st.tty.Streams[0]
}

// relay starts passing bytes both ways, for the program of w.
func (st *streams) relay(w world) {
	if st.con != nil {
		st.relayTerminal(w)
	}
	for i, to := range map[int]io.Writer{1: st.caller.Stdout, 2: st.caller.Stderr} {
		if from := st.ours[i]; from != nil {
			to = st.watch(to)
			st.outputs.Go(func() { st.kept(process.RelayOutput(to, from, st.out[i])) })
		}
	}
	if to := st.ours[0]; to != nil {
		if st.stdin == nil {
			to.Close()
			return
		}
		// Not waited for: a stdin that is no file cannot be stopped.
		go func() { st.kept(process.RelayInput(to, st.stdin, st.out[0])) }()
	}
}

// relayTerminal passes the terminal's bytes: its output goes to whichever of stdout and stderr the caller sees.
func (st *streams) relayTerminal(w world) {
	to, kept := st.caller.Stdout, st.out[st.tty.ShownAs()]
	if st.tty.ShownAs() == 2 {
		to = st.caller.Stderr
	}
	to = io.MultiWriter(st.con.tape, st.con.watcher, st.con.host.Writer(st.watch(to)), st.con.typist)
	st.con.start(w)
	st.outputs.Go(func() {
		st.kept(process.RelayOutput(to, st.con.pty.Output(), kept))
		st.con.hangUp() // the caller's terminal may have gone, and the program's with it
	})
}

// watch returns w, and where that is the caller's terminal has what is left on it looked at.
func (st *streams) watch(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && terminal.Is(f) {
		st.shownOn = w
		return &watchedTerminal{f, &st.shown}
	}
	return w
}

// A watchedTerminal is the caller's terminal, of which is known what a program leaves on it.
type watchedTerminal struct {
	*os.File
	left *terminal.Leftovers
}

// Write implements io.Writer.
func (w *watchedTerminal) Write(b []byte) (int, error) {
	w.left.Write(b)
	return w.File.Write(b)
}

// undo puts back on the caller's terminal what the program turned on there, where it was ended before it could.
func (st *streams) undo() {
	if left := st.shown.Undo(); len(left) > 0 && st.shownOn != nil {
		st.shownOn.Write(left)
		st.shown.Write(left)
	}
}

// kept ends the run where what passed could not be kept.
func (st *streams) kept(err error) {
	if err != nil {
		st.s.fail(fmt.Errorf("a standard stream: %w", err))
	}
}

// closeProgram closes our copies of the program's ends of pipes. That of the terminal stays open while the program lives:
// a program that closes its streams before it ends would otherwise hang up its own terminal, and be killed by that.
func (st *streams) closeProgram() {
	for i, f := range st.program {
		if f != nil && !st.tty.Has(i) {
			f.Close()
		}
	}
}

// stopInput leaves what the caller types from now on to whoever reads next.
func (st *streams) stopInput() {
	st.con.end()
	if st.stdin != nil {
		st.stdin.Stop()
	}
}

// drain waits until everything that the program wrote has been passed on and kept.
func (st *streams) drain() {
	if st.con != nil {
		st.con.pty.Slave.Close()
	}
	st.outputs.Wait()
}

// close ends what is ours and undoes what was done to the caller's terminal. A relay of stdin that still waits for the
// caller's next byte ends with it.
func (st *streams) close() {
	st.stopInput()
	st.con.close()
	for _, f := range st.ours {
		if f != nil {
			f.Close()
		}
	}
	for _, s := range st.out {
		if s != nil {
			s.Finish() // of a run that failed: what was kept so far needs no keeper any more
		}
	}
}

// finish ends what is kept of the streams. The error is that of the first that could not be kept.
func (st *streams) finish() error {
	for _, s := range st.out {
		if _, err := s.Finish(); err != nil {
			return err
		}
	}
	return nil
}

// A lockedWriter is one writer for two streams, which have a relay each.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// sameWriter reports whether two streams go to one writer that is no file: writes to a file may meet. Writers of a kind
// that cannot be compared are taken for two.
func sameWriter(a, b io.Writer) bool {
	_, file := a.(*os.File)
	return !file && reflect.ValueOf(a).Comparable() && a == b
}

// A terminalTape is the cassette of what the program's terminal showed and was given. It counts with the tape, in ordinals and in
// time. What it cannot write ends the run, as it does on the tape.
type terminalTape struct {
	s   *session
	rec *cassette.Recorder

	hidden bool // as rec knows it; of the one that types
}

// newTerminalTape begins the cassette of r, whose program has a terminal, beside its tape.
func newTerminalTape(r *run) (_ *terminalTape, err error) {
	t := &terminalTape{s: r.s}
	size := terminal.Size{Rows: r.tty.Rows, Cols: r.tty.Cols}.OrDefault()
	o := &cassette.CreateOptions{
		ID: r.id, Harness: cassette.Harness{Name: t.text(filepath.Base(r.path))},
		Terminal:     cassette.Terminal{InitialRows: size.Rows, InitialCols: size.Cols, Term: t.variable(r.env, "TERM")},
		ResolutionMS: 1, Scrub: r.s.scrub, KeepEmail: true, Sync: r.sync,
		Clock: func() time.Duration { return time.Since(r.s.start) }, G: r.s.rec.Ordinal,
		Failed: t.kept,
	}
	for _, name := range []string{"LANG", "LC_CTYPE", "LC_ALL"} { // the last one that is set counts, as in POSIX
		o.Terminal.Locale = cmp.Or(t.variable(r.env, name), o.Terminal.Locale)
	}
	for _, a := range r.argv {
		o.Command.Argv = append(o.Command.Argv, t.text(a))
	}
	if o.Terminal.PTYMode, err = json.Marshal(map[string]string{"modes": r.tty.Modes}); err != nil {
		return nil, err
	}
	t.rec, err = cassette.Create(filepath.Join(r.s.dir, recording.TerminalName), o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", recording.TerminalName, err)
	}
	return t, nil
}

// Write implements io.Writer: the program's terminal shows p. It never fails.
func (t *terminalTape) Write(p []byte) (int, error) {
	t.kept(t.rec.Output(p))
	return len(p), nil
}

// typed records that the program is given p. The program's terminal makes signals of some keys, and shows nothing of others. The error is
// cassette.ErrFinished once the program has ended: p reaches nobody.
func (t *terminalTape) typed(p []byte, hidden bool, signals []string) error {
	if hidden != t.hidden {
		t.hidden = hidden
		t.kept(t.rec.NoEcho(hidden))
	}
	err := t.rec.Input(p, "")
	t.kept(err)
	for _, name := range signals {
		t.kept(t.rec.Signal(name))
	}
	return err
}

// kept ends the run where something could not be written. What comes behind the end does not count.
func (t *terminalTape) kept(err error) {
	if err != nil && !errors.Is(err, cassette.ErrFinished) {
		t.s.fail(fmt.Errorf("%s: %w", recording.TerminalName, err))
	}
}

// finish ends the cassette of a program that has ended.
func (t *terminalTape) finish(e *ended) {
	x := &cassette.Exit{Code: e.exit.Code, Signal: e.exit.Signal, Exited: e.exit.Signal == "", Signaled: e.exit.Signal != ""}
	_, err := t.rec.Finish(&cassette.Final{Exit: x, DurationMS: e.duration.Milliseconds()})
	t.kept(err)
}

// text is s as the cassette says it: UTF-8, and without secrets.
func (t *terminalTape) text(s string) string {
	text, _ := tape.SafeString(t.s.scrub.String(s))
	return text
}

// variable is what the program finds in its environment under name.
func (t *terminalTape) variable(env []string, name string) string {
	return t.text(recording.Getenv(env, name))
}
