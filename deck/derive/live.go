package derive

import (
	"io"
	"os"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Live derives the session log of a tape while the tape is written. What it tells is what a deriving at that moment would
// give, and a tape that goes on may show that it was otherwise: which lane is the main one, and whether the conversation went on
// in another, follows from what comes. Then it begins anew, and tells events a second time: whoever hears them knows calls and
// results by their ids.
type Live struct {
	Src   *Source // open
	Lanes *Survey // its store is that of the tape
	Heard func(sessionlog.Event) error
	// idle is called whenever all that is on the tape has been read, every pollEvery at least.
	Idle func() error

	restarts int
}

// pollEvery is the time between two looks at a tape that gives nothing.
const pollEvery = 20 * time.Millisecond

// maxRestarts bounds how often a liveTalk begins anew. From then on it may tell less than the tape holds.
const maxRestarts = 16

// Follow reads the tape as it grows, until end is closed and what stood there by then has been read. The error is that of heard
// and idle, and of the tape.
func (l *Live) Follow(end <-chan struct{}) error {
	for {
		again, err := l.pass(end)
		if err != nil || !again {
			return err
		}
		l.restarts++
	}
}

// pass reads the tape once; again means that it is to be read anew.
func (l *Live) pass(end <-chan struct{}) (again bool, err error) {
	f, err := os.Open(l.Src.Path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	t, err := tape.NewReaderOptions(&growing{f: f, end: end, idle: l.Idle}, l.Src.Path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return false, err
	}
	for _, lane := range l.Lanes.lanes {
		lane.forget()
	}
	d := newConversation(l.Src, l.Lanes)
	d.heard, d.main = l.Heard, l.Lanes.tooled
	for rec, err := range t.Records() {
		if err != nil {
			return false, err
		}
		l.Lanes.see(rec)
		if d.main == nil && l.Lanes.tooled != nil {
			d.main = l.Lanes.tooled
			d.stale = d.main.looked // it was taken for one beside the conversation
		}
		if !d.stale {
			if err := d.record(rec); err != nil {
				return false, err
			}
		}
		if d.stale && l.restarts < maxRestarts {
			return true, nil
		}
		d.stale = false
	}
	return false, d.settle(nil)
}

// growing reads a file that grows. At its end it waits, until end is closed.
type growing struct {
	f     io.Reader
	end   <-chan struct{}
	idle  func() error
	ended bool // nothing is written any more
}

// Read implements io.Reader.
func (g *growing) Read(b []byte) (int, error) {
	for {
		n, err := g.f.Read(b)
		if n > 0 || recording.NotEOF(err) != nil {
			return n, recording.NotEOF(err)
		}
		if g.ended { // it was before that look, which found nothing more
			return 0, io.EOF
		}
		if err := g.idle(); err != nil {
			return 0, err
		}
		select {
		case <-g.end:
			g.ended = true
		case <-time.After(pollEvery):
		}
	}
}
