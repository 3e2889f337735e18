//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// Follow passes every change of the host terminal's size on to p until stop is called, which may be more than once. It
// returns when nothing is passed any more.
func (p *PTY) Follow(host *os.File) (stop func()) {
	if host == nil {
		return func() {}
	}
	changed, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	var following sync.WaitGroup
	following.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-changed:
			}
			if cols, rows, err := term.GetSize(int(host.Fd())); err == nil {
				p.Resize(Size{Rows: rows, Cols: cols}) // a terminal that cannot be resized keeps its size
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(changed)
		close(done)
		following.Wait()
	})
}
