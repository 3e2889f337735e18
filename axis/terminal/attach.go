package terminal

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/stopread"
)

// AttachOptions say who uses a session, and what there is to know.
type AttachOptions struct {
	// Std are the caller's stdin, stdout and stderr. Keys are read from its terminal where stdin is one; another stdin is
	// typed, and its end is what a person would type for it (Ctrl-D).
	Std [3]any
	// Caller is the terminal among them, NewCaller's, which Attach closes; nil for none.
	Caller *Caller
	// FixedSize leaves the session's size as it is, whatever that of the caller's terminal is.
	FixedSize bool
	// Signals are passed on to the program; nil for none. One of SIGHUP ends the session.
	Signals <-chan os.Signal
}

// run returns when the session has ended.
func (a *attached) run() (Exit, error) {
	s, o := a.s, a.o
	defer a.c.Close()
	stopFollow := func() {}
	if a.c != nil {
		a.settle()
		if !o.FixedSize {
			stopFollow = Follow(a.c.File(), func(size Size) { s.Resize(size) })
		}
	}
	if in, ok := o.Std[0].(io.Reader); ok && !a.types() && in != nil {
		a.pipe(in)
	}
	stop := make(chan struct{})
	var keeping sync.WaitGroup
	keeping.Go(func() { a.keep(stop) })
	<-s.done
	stopFollow()
	close(stop)
	keeping.Wait()
	a.mu.Lock()
	a.release()
	a.mu.Unlock()
	return s.exit, s.err
}

// attached is one Attach.
type attached struct {
	s      *Session
	o      *AttachOptions
	c      *Caller
	typist *Typist

	mu   sync.Mutex
	ours bool
	keys *stopread.Reader // nil while nobody reads keys

	passing sync.Mutex // held by the one that passes keys
}

// types reports whether keys are those of the caller's terminal.
func (a *attached) types() bool {
	if a.c == nil || a.c.Keys == nil {
		return false
	}
	in, ok := a.o.Std[0].(*os.File)
	return ok && Is(in)
}

// keep passes signals on, and stops and continues with the caller's shell, until stop is closed.
func (a *attached) keep(stop <-chan struct{}) {
	job := new(Job)
	if a.c != nil {
		job = NewJob()
		defer job.Close()
	}
	for {
		select {
		case <-stop:
			return
		case <-a.foreground():
			a.settle()
		case <-job.Stops:
			a.mu.Lock()
			a.release()
			a.mu.Unlock()
			job.Suspend()
			a.settle()
			a.s.signal(resizeSignal) // what stood on the terminal has to be drawn again
		case <-job.Continued:
			a.settle()
		case sig := <-a.o.Signals:
			if sig == hangUpSignal {
				a.s.hang()
			} else if number, ok := sig.(syscall.Signal); ok {
				a.s.Signal(number)
			}
		}
	}
}

// background is how often who is in the background looks whether it still is: a shell tells a job that it stopped, and not one that
// runs, that it is in the foreground now.
const background = 200 * time.Millisecond

// foreground tells when to look whether the caller's terminal can be had.
func (a *attached) foreground() <-chan time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.c == nil || a.ours {
		return nil
	}
	return time.After(background)
}

// settle takes the caller's terminal where we may, and gives it back where not.
func (a *attached) settle() {
	if a.c == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch may := a.c.Foreground(); {
	case may && !a.ours:
		a.take()
	case !may && a.ours:
		a.release()
	}
	if size, ok := a.c.Size(); ok && a.ours && !a.o.FixedSize && size != a.s.Size() {
		a.s.Resize(size)
	}
}

// take makes the terminal ours and passes keys; mu is held.
func (a *attached) take() {
	a.ours = true
	if a.c.Take(a.types()) != nil || !a.types() {
		return // it stays in line mode
	}
	keys, err := stopread.New(a.c.Keys)
	if err != nil {
		return
	}
	a.keys = keys
	go a.passKeys(keys)
}

// release leaves the terminal to whoever reads it next; mu is held.
func (a *attached) release() {
	a.ours = false
	if a.keys != nil {
		a.keys.Stop()
		a.keys = nil
	}
	a.c.Release(false)
}

// passKeys passes keys until they are stopped. The end of the caller's terminal is that of the program's.
func (a *attached) passKeys(keys *stopread.Reader) {
	a.passing.Lock()
	defer a.passing.Unlock()
	err := a.typist.Pass(typing{a.s}, keys, func(Input) {})
	if !errors.Is(err, os.ErrClosed) {
		a.s.hang()
	}
}

// pipe types what stdin holds. It ends with the session, at the latest with the next that comes.
func (a *attached) pipe(in io.Reader) {
	go func() {
		if f, ok := in.(*os.File); ok {
			if keys, err := stopread.New(f); err == nil {
				go func() { <-a.s.done; keys.Stop() }()
				in = keys
			}
		}
		a.typist.PassPipe(typing{a.s}, in, func(Input) {})
	}()
}

// typing sends what is written to it.
type typing struct{ s *Session }

// Write implements io.Writer.
func (t typing) Write(p []byte) (int, error) {
	if err := t.s.input(p, KeyName(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
