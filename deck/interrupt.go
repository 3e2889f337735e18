package deck

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
)

// ErrInterrupted is returned where a signal came before the program was started: there is nothing to pass it on to.
var ErrInterrupted = errors.New("interrupted before the program started")

// interrupted reports a signal that waits and would have ended the program.
func interrupted(signals <-chan os.Signal) error {
	select {
	case sig, ok := <-signals:
		if ok && ends(sig) {
			return ErrInterrupted
		}
	default:
	}
	return nil
}

// untilInterrupted returns a context that ends with ErrInterrupted as its cause at a signal that would have ended the program.
// What else comes until stop, before there is a program, is dropped.
func untilInterrupted(ctx context.Context, signals <-chan os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case sig, ok := <-signals:
				if !ok {
					signals = nil // a closed channel would be ready for ever
				} else if ends(sig) {
					cancel(ErrInterrupted)
				}
			}
		}
	}()
	return ctx, func() {
		close(end)
		<-done
		cancel(nil)
	}
}

// ends reports whether a signal would have ended the program.
func ends(sig os.Signal) bool {
	return sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// A signalRelay passes the caller's signals on to the program until it is stopped.
type signalRelay struct {
	passed atomic.Int64 // how many
	stop   chan struct{}
	done   chan struct{} // closed when the relay has ended
}

// passSignals begins to pass signals on. told is told of each.
func passSignals(w world, signals <-chan os.Signal, told func(syscall.Signal)) *signalRelay {
	r := &signalRelay{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for {
			select {
			case <-r.stop:
				return
			case sig, ok := <-signals:
				if !ok {
					signals = nil // a closed channel would be ready for ever
					continue
				}
				if s, ok := sig.(syscall.Signal); ok && w.Signal(s) == nil {
					told(s)
					r.passed.Add(1)
				}
			}
		}
	}()
	return r
}

// end stops the relay and returns how many signals it passed.
func (r *signalRelay) end() int {
	close(r.stop)
	<-r.done
	return int(r.passed.Load())
}
