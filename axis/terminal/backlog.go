package terminal

import (
	"io"
	"os"
	"slices"
	"sync"
)

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
