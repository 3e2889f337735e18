package terminal

import (
	"io"
	"os"
	"slices"
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

// How much of a backlog is in memory, and how much is read of its file at once, in bytes.
const (
	inMemory = 4 << 20
	fromFile = 256 << 10
)

// defaultBacklog is how much of it there may be, in bytes.
const defaultBacklog = 1 << 30

// A backlog is a queue of bytes that who writes to never waits for: what does not fit in memory goes to a temporary file, and
// what is over the limit is dropped, from there until the rest was read.
type backlog struct {
	limit int64
	more  chan struct{} // of one: something was written

	mu       sync.Mutex
	mem      []byte   // older than what is in file
	file     *os.File // nil for none
	from, to int64    // of what is unread in file
	dropping bool
	dropped  int64
	closed   bool
}

func newBacklog(limit int64) *backlog {
	or(&limit, defaultBacklog)
	return &backlog{limit: limit, more: make(chan struct{}, 1)}
}

// write takes p, or drops it and reports false.
func (b *backlog) write(p []byte) bool {
	b.mu.Lock()
	took := b.put(p)
	if !took {
		b.dropped += int64(len(p))
		b.dropping = true
	}
	b.mu.Unlock()
	b.wake()
	return took
}

func (b *backlog) wake() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// put reports whether there was room for p.
func (b *backlog) put(p []byte) bool {
	waiting := int64(len(b.mem)) + b.to - b.from
	b.dropping = b.dropping && waiting > 0
	switch n := int64(len(p)); {
	case b.dropping || waiting+n > b.limit:
		return false
	case b.to == b.from && len(b.mem)+len(p) <= inMemory:
		b.mem = append(b.mem, p...)
		return true
	}
	return b.spill(p)
}

func (b *backlog) spill(p []byte) bool {
	if b.file == nil {
		f, err := os.CreateTemp("", "tapedeck-backlog-*")
		if err != nil {
			return false
		}
		os.Remove(f.Name()) // where that is not possible while it is open, close does
		b.file = f
	}
	n, err := b.file.WriteAt(p, b.to)
	if err != nil {
		return false // what was written of it is written over
	}
	b.to += int64(n)
	return true
}

// next waits for something and returns what is next: all that is in memory, or a part of the file; nothing where wake was
// called. spare, which is empty, is used for what comes next. io.EOF says that nothing comes any more.
func (b *backlog) next(spare []byte) ([]byte, error) {
	for woken := false; ; woken = true {
		b.mu.Lock()
		p := b.take(spare)
		closed := b.closed
		b.mu.Unlock()
		switch {
		case len(p) > 0:
			return p, nil
		case closed:
			return p, io.EOF
		case woken:
			return p, nil
		}
		<-b.more
	}
}

func (b *backlog) take(spare []byte) []byte {
	if len(b.mem) > 0 {
		p := b.mem
		b.mem = spare
		return p
	}
	if b.from == b.to {
		return spare
	}
	p := slices.Grow(spare, fromFile)
	n, err := b.file.ReadAt(p[:min(fromFile, b.to-b.from)], b.from)
	if b.from += int64(n); err != nil && n == 0 { // a disk that fails
		b.dropped += b.to - b.from
		b.from = b.to
	}
	if b.from == b.to {
		b.from, b.to = 0, 0
		b.file.Truncate(0)
	}
	return p[:n]
}

// end says that nothing is written any more.
func (b *backlog) end() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake()
}

// close throws away what is left.
func (b *backlog) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil {
		b.file.Close()
		os.Remove(b.file.Name())
	}
}

func (b *backlog) lost() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}
