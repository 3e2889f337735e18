package deck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// streams are the standard streams of one run: the program's ends, ours, and what was kept of each.
type streams struct {
	s       *session
	caller  Streams
	tty     *TTY
	stdin   *process.Input // of the caller; nil for none
	program [3]*os.File    // the program's stdin, stdout, stderr; of the terminal's, all the same file
	ours    [3]*os.File    // our end of each pipe; nil where the stream is the terminal
	pty     *terminal.PTY
	out     [3]*process.Stream
	undo    []func() // what was done to the caller's terminal, in order
	shown   lineEnd  // of what the program wrote there

	mu    sync.Mutex
	typed []terminal.Input // into the terminal, so far

	outputs sync.WaitGroup // the relays of what the program writes; they end with it
}

// openStreams makes a pipe for each stream and a terminal for those that tty names.
func openStreams(s *session, caller *Streams, tty *TTY) (_ *streams, err error) {
	st := &streams{s: s, caller: *caller, tty: tty}
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
	if caller.Stdin != nil {
		if st.stdin, err = process.NewInput(caller.Stdin); err != nil {
			return nil, err
		}
	}
	if tty != nil {
		if st.pty, err = terminal.Open(terminal.Size{Rows: tty.Rows, Cols: tty.Cols}); err != nil {
			return nil, err
		}
	}
	for i := range st.program {
		st.out[i] = process.NewStream(s.store, s.scrub, s.mask)
		if st.isTTY(i) {
			st.program[i] = st.pty.Slave
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

func (st *streams) isTTY(i int) bool { return st.tty != nil && slices.Contains(st.tty.Streams, i) }

// ttyIndex is the stream that becomes the program's controlling terminal, or -1.
func (st *streams) ttyIndex() int {
	if st.tty == nil {
		return -1
	}
	return st.tty.Streams[0]
}

// relay starts passing bytes both ways.
func (st *streams) relay() {
	st.relayTerminal()
	for i, to := range map[int]io.Writer{1: st.caller.Stdout, 2: st.caller.Stderr} {
		if from := st.ours[i]; from != nil {
			st.outputs.Go(func() { st.kept(process.RelayOutput(st.shown.watch(to), from, st.out[i])) })
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
func (st *streams) relayTerminal() {
	if st.pty == nil {
		return
	}
	to, kept := st.caller.Stdout, st.out[1]
	if !st.isTTY(1) && st.isTTY(2) {
		to, kept = st.caller.Stderr, st.out[2]
	}
	st.passOutput(to)
	typist := terminal.NewTypist()
	st.outputs.Go(func() { st.kept(process.RelayOutput(io.MultiWriter(st.shown.watch(to), typist), st.pty.Master, kept)) })
	if !st.isTTY(0) || st.stdin == nil {
		return
	}
	st.followHost()
	// A terminal has no end of its own: what ends a program that reads one is a Ctrl-D among the bytes.
	in := io.MultiWriter(st.out[0], st.pty.Master)
	go func() {
		if st.tty.Typed != nil {
			st.check(ignoreClosed(typist.Play(in, st.stdin, st.tty.Typed)))
			return
		}
		err := typist.Pass(in, st.stdin, st.note)
		if host, ok := st.caller.Stdin.(*os.File); err == nil && (!ok || !terminal.Is(host)) {
			err = typist.Pass(in, bytes.NewReader([]byte{terminal.EOF}), st.note) // a pipe has an end
		}
		st.check(ignoreClosed(err))
	}()
}

// note remembers when keys were typed.
func (st *streams) note(in terminal.Input) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.typed = append(st.typed, in)
}

// keys returns when what was typed so far; the relay may still wait for the next key.
func (st *streams) keys() []terminal.Input {
	st.mu.Lock()
	defer st.mu.Unlock()
	return append([]terminal.Input{}, st.typed...)
}

// passOutput has the caller's terminal show the output of the program's as it comes.
func (st *streams) passOutput(to io.Writer) {
	host, _ := to.(*os.File)
	restore, err := terminal.PassOutput(host)
	if err != nil {
		st.s.log.Warn("the terminal changes the ends of lines", "err", err)
		return
	}
	st.undo = append(st.undo, restore)
}

// followHost puts the caller's terminal into raw mode and follows its size.
func (st *streams) followHost() {
	host, _ := terminal.Host([3]any{st.caller.Stdin, st.caller.Stdout, st.caller.Stderr})
	in, _ := st.caller.Stdin.(*os.File)
	restore, err := terminal.Raw(in)
	if err != nil {
		st.s.log.Warn("the terminal stays in line mode", "err", err)
		restore = func() {}
	}
	st.undo = append(st.undo, restore, st.pty.Follow(host))
}

// kept ends the run where what passed could not be kept.
func (st *streams) kept(err error) {
	if err != nil {
		st.s.fail(fmt.Errorf("a standard stream: %w", err))
	}
}

// check says why keys do not pass. What of them could not be kept is said at the end.
func (st *streams) check(err error) {
	if err != nil {
		st.s.log.Error("keys do not pass", "err", err)
	}
}

// closeProgram closes our copies of the program's ends of pipes. That of the terminal stays open while the program lives:
// a program that closes its streams before it ends would otherwise hang up its own terminal, and be killed by that.
func (st *streams) closeProgram() {
	for i, f := range st.program {
		if f != nil && !st.isTTY(i) {
			f.Close()
		}
	}
}

// stopInput leaves what the caller types from now on to whoever reads next.
func (st *streams) stopInput() {
	if st.stdin != nil {
		st.stdin.Stop()
	}
}

// drain waits until everything that the program wrote has been passed on and kept.
func (st *streams) drain() {
	if st.pty != nil {
		st.pty.Slave.Close()
	}
	st.outputs.Wait()
}

// close ends what is ours and undoes what was done to the caller's terminal. A relay of stdin that still waits for the
// caller's next byte ends with it.
func (st *streams) close() {
	st.stopInput()
	for _, f := range slices.Backward(st.undo) {
		f()
	}
	st.undo = nil
	for _, f := range st.ours {
		if f != nil {
			f.Close()
		}
	}
	if st.pty != nil {
		st.pty.Slave.Close()
		st.pty.Master.Close()
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

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) || isEIO(err) {
		return nil
	}
	return err
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
