package tty

import (
	"io"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A Live masks the output of a program while it is recorded. It holds back what may become a part of a secret, for Options.Age and
// Options.Hold at most; what is found later is late, and is to be masked where it was written to. It is for one goroutine.
type Live struct {
	o        Options
	stripped *stripped
	model    *model
	holder

	written int64     // bytes
	times   []arrival // of what is held
	hurry   bool
	closed  bool
}

// An arrival says when the bytes before an offset had come.
type arrival struct {
	end int64
	at  time.Duration
}

// NewLive returns one that has seen nothing.
func NewLive(o *Options) *Live {
	d := o.withDefaults()
	l := &Live{o: d}
	r := newRules(&d)
	l.stripped = newStripped(r, &l.ledger)
	l.model = newModel(r, &l.ledger, d.Rows, d.Cols)
	return l
}

// Write takes the next bytes of the stream, which came at a time. It copies p.
func (l *Live) Write(p []byte, at time.Duration) {
	l.hold(p)
	l.stripped.write(p)
	if !l.hurry && l.model.at == l.written {
		l.model.write(p)
	}
	l.written += int64(len(p))
	l.arrived(at)
}

// arrivalStep is how exact the times of what is held are.
const arrivalStep = 20 * time.Millisecond

func (l *Live) arrived(at time.Duration) {
	if n := len(l.times); n > 0 && at-l.times[n-1].at < arrivalStep {
		l.times[n-1].end = l.written
		return
	}
	l.times = append(l.times, arrival{l.written, at})
}

// Resize says that the terminal has another size from here on.
func (l *Live) Resize(rows, cols int) { l.model.resize(Resize{l.written, rows, cols}) }

// Take returns the bytes that need not be held any longer, masked. They follow those of the Take before and are valid until the
// next call. See Late.
func (l *Live) Take(now time.Duration) []byte {
	to := l.settled()
	if must := max(l.written-int64(l.o.Hold), l.aged(now)); must > to {
		if !l.hurry && l.model.at == l.written {
			l.model.rest() // what is whole by now may be found now
		}
		to = max(to, min(must, l.whole()))
	}
	return l.release(to)
}

// settled returns up to where nothing can be found any more, but for what the program goes back to.
func (l *Live) settled() int64 {
	to := l.stripped.decided()
	if !l.hurry && l.model.at == l.written {
		to = min(to, l.model.settled())
	}
	return to
}

// whole returns up to where what was written has whole characters: to what is not ASCII more may come.
func (l *Live) whole() int64 {
	n := 0
	for n < maxCharacter && n < len(l.held)-l.from && l.held[len(l.held)-1-n] >= utf8.RuneSelf {
		n++
	}
	return l.written - int64(n)
}

// maxCharacter bounds how much of one is held, in bytes.
const maxCharacter = vt.MaxCluster

// aged returns up to where the bytes have been held long enough.
func (l *Live) aged(now time.Duration) (to int64) {
	n := 0
	for ; n < len(l.times) && now-l.times[n].at >= l.o.Age; n++ {
		to = l.times[n].end
	}
	l.times = append(l.times[:0], l.times[n:]...)
	return to
}

func (l *Live) release(to int64) []byte {
	if to <= l.taken {
		return nil
	}
	return l.holder.release(min(l.beyond(to), max(to, l.whole())))
}

// Flush returns all that is held, masked as far as it is known. It is for the end of the stream.
func (l *Live) Flush() []byte {
	l.stripped.close()
	l.closed = true
	if l.model.at == l.written {
		l.model.rest()
	}
	return l.release(l.written)
}

// Screen returns the screen as of all that was written, or, where the model is behind, of what it has seen. It is not to be
// written to.
func (l *Live) Screen() *vt.Screen { return l.model.shown() }

// Hurry says whether bytes pass with the scan of the stripped stream alone, and the model falls behind.
func (l *Live) Hurry(on bool) { l.hurry = on }

// Behind returns from where on the model has not seen the stream; ok is false where it has seen all.
func (l *Live) Behind() (from int64, ok bool) { return l.model.at, l.model.at < l.written }

// CatchUp has the model read on from r, which holds what was taken at its offset, budget bytes at most, and then what is held. It
// returns all late hits since the last time; they are to be masked in r's bytes. The error is r's.
func (l *Live) CatchUp(r io.ReaderAt, budget int64) ([]Hit, error) {
	buf := make([]byte, min(budget, maxBlock))
	for budget > 0 && l.model.at < l.taken {
		n := min(int64(len(buf)), l.taken-l.model.at, budget)
		if _, err := r.ReadAt(buf[:n], l.model.at); err != nil {
			return l.Late(), err
		}
		l.model.rows.again = true
		l.model.write(buf[:n])
		budget -= n
	}
	if at := l.model.at; at >= l.taken && at < l.written {
		l.model.write(l.held[l.from+int(at-l.taken):])
	}
	if l.closed && l.model.at == l.written {
		l.model.rest()
	}
	l.model.rows.again = false
	return l.Late(), nil
}
