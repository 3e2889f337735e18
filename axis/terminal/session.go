package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// SessionOptions say what runs on a session's terminal, and on what kind of terminal. Only Argv is needed.
type SessionOptions struct {
	Argv []string // the program and its arguments
	// Env is what the program finds of the environment, and nothing else: "NAME" is the caller's value, where it has one,
	// "NAME=VALUE" is given, "*" is all that the caller has. Later ones win. Nil is DefaultEnv.
	Env  []string
	Dir  string // its working directory; "" is the caller's
	Size Size   // 24 by 80 where it has no rows or columns
	Term string // $TERM; "" is xterm-256color. It wins over Env
	// Modes are those of the terminal at the start, as Modes returns them; "" is the usual ones.
	Modes string

	// Output is given every byte that the program writes, in order, from one goroutine: a slow one holds the program up. Nil is
	// nobody.
	Output io.Writer
	// Keeper is told all that passes; nil for nobody.
	Keeper Keeper
	// Blind sessions have no screen: nothing can be waited for but the end, no question of the program is answered, keys are
	// those of a terminal whose modes nobody changed. For who passes gigabytes through.
	Blind bool
	// Mute sessions answer no question of the program (DA, DSR, DECRQM …): another terminal does.
	Mute bool
	// Scrollback is how many lines above the screen are kept; 0 is 1000, below 0 none.
	Scrollback int
	// Backlog is how many bytes may wait for the screen model, which is not waited for; 0 is 1 GiB. They are in memory up to
	// 4 MiB, then in a temporary file. What comes on top is not on the screen: Screen.Skipped counts it.
	Backlog int64

	// Starter starts the program; nil is os/exec.
	Starter Starter
	// Patience is for how long WaitFor waits where its context has no deadline; 0 is 30 s.
	Patience time.Duration
	// Grace is how much time a program has to end after a SIGHUP before it is killed; 0 is 2 s.
	Grace time.Duration
	// Quiet is for how long the terminal must have been quiet, once the program has ended, before it is closed, where other
	// processes still hold it; 0 is 100 ms. After Grace it is closed in any case.
	Quiet time.Duration
}

// What SessionOptions say where they say nothing.
const (
	defaultTerm     = "xterm-256color"
	defaultPatience = 30 * time.Second
	defaultGrace    = 2 * time.Second
	defaultQuiet    = 100 * time.Millisecond
)

// DefaultEnv is what a session's program finds of the caller's environment where SessionOptions.Env is nil.
var DefaultEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"}

// A Keeper is told all that passes between a session's program and who uses it, in the order in which it passed. It is called
// from several goroutines, one at a time. Its errors end nothing: Session.Wait returns the first.
type Keeper interface {
	Output(p []byte) error // the next bytes that the program wrote; p is not to be kept
	// Input is bytes that were sent to the program; key names them where they are not just text: "ctrl-c", "paste", "mouse",
	// "focus-in", "focus-out", and "reply" for an answer to a question of the program.
	Input(p []byte, key string) error
	// NoEcho says whether the program has its terminal show nothing of the lines that are typed from here on: passwords.
	NoEcho(on bool) error
	Resize(size Size) error
	Signal(name string) error // "SIGTERM" and the like
}

// A Session is a program on a terminal of its own, which a Go program uses as a person would. Its methods may be called from
// several goroutines. Close must be called in the end.
//
// Every byte that the program wrote before its end is read. Its end is told once the terminal has ended too: at once, or where
// processes that it left in the background still hold the terminal, when that has been quiet for SessionOptions.Quiet, or
// after SessionOptions.Grace; what they write then fails.
type Session struct {
	o     SessionOptions
	pty   *PTY // without Slave
	proc  Process
	begun time.Time
	feed  *feed // nil where it is blind

	busy   atomic.Bool  // what was read is being handed on
	read   atomic.Int64 // bytes so far
	lastNS atomic.Int64 // when something was read or sent last, ns since begun

	keep    sync.Mutex // held while something is handed to the keeper and to the feed, so that both see one order
	keepErr error
	outErr  error
	noEcho  bool // as the keeper knows it

	send sync.Mutex // held while bytes are written to the program

	sizing sync.Mutex
	size   Size

	replies  chan []byte
	hangUp   sync.Once
	hung     chan struct{} // closed by Close
	killed   atomic.Bool
	readDone chan struct{} // closed when the reader has ended
	left     chan struct{} // closed when the program has ended
	done     chan struct{} // closed when all is over; exit and err are set then
	exit     Exit
	err      error
	tasks    sync.WaitGroup // the reader, the feeder, the answerer, the waiter
}

// An Exit says how a session ended.
type Exit struct {
	Code     int           // 128 plus the signal's number where one ended the program
	Signal   string        // "SIGKILL" and the like; "" for none
	Duration time.Duration // from the program's start to its end
	Killed   bool          // it was asked to end (SIGHUP), and did not until it was killed
	Held     bool          // processes that it left still had its terminal
}

// ErrNoScreen is what a Session without a screen answers to who asks for what stands there.
var ErrNoScreen = errors.New("the session has no screen: Blind is set")

// StartSession starts the program of o on a new terminal. When ctx ends the session is closed, as by Close.
func StartSession(ctx context.Context, o *SessionOptions) (*Session, error) {
	s := newSession(o)
	if len(s.o.Argv) == 0 {
		return nil, errors.New("a session needs a program: Argv is empty")
	}
	pty, err := openSession(s.size)
	if err != nil {
		return nil, err
	}
	s.pty = pty
	defer pty.Slave.Close()
	if err := pty.SetModes(s.o.Modes); err != nil {
		return nil, errors.Join(err, pty.Master.Close())
	}
	s.begun = time.Now()
	s.proc, err = s.o.Starter.Start(ctx, &Program{Argv: s.o.Argv, Env: environ(s.o.Env, s.o.Term, os.Environ()), Dir: s.o.Dir, TTY: pty.Slave})
	if err != nil {
		return nil, errors.Join(err, pty.Master.Close())
	}
	s.run(ctx)
	return s, nil
}

func newSession(o *SessionOptions) *Session {
	s := &Session{
		hung: make(chan struct{}), readDone: make(chan struct{}), left: make(chan struct{}), done: make(chan struct{}),
		replies: make(chan []byte, maxReplies),
	}
	if o != nil {
		s.o = *o
	}
	or(&s.o.Term, defaultTerm)
	or(&s.o.Patience, defaultPatience)
	or(&s.o.Grace, defaultGrace)
	or(&s.o.Quiet, defaultQuiet)
	if s.o.Env == nil {
		s.o.Env = DefaultEnv
	}
	if s.o.Starter == nil {
		s.o.Starter = osStarter{}
	}
	s.size = s.o.Size.OrDefault()
	return s
}

// or gives v a value where it has none.
func or[T comparable](v *T, otherwise T) {
	if *v == *new(T) {
		*v = otherwise
	}
}

// run starts what a session consists of.
func (s *Session) run(ctx context.Context) {
	if !s.o.Blind {
		s.feed = newFeed(s)
		s.tasks.Go(s.feed.run)
	}
	s.tasks.Go(s.readAll)
	s.tasks.Go(s.answer)
	stop := context.AfterFunc(ctx, s.hang)
	s.tasks.Go(func() {
		defer stop()
		s.await()
	})
	s.tasks.Go(s.endAfterHangUp)
}

// await waits for the program's end, then for the terminal's.
func (s *Session) await() {
	status, err := s.proc.Wait()
	duration := time.Since(s.begun)
	close(s.left)
	held := s.drain()
	s.pty.Master.Close()
	<-s.readDone
	if s.feed != nil {
		s.feed.backlog.end()
	}
	s.keep.Lock()
	s.err = errors.Join(err, s.keepErr, s.outErr)
	s.keep.Unlock()
	s.exit = Exit{Code: status.Code, Duration: duration, Killed: s.killed.Load(), Held: held}
	if status.Signal != 0 {
		s.exit.Code, s.exit.Signal = signalStatus+int(status.Signal), signalName(status.Signal)
	}
	close(s.done)
}

// signalStatus is what a shell adds to a signal's number.
const signalStatus = 128

// drain waits until the terminal has ended or has been quiet, and reports whether it has not ended.
func (s *Session) drain() (held bool) {
	const moment = 5 * time.Millisecond
	begun := time.Now()
	for {
		select {
		case <-s.readDone:
			return false
		case <-time.After(moment):
		}
		if s.busy.Load() {
			continue // who is given the output holds it up
		}
		quiet := min(time.Since(begun), s.sinceRead())
		if quiet >= s.o.Quiet && s.pty.unread() == 0 || time.Since(begun) > s.o.Grace {
			return true
		}
	}
}

// endAfterHangUp ends the program that was hung up.
func (s *Session) endAfterHangUp() {
	select {
	case <-s.left:
		return
	case <-s.hung:
	}
	s.tell(hangUpSignal)
	s.tell(continueSignal)
	select {
	case <-s.left:
		return
	case <-time.After(s.o.Grace):
	}
	s.killed.Store(true)
	s.tell(syscall.SIGKILL)
}

// hang asks the program to end, as the end of a terminal does.
func (s *Session) hang() { s.hangUp.Do(func() { close(s.hung) }) }

// Close ends the session: the program is told that its terminal has gone (SIGHUP), and killed where it has not ended after
// SessionOptions.Grace. What it writes meanwhile is still read. The error is Wait's.
func (s *Session) Close() error {
	s.hang()
	<-s.done
	s.tasks.Wait()
	return s.err
}

// Done is closed when the session has ended: all that was written has been read then.
func (s *Session) Done() <-chan struct{} { return s.done }

// Wait waits for the session's end, or that of ctx. The error is ctx's, or that of waiting for the program, of its keeper or
// of writing its output; a program that fails is none.
func (s *Session) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-s.done:
		return s.exit, s.err
	default:
	}
	select {
	case <-s.done:
		return s.exit, s.err
	case <-ctx.Done():
		return Exit{}, ctx.Err()
	}
}

// Size is the terminal's present size.
func (s *Session) Size() Size {
	s.sizing.Lock()
	defer s.sizing.Unlock()
	return s.size
}

// Mode reports whether the program has turned a private mode (DECSET) of its terminal on, as 2004 for bracketed paste, and
// whether such a mode is known.
func (s *Session) Mode(n int) (on, known bool) {
	if s.feed == nil {
		return false, false
	}
	s.feed.catchUp(s.read.Load())
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.feed.screen.Mode(true, n)
}

func (s *Session) note() { s.lastNS.Store(int64(time.Since(s.begun))) }

// sinceRead is for how long nothing was read or sent.
func (s *Session) sinceRead() time.Duration {
	return time.Since(s.begun) - time.Duration(s.lastNS.Load())
}

// kept notes the first error of the keeper; keep is held.
func (s *Session) kept(err error) {
	if err != nil && s.keepErr == nil {
		s.keepErr = fmt.Errorf("what passed is not kept whole: %w", err)
	}
}

// readSize is how much is read at once, in bytes.
const readSize = 64 << 10

// readAll reads what the program writes until nobody can write any more, or the terminal is closed. It waits for nobody but
// SessionOptions.Output and Keeper.
func (s *Session) readAll() {
	defer close(s.readDone)
	out, buf := s.pty.Output(), make([]byte, readSize)
	for {
		n, err := out.Read(buf)
		if n > 0 {
			s.busy.Store(true)
			s.note()
			s.took(buf[:n])
			s.note()
			s.busy.Store(false)
		}
		if err != nil {
			return // EIO where the program's side is closed
		}
	}
}

// took hands on what was read.
func (s *Session) took(p []byte) {
	if s.o.Output != nil && s.outErr == nil {
		_, s.outErr = s.o.Output.Write(p)
	}
	s.keep.Lock()
	defer s.keep.Unlock()
	if s.o.Keeper != nil {
		s.kept(s.o.Keeper.Output(p))
	}
	if s.feed != nil {
		s.feed.write(p)
	}
	s.read.Add(int64(len(p)))
}

// A Starter starts a session's program somewhere: on this machine (nil in SessionOptions), in a jail.
type Starter interface {
	// Start starts p. TTY is to be its controlling terminal and its three streams; the caller closes its own copy of it.
	Start(ctx context.Context, p *Program) (Process, error)
}

// A Program is what a Starter starts.
type Program struct {
	Argv []string
	Env  []string // its whole environment, NAME=VALUE
	Dir  string   // "" is the caller's
	TTY  *os.File
}

// A Process is a program that was started.
type Process interface {
	// Wait waits for its end and lets go of what it ran in, its terminal too. It is called once.
	Wait() (Status, error)
	// Signal sends a signal to its process group, or, where that is gone, does nothing.
	Signal(sig syscall.Signal) error
}

// A Status is how a program ended: Signal is 0 unless a signal ended it.
type Status struct {
	Code   int
	Signal syscall.Signal
}

// environ is the environment that an allowlist makes of have. TERM is term.
func environ(allow []string, term string, have []string) []string {
	var out []string
	add := func(entry string) {
		name, _, _ := strings.Cut(entry, "=")
		out = slices.DeleteFunc(out, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		out = append(out, entry)
	}
	for _, a := range allow {
		given := strings.Contains(a, "=")
		if given {
			add(a)
			continue
		}
		for _, e := range have {
			if a == "*" || strings.HasPrefix(e, a+"=") {
				add(e)
			}
		}
	}
	add("TERM=" + term)
	return out
}

// Attach has a person use a session, from its start until its end: keys go to the program as they come, a new size of the
// person's terminal is the session's, and at the end the terminal has the modes that it had. It returns when the session has
// ended. What the program writes is not its business: that is SessionOptions.Output, Caller.Writer.
//
// In the background of its shell it leaves the terminal alone until it is continued in the foreground. The session's program
// is the leader of its own session, so Ctrl-Z is a key like others: a shell in there stops its jobs with it, a program alone
// cannot be stopped. A SIGTSTP from outside stops us, with the terminal given back, and not the program.
func (s *Session) Attach(o *AttachOptions) (Exit, error) {
	return (&attached{s: s, o: o, c: o.Caller, typist: NewTypist()}).run()
}
