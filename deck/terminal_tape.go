package deck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A terminalTape is the cassette of what the program's terminal showed and was given. It counts with the tape, in ordinals and in
// time. What it cannot write ends the run, as it does on the tape. A nil one, of a program without a terminal, does nothing.
type terminalTape struct {
	s   *session
	rec *cassette.Recorder

	hidden bool // as rec knows it; of the one that types
}

// newTerminalTape begins the cassette of r beside its tape; nil where the program has no terminal.
func newTerminalTape(r *run) (_ *terminalTape, err error) {
	if r.tty == nil {
		return nil, nil
	}
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
	if t == nil {
		return nil
	}
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

// signal records a signal that is passed on to the program.
func (t *terminalTape) signal(name string) {
	if t != nil {
		t.kept(t.rec.Signal(name))
	}
}

func (t *terminalTape) resize(size terminal.Size) {
	if t != nil {
		t.kept(t.rec.Resize(cassette.Size{Rows: size.Rows, Cols: size.Cols}))
	}
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

// abort leaves the cassette of a run that failed as it is: unfinished. After finish it does nothing.
func (t *terminalTape) abort() {
	if t != nil {
		_ = t.rec.Abort() // the run has its error
	}
}

// text is s as the cassette says it: UTF-8, and without secrets.
func (t *terminalTape) text(s string) string {
	text, _ := tape.SafeString(t.s.scrub.String(s))
	return text
}

// variable is what the program finds in its environment under name.
func (t *terminalTape) variable(env []string, name string) string {
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return t.text(value)
		}
	}
	return ""
}
