//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// Follow passes every change of the host terminal's size on to p until the returned function is called.
func (p *PTY) Follow(host *os.File) (stop func()) {
	if host == nil {
		return func() {}
	}
	changed, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changed, syscall.SIGWINCH)
	go func() {
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
	}()
	return func() {
		signal.Stop(changed)
		close(done)
	}
}
