//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Follow calls changed with the size of the host terminal whenever that may be another, until stop is called, which may be
// more than once. It returns when nothing is told any more.
func Follow(host *os.File, changed func(Size)) (stop func()) {
	if host == nil {
		return func() {}
	}
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGWINCH)
	var following sync.WaitGroup
	following.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			if size, ok := sizeOf(host); ok {
				changed(size)
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(signals)
		close(done)
		following.Wait()
	})
}
