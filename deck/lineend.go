package deck

import (
	"io"
	"os"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// A lineEnd knows whether what was shown on the caller's terminal ended with a line.
type lineEnd struct {
	mu   sync.Mutex
	last byte // that was written to it; 0 for none
}

// watch returns w, which is looked at where it is a terminal.
func (l *lineEnd) watch(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && terminal.Is(f) {
		return &watched{f, l}
	}
	return w
}

// open reports whether the terminal's last line has no end yet.
func (l *lineEnd) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last != 0 && l.last != '\n'
}

// watched is a terminal whose last byte is remembered.
type watched struct {
	w   io.Writer
	end *lineEnd
}

// Write implements io.Writer.
func (w *watched) Write(b []byte) (int, error) {
	if len(b) > 0 {
		w.end.mu.Lock()
		w.end.last = b[len(b)-1]
		w.end.mu.Unlock()
	}
	return w.w.Write(b)
}
