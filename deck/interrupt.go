package deck

import (
	"context"
	"errors"
	"os"
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
	end := onSignals(signals, func(sig os.Signal) {
		if ends(sig) {
			cancel(ErrInterrupted)
		}
	})
	return ctx, func() {
		end()
		cancel(nil)
	}
}

// ends reports whether a signal would have ended the program.
func ends(sig os.Signal) bool {
	return sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// passSignals passes signals on to the program until end, which returns how many it got. told is told of each.
func passSignals(w world, signals <-chan os.Signal, told func(syscall.Signal)) (end func() (passed int)) {
	passed := 0
	stop := onSignals(signals, func(sig os.Signal) {
		if s, ok := sig.(syscall.Signal); ok && w.Signal(s) == nil {
			told(s)
			passed++
		}
	})
	return func() int {
		stop()
		return passed
	}
}

// onSignals calls do with each signal that comes until stop, which waits for what is done with the last one.
func onSignals(signals <-chan os.Signal, do func(os.Signal)) (stop func()) {
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
				} else {
					do(sig)
				}
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}
