package terminal

import (
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// pieceSize is how much the screen takes before it is looked at, in bytes: what is waited for is not to have come and gone.
const pieceSize = 8 << 10

// maxReplies is how many answers may wait for a program that does not read them; what comes on top is dropped.
const maxReplies = 256

// A feed brings what a program wrote to the screen, behind a backlog.
type feed struct {
	backlog *backlog
	ended   chan struct{} // closed when the screen has seen all

	marking  sync.Mutex
	accepted int64 // by the backlog, in bytes
	marks    []mark

	mu      sync.Mutex
	screen  *vt.Screen
	fed     int64         // to the screen, in bytes
	sent    uint64        // lines that had scrolled off when something was sent to the program last
	changed chan struct{} // closed and replaced whenever the screen has seen more
	whole   bool          // the screen has seen all that will come
}

// A mark is a new size after at bytes.
type mark struct {
	at   int64
	size Size
}

func newFeed(s *Session) *feed {
	o := &vt.Options{Rows: s.size.Rows, Cols: s.size.Cols, Scrollback: s.o.Scrollback}
	if !s.o.Mute {
		o.Reply = s.reply
	}
	return &feed{backlog: newBacklog(s.o.Backlog), ended: make(chan struct{}), screen: vt.New(o), changed: make(chan struct{})}
}

// write takes what the program wrote.
func (f *feed) write(p []byte) {
	f.marking.Lock()
	defer f.marking.Unlock()
	if f.backlog.write(p) {
		f.accepted += int64(len(p))
	}
}

// resize gives the screen another size once it has seen what was written so far.
func (f *feed) resize(size Size) {
	f.marking.Lock()
	f.marks = append(f.marks, mark{f.accepted, size})
	f.marking.Unlock()
	f.backlog.wake()
}

// noteSent says that something is sent to the program now.
func (f *feed) noteSent() {
	f.mu.Lock()
	f.sent = f.screen.Scrolled()
	f.mu.Unlock()
}

// run feeds the screen until the end.
func (f *feed) run() {
	defer close(f.ended)
	defer f.backlog.close()
	var spare []byte
	for {
		p, err := f.backlog.next(spare[:0])
		for rest := p; ; {
			rest = rest[f.show(rest):]
			if len(rest) == 0 {
				break
			}
		}
		if err != nil {
			f.finish()
			return
		}
		spare = p
	}
}

// show gives the screen the sizes that are due and the next piece of p, and returns the piece's length.
func (f *feed) show(p []byte) int {
	due, n := f.due(min(len(p), pieceSize))
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range due {
		f.screen.Resize(m.size.Rows, m.size.Cols)
	}
	f.screen.Write(p[:n])
	f.fed += int64(n)
	close(f.changed)
	f.changed = make(chan struct{})
	return n
}

// due takes the sizes for now and returns how much may be shown, n at most, before the next.
func (f *feed) due(n int) ([]mark, int) {
	f.marking.Lock()
	defer f.marking.Unlock()
	i := 0
	for i < len(f.marks) && f.marks[i].at <= f.fed {
		i++
	}
	due := f.marks[:i:i]
	f.marks = f.marks[i:]
	if len(f.marks) > 0 {
		n = int(min(int64(n), f.marks[0].at-f.fed))
	}
	return due, n
}

func (f *feed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whole = true
	close(f.changed)
	f.changed = make(chan struct{})
}

// catchUp waits until the screen has seen what was read by a moment at which read bytes were.
func (f *feed) catchUp(read int64) {
	for {
		f.mu.Lock()
		there, changed := f.whole || f.fed+f.backlog.lost() >= read, f.changed
		f.mu.Unlock()
		if there {
			return
		}
		<-changed
	}
}
