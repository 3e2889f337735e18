package deck

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/internal/stopread"
)

// maxKeys bounds in bytes what is kept of keys typed beside a stdin that is no terminal.
const maxKeys = 1 << 20

// A console is the program's terminal and the caller's, where there is one, on which it is shown.
//
// The caller's is ours, and the program in the foreground of its own, while the program uses it: from the start where its
// stdin and stdout both are the terminal, else from when it first reads it or changes its modes (it is stopped then, and
// continued with it). So `cmd | less` leaves the keys to less, `ls | less` gives them to it, and a job in the background
// leaves the terminal alone.
type console struct {
	st      *streams
	pty     *terminal.PTY
	host    *terminal.Caller // nil where the caller has none
	typist  *terminal.Typist
	tape    *terminalTape
	watcher *screen.Watcher // of a replay that looks at the screen before it types; else nil
	world   world
	undo    func() // of the following of the host's size

	mu     sync.Mutex
	wanted bool             // the program uses its terminal
	ours   bool             // it has it
	size   terminal.Size    // of the program's terminal
	input  *stopread.Reader // of the caller's keys, while the terminal is ours

	passing sync.Mutex // held by the one that passes keys
	unshown int        // keys of the password that is typed; of the one that passes keys

	noting sync.Mutex // guards what follows, and the order of it
	typed  []terminal.Input
	keys   []byte // typed beside a stdin that is no terminal
}

func newConsole(st *streams, r *run) (_ *console, err error) {
	tty := st.tty
	c := &console{
		st: st, typist: terminal.NewTypist(), watcher: r.watcher, undo: func() {},
		size: terminal.Size{Rows: tty.Rows, Cols: tty.Cols, Width: tty.Width, Height: tty.Height},
		host: terminal.NewCaller([3]any{st.caller.Stdin, st.caller.Stdout, st.caller.Stderr}),
	}
	c.typist.Patience = r.patience
	c.wanted = c.host == nil || tty.Has(0) && (tty.Has(1) || !c.typesOnHost())
	if c.pty, err = terminal.Open(c.size); err != nil {
		c.host.Close()
		return nil, err
	}
	if c.tape, err = newTerminalTape(r); err != nil {
		c.close()
		return nil, err
	}
	if err := c.pty.SetModes(tty.Modes); err != nil { // of another system
		st.s.log.Warn("the program's terminal has its usual modes", "err", err)
	}
	return c, nil
}

// typesOnHost reports whether the program's keys are those of the caller's terminal.
func (c *console) typesOnHost() bool {
	if c.st.replay || c.host == nil || c.host.Keys == nil {
		return false
	}
	if !c.st.tty.Has(0) {
		return true
	}
	in, ok := c.st.caller.Stdin.(*os.File)
	return ok && terminal.Is(in)
}

// background reports whether the program starts without its terminal.
func (c *console) background() bool { return c != nil && (!c.wanted || !c.host.Foreground()) }

// start begins to pass keys and sizes to the program of w.
func (c *console) start(w world) {
	c.world = w
	c.settle()
	switch {
	case c.st.replay:
		go c.replay()
	case c.typesOnHost(): // passed from settle
	case c.st.tty.Has(0) && c.st.stdin != nil:
		go func() { c.check(c.typist.PassPipe(c.writer(), c.st.stdin, c.note)) }()
	}
	if c.host != nil && !c.st.replay {
		c.undo = terminal.Follow(c.host.File(), c.resized)
	}
}

// replay types what was recorded. Not waited for: it ends with the terminal, at the latest.
func (c *console) replay() {
	from := c.st.keys
	if c.st.tty.Has(0) && c.st.stdin != nil {
		from = c.st.stdin
	}
	if from != nil {
		c.check(c.typist.Play(c.writer(), from, c.st.tty.Typed, c.resize, c.watcher.Expected()))
	}
}

// writer is where keys go: to what is kept of them, then to the program. What comes when that has ended is kept nowhere, so that a
// replay types what the terminal's cassette holds and no more.
func (c *console) writer() io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		err := c.tape.typed(p, c.pty.NoEcho(), c.pty.SignalsOf(p))
		c.watcher.Cause()
		if err != nil {
			return 0, err
		}
		if c.st.tty.Has(0) {
			if _, err := c.st.out[0].Write(c.unseen(p)); err != nil {
				return 0, err
			}
		} else {
			c.noting.Lock()
			c.keys = append(c.keys, c.unseen(p)[:min(len(p), maxKeys-len(c.keys))]...)
			c.noting.Unlock()
		}
		return c.pty.Master.Write(p)
	})
}

// unseenKeys stand in turn for the keys of a password, and are what a replay types in their place: no pattern, as '*' is to a shell,
// and no word, so that a replay hides them where the program prints them, as the password was.
const unseenKeys = "k3Wq8Zr5"

// unseen is what is kept of keys: those that the terminal shows nothing of are a password, of which its length stays, so that a
// replay types as much.
func (c *console) unseen(p []byte) []byte {
	if !c.pty.NoEcho() {
		c.unshown = 0
		return p
	}
	kept := bytes.Clone(p)
	for i, k := range kept {
		if k >= ' ' && k != 0x7f {
			kept[i] = unseenKeys[c.unshown%len(unseenKeys)]
			c.unshown++
		}
	}
	return kept
}

// signalled records a signal that the program got.
func (c *console) signalled(sig syscall.Signal) {
	if c != nil {
		c.tape.kept(c.tape.rec.Signal(procgroup.Name(sig)))
	}
}

// note remembers when keys were typed.
func (c *console) note(in terminal.Input) {
	c.noting.Lock()
	defer c.noting.Unlock()
	c.typed = append(c.typed, in)
}

// noted returns what was typed so far, and when; the relay may still wait for the next key.
func (c *console) noted() (typed []terminal.Input, keys []byte) {
	c.noting.Lock()
	defer c.noting.Unlock()
	return append([]terminal.Input{}, c.typed...), append([]byte(nil), c.keys...)
}

// want gives the program its terminal, where the caller's can be had; false says that we are in the background there.
func (c *console) want() bool {
	c.mu.Lock()
	c.wanted = true
	c.mu.Unlock()
	if !c.host.Foreground() {
		return false
	}
	c.settle()
	c.world.Foreground(true) // also where another of its processes had it
	return true
}

// settle takes the caller's terminal where we may and the program uses it, and gives it back where not.
func (c *console) settle() {
	c.mu.Lock()
	take := c.wanted && c.host.Foreground()
	switch {
	case take && !c.ours:
		c.take()
	case !take && c.ours:
		c.release()
	}
	c.mu.Unlock()
	if size, ok := c.host.Size(); ok && take && !c.st.replay && size != c.size {
		c.resized(size)
	}
}

func (c *console) take() {
	c.ours = true
	c.world.Foreground(true)
	if c.host == nil {
		return
	}
	var err error
	if c.st.replay {
		err = c.host.TakeDeaf()
	} else {
		err = c.host.Take(c.typesOnHost())
	}
	if err != nil {
		c.st.s.log.Warn("the terminal stays in line mode", "err", err)
	}
	if !c.typesOnHost() {
		return
	}
	if c.input, err = stopread.New(c.host.Keys); err != nil {
		c.st.s.log.Warn("no key reaches the program", "err", err)
		return
	}
	go c.pass(c.input)
}

// release leaves the terminal to whoever reads it next.
func (c *console) release() {
	c.ours = false
	c.world.Foreground(false)
	c.stopInput()
	c.host.Release(c.st.replay)
}

// pass passes keys until in is stopped. It ends with the terminal, at the latest: a program that reads no keys holds it up.
func (c *console) pass(in *stopread.Reader) {
	c.passing.Lock()
	defer c.passing.Unlock()
	err := c.typist.Pass(c.writer(), in, c.note)
	if err == nil || procgroup.IsEIO(err) { // the caller's terminal has gone: it has no end else
		c.hangUp()
	}
	c.check(err)
}

// hangUp tells the program that its terminal has gone. One that has ended is not told.
func (c *console) hangUp() {
	if c.world.Signal(procgroup.SigHUP) == nil {
		c.signalled(procgroup.SigHUP)
	}
	c.world.Signal(procgroup.SigCONT)
}

// stopInput ends the reading of keys; mu is held.
func (c *console) stopInput() {
	if c.input != nil {
		c.input.Stop()
		c.input = nil
	}
}

// resized passes a new size of the caller's terminal on.
func (c *console) resized(size terminal.Size) {
	c.note(c.typist.Resized(size))
	c.resize(size)
}

// resize gives the program's terminal a size. The kernel tells the program of one that is new; one that is not was told
// all the same.
func (c *console) resize(size terminal.Size) {
	c.mu.Lock()
	same := c.size == size
	c.size = size
	c.mu.Unlock()
	c.tape.kept(c.tape.rec.Resize(cassette.Size{Rows: size.Rows, Cols: size.Cols}))
	c.st.out[c.st.tty.ShownAs()].Resize(size.Rows, size.Cols)
	c.watcher.Resize(size)
	if same {
		c.world.Signal(procgroup.SigWINCH)
		return
	}
	if err := c.pty.Resize(size); err != nil {
		c.st.s.log.Warn("the program's terminal keeps its size", "err", err)
	}
}

// check says why keys do not pass, unless a stream has ended. What of them could not be kept is said at the end.
func (c *console) check(err error) {
	if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, cassette.ErrFinished) && !procgroup.IsEIO(err) {
		c.st.s.log.Error("keys do not pass", "err", err)
	}
}

// pause gives the caller's terminal back while the program is stopped; resume takes it again, where we may.
func (c *console) pause() {
	if c == nil {
		return
	}
	c.typist.Settle(c.pty, time.Second) // with what it wrote last it leaves its screen
	c.typist.Pause()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ours {
		c.release()
	}
}

func (c *console) resume() {
	if c == nil {
		return
	}
	c.typist.Continue()
	c.settle()
}

// end stops passing keys; close gives the terminals back.
func (c *console) end() {
	if c == nil {
		return
	}
	c.undo()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopInput()
}

func (c *console) close() {
	if c == nil {
		return
	}
	c.end()
	if c.tape != nil {
		_ = c.tape.rec.Abort() // of a run that failed, which has its error: unfinished. After finish it does nothing
	}
	c.host.Release(c.st.replay)
	c.host.Close()
	c.pty.Slave.Close()
	c.pty.Master.Close()
}

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A jobKeeper makes the program and us one job of the caller's shell: where one of the two is stopped, so is the other, and
// both go on together.
type jobKeeper struct {
	w     world
	con   *console // nil where the program has no terminal
	job   *terminal.Job
	asked bool // we were asked to stop, and have told the program to
	alone bool // a stop of the program is none of the caller's business: it is continued at once
}

// keepJob keeps the program's job until stop is called, which waits for its end. Nobody's signals are caught where the
// caller passes none and has no terminal.
func (r *run) keepJob(w world, st *streams) (stop func()) {
	k := &jobKeeper{w: w, con: st.con, job: new(terminal.Job)}
	caller := st.con != nil && st.con.host != nil
	k.alone = !caller || r.s.replay
	if caller || r.signals != nil {
		k.job = terminal.NewJob()
	}
	done := make(chan struct{})
	var keeping sync.WaitGroup
	keeping.Go(func() {
		defer k.job.Close()
		for {
			select {
			case <-done:
				return
			case <-k.job.Stops:
				k.ask()
			case sig := <-w.Stopped():
				k.stopped(sig)
			case <-k.job.Continued:
				if k.con != nil {
					k.con.settle()
				}
			}
		}
	})
	return func() { close(done); keeping.Wait() }
}

// ask has the program stop, as the terminal that asked us would have asked it. One without a terminal of its own cannot be
// asked, nor one that was not while recording.
func (k *jobKeeper) ask() {
	sig := procgroup.SigTSTP
	if k.con == nil || k.alone || k.w.Stopped() == nil {
		sig = procgroup.SigSTOP
	}
	k.asked = true
	k.w.Signal(sig)
	if k.w.Stopped() == nil { // this world does not tell
		k.suspend()
	}
}

// stopped does what the program's stop asks for.
func (k *jobKeeper) stopped(sig syscall.Signal) {
	switch {
	case k.asked:
		k.suspend()
	case k.con == nil: // its own business, as it is of a program that nobody records
	case (sig == procgroup.SigTTIN || sig == procgroup.SigTTOU) && k.con.want():
		k.w.Signal(procgroup.SigCONT)
	case k.alone:
		k.w.Signal(procgroup.SigCONT)
	default:
		k.suspend()
	}
}

func (k *jobKeeper) suspend() {
	k.asked = false
	k.con.pause()
	k.job.Suspend()
	k.con.resume()
	k.w.Signal(procgroup.SigCONT)
}
