package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// Cassette returns the Keeper that records a session in a cassette. Whoever made r finishes it when the session has ended:
// r.Finish(exit.Final()).
func Cassette(r *cassette.Recorder) Keeper { return recorder{r} }

type recorder struct{ *cassette.Recorder }

// Resize implements Keeper.
func (r recorder) Resize(s Size) error {
	return r.Recorder.Resize(cassette.Size{Rows: s.Rows, Cols: s.Cols})
}

// Final is the final record of a cassette of the session.
func (e Exit) Final() *cassette.Final {
	return &cassette.Final{DurationMS: e.Duration.Milliseconds(), Exit: &cassette.Exit{
		Code: e.Code, Signal: e.Signal, Exited: e.Signal == "", Signaled: e.Signal != "",
	}}
}

// RecordOptions say what RecordSession records, for whom and where.
type RecordOptions struct {
	// Session is the program and its terminal. Size, Modes and Term are those of the caller's terminal where they are not given
	// and there is one; a size that is given stays, whatever becomes of the caller's. Nil Env is all that the caller has. Output,
	// Keeper, Blind and Mute are RecordSession's own.
	Session SessionOptions
	// Dir is where the cassette is made. Cassette says more of it; its Command and Terminal are filled in where they are empty.
	Dir      string
	Cassette cassette.CreateOptions
	// Account is recorded by one at a time below LockRoot; "" locks nothing.
	Account, LockRoot string
	// Timeout ends the program, as Session.Close does; 0 is never.
	Timeout time.Duration
	// Std are the caller's stdin, stdout and stderr, Signals what is passed on to the program.
	Std     [3]any
	Signals <-chan os.Signal
}

// Recorded is what RecordSession leaves behind.
type Recorded struct {
	Manifest *cassette.Manifest
	Exit     Exit
	TimedOut bool // Timeout ended it
	OpenLine bool // what the program wrote to the caller's terminal ended within a line
}

// RecordSession records a program that a person uses, on the caller's terminal where there is one, in a new cassette. What it
// writes goes to stdout as it comes; the caller's terminal answers its questions, and is as it was when RecordSession
// returns. The program's exit status is in the result, whatever it is.
//
// Errors: a *cassette.LockedError where another records the account, those of cassette.Create and StartSession, when nothing was
// recorded; with a result, that the cassette could not be written whole (the program ran to its end all the same) or the output not
// be passed on.
func RecordSession(ctx context.Context, o *RecordOptions) (*Recorded, error) {
	if o.Account != "" {
		lock, err := cassette.AcquireRecordLock(o.LockRoot, o.Account)
		if err != nil {
			return nil, err
		}
		defer lock.Release()
	}
	caller := NewCaller(o.Std)
	r := &recording{o: o, caller: caller, session: o.Session}
	r.fill()
	_, err := os.Lstat(o.Dir)
	fresh := errors.Is(err, fs.ErrNotExist)
	rec, err := cassette.Create(o.Dir, r.cassette())
	if err != nil {
		caller.Close()
		return nil, err
	}
	out, err := r.run(ctx, rec)
	if out == nil && fresh { // nothing began
		err = errors.Join(err, os.RemoveAll(o.Dir))
	}
	return out, err
}

// recording is one RecordSession.
type recording struct {
	o       *RecordOptions
	caller  *Caller // nil for none
	session SessionOptions
	left    *Leftovers // of the program, on the caller's terminal; nil without one
	fixed   bool       // the size was given
}

// fill gives the session what the caller's terminal has.
func (r *recording) fill() {
	s := &r.session
	r.fixed = s.Size.Rows > 0 && s.Size.Cols > 0
	if size, ok := r.caller.Size(); ok && !r.fixed {
		s.Size = size
	}
	s.Size = s.Size.OrDefault()
	if r.caller != nil {
		or(&s.Term, os.Getenv("TERM"))
		if r.caller.Foreground() {
			or(&s.Modes, Modes(r.caller.File()))
		}
	}
	or(&s.Term, defaultTerm)
	if s.Env == nil {
		s.Env = []string{"*"}
	}
	s.Output = r.output()
	s.Blind = true
}

// output is where the program's output goes.
func (r *recording) output() io.Writer {
	w, ok := r.o.Std[1].(io.Writer)
	if !ok || w == nil {
		return nil
	}
	f, isFile := w.(*os.File)
	if r.caller == nil || !isFile || !Is(f) {
		return w
	}
	r.left = new(Leftovers)
	return io.MultiWriter(r.left, r.caller.Writer(w))
}

// cassette says what is known of the recording before it begins.
func (r *recording) cassette() *cassette.CreateOptions {
	c, s := r.o.Cassette, &r.session
	or(&c.Harness.Name, filepath.Base(s.Argv[0]))
	if c.Command.Argv == nil {
		c.Command.Argv = s.Argv
	}
	if c.Command.EnvAllowlist == nil {
		for _, e := range s.Env {
			name, _, _ := strings.Cut(e, "=")
			c.Command.EnvAllowlist = append(c.Command.EnvAllowlist, name)
		}
	}
	or(&c.Command.TimeoutMS, r.o.Timeout.Milliseconds())
	or(&c.Terminal.InitialRows, s.Size.Rows)
	or(&c.Terminal.InitialCols, s.Size.Cols)
	or(&c.Terminal.Term, s.Term)
	or(&c.Terminal.Locale, locale(environ(s.Env, s.Term, os.Environ())))
	return &c
}

// locale is what an environment says of characters.
func locale(env []string) string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		for _, e := range env {
			if v, ok := strings.CutPrefix(e, name+"="); ok && v != "" {
				return v
			}
		}
	}
	return ""
}

// run records the session in rec.
func (r *recording) run(ctx context.Context, rec *cassette.Recorder) (*Recorded, error) {
	begin, end := context.WithCancel(ctx)
	if r.o.Timeout > 0 {
		begin, end = context.WithTimeout(ctx, r.o.Timeout)
	}
	defer end()
	r.session.Keeper = Cassette(rec)
	s, err := StartSession(begin, &r.session)
	if err != nil {
		r.caller.Close()
		return nil, errors.Join(err, rec.Abort())
	}
	out := new(Recorded)
	out.Exit, err = s.Attach(&AttachOptions{Std: r.o.Std, Caller: r.caller, Signals: r.o.Signals, FixedSize: r.fixed})
	out.TimedOut = ctx.Err() == nil && begin.Err() != nil
	final := out.Exit.Final()
	if out.TimedOut {
		final.Metadata = json.RawMessage(`{"timed_out":true}`) // in Err the format has an object that says nothing of it
	}
	if r.left != nil {
		if undo := r.left.Undo(); out.Exit.Signal != "" && len(undo) > 0 { // what a program that a signal ended has left on
			r.session.Output.Write(undo)
		}
		out.OpenLine = r.left.OpenLine()
	}
	manifest, errFinish := rec.Finish(final)
	out.Manifest = manifest
	return out, errors.Join(err, errFinish)
}
