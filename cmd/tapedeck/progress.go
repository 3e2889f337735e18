package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	progressAfter = time.Second // work that is shorter says nothing
	progressEvery = 100 * time.Millisecond
)

// A progress shows on a terminal how far a snapshot of the work tree has come, and takes its line away when the program
// may write. On anything else than a terminal it says nothing.
type progress struct {
	w     io.Writer // nil for nowhere
	begun time.Time

	mu    sync.Mutex
	last  time.Time
	shown bool
}

func newProgress(w io.Writer) *progress {
	p := &progress{begun: time.Now()}
	if isTerminal(w) {
		p.w = w
	}
	return p
}

// step tells of the files and bytes read so far; done takes the line away.
func (p *progress) step(files int, bytes int64, done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case p.w == nil:
	case done && p.shown:
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	case !done && now.Sub(p.begun) > progressAfter && now.Sub(p.last) > progressEvery:
		p.last, p.shown = now, true
		fmt.Fprintf(p.w, "\rtapedeck: reading the work tree: %d files, %s\x1b[K", files, size(bytes))
	}
}
