package ttyscrub

import (
	"io"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A Live masks the output of a program while it is recorded. It is for one goroutine.
type Live struct {
	o      Options
	screen *vt.Screen
	held   []byte
	taken  int64
	report Report
}

// NewLive returns one that has seen nothing.
func NewLive(o *Options) *Live {
	d := o.withDefaults()
	return &Live{o: d, screen: vt.New(&vt.Options{Rows: d.Rows, Cols: d.Cols, Scrollback: -1, Origins: true})}
}

// Write takes the next bytes of the stream, which came at a time. It copies p.
func (l *Live) Write(p []byte, at time.Duration) { l.held = append(l.held, p...) }

// Resize says that the terminal has another size from here on.
func (l *Live) Resize(rows, cols int) {}

// Take returns the bytes that need not be held any longer, masked. They follow those of the Take before and are valid until the
// next call. See Late.
func (l *Live) Take(now time.Duration) []byte { return l.Flush() }

// Flush returns all that is held, masked as far as it is known.
func (l *Live) Flush() []byte {
	out := l.held
	l.taken += int64(len(out))
	l.held = nil
	return out
}

// Taken returns how many bytes Take and Flush have returned: the offset of what they return next.
func (l *Live) Taken() int64 { return l.taken }

// Late returns the hits in what was taken before they were found, since the last Late: their bytes are to be masked where they
// were written to.
func (l *Live) Late() []Hit { return nil }

// Screen returns the screen as of all that was written, or, where the model is behind, of what it has seen.
func (l *Live) Screen() *vt.Screen { return l.screen }

// Hurry says whether bytes pass with the scan of the stripped stream alone, and the model falls behind.
func (l *Live) Hurry(on bool) {}

// Behind returns from where on the model has not seen the stream; ok is false where it has seen all.
func (l *Live) Behind() (from int64, ok bool) { return 0, false }

// CatchUp has the model read on from r, which holds what was taken at its offset: budget bytes at most. It returns the hits that
// are to be masked in r's bytes. The error is r's.
func (l *Live) CatchUp(r io.ReaderAt, budget int64) ([]Hit, error) { return nil, nil }

// Report returns what was found so far.
func (l *Live) Report() Report { return l.report }
