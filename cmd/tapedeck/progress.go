package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

const (
	progressAfter = time.Second // work that is shorter says nothing
	progressEvery = 100 * time.Millisecond
)

// A progress shows on a terminal how far something has come that takes longer than a second: one line, which is taken away
// before anything else is written. On anything else than a terminal it says nothing. A nil one says nothing either.
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

// progressFor is newProgress for a command with --json, whose reader is a program.
func progressFor(std streams, json bool) *progress {
	if json {
		return nil
	}
	return newProgress(std.err)
}

// show puts text on the line, where it is time for that.
func (p *progress) show(text func() string) {
	if p == nil || p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.begun) > progressAfter && now.Sub(p.last) > progressEvery {
		p.last, p.shown = now, true
		raw(p.w, "\rtapedeck: %s\x1b[K", visible.Line(text()))
	}
}

func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		raw(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// step tells of the files and bytes of a snapshot; done takes the line away, for the program may write then.
func (p *progress) step(files int, bytes int64, done bool) {
	if done {
		p.end()
		return
	}
	p.show(func() string {
		return fmt.Sprintf("reading the work tree: %s, %s", plural(files, "file", "files"), size(bytes))
	})
}

// hiding tells, once the program has ended, how far what it wrote has been looked through for secrets that became known late.
func hiding(w io.Writer) func(items int, bytes int64, done bool) {
	var p *progress
	return func(items int, bytes int64, done bool) {
		if p == nil {
			p = newProgress(w)
		}
		if done {
			p.end()
			return
		}
		p.show(func() string {
			return fmt.Sprintf("hiding secrets that became known late: %d files and records, %s", items, size(bytes))
		})
	}
}

// sealingProgress tells, once the program has ended, how much of the recording has been hashed, until end is called.
func sealingProgress(w io.Writer) (step func(done, total int64), end func()) {
	var p *progress
	step = func(done, total int64) {
		if p == nil {
			p = newProgress(w)
		}
		p.bytes("sealing")(done, total)
	}
	return step, func() { p.end() }
}

// bytes tells of work that is so many bytes long.
func (p *progress) bytes(what string) func(done, total int64) {
	return func(done, total int64) {
		p.show(func() string { return fmt.Sprintf("%s: %d%% of %s", what, percent(done, total), size(total)) })
	}
}

// counted tells of work of which so many are to be done, one of which may take long, until stop is called.
func (p *progress) counted(what string) (step func(done, total int64), stop func()) {
	var done, total atomic.Int64
	stop = p.ticking(func() string {
		if total.Load() == 0 {
			return what
		}
		return fmt.Sprintf("%s: %d of %d", what, done.Load(), total.Load())
	})
	return func(d, t int64) { done.Store(d); total.Store(t) }, stop
}

// records tells of work whose end is not known.
func (p *progress) records(what string) func(records int, bytes int64) {
	return func(records int, bytes int64) {
		p.show(func() string {
			return fmt.Sprintf("%s: %s, %s", what, plural(records, "record", "records"), size(bytes))
		})
	}
}

// busy tells of work that does not tell by itself, until stop is called.
func (p *progress) busy(what string) (stop func()) {
	return p.ticking(func() string { return fmt.Sprintf("%s: %d s", what, int(time.Since(p.begun).Seconds())) })
}

// ticking shows text again and again, until stop is called, which waits for its goroutine.
func (p *progress) ticking(text func() string) (stop func()) {
	if p == nil || p.w == nil {
		return func() {}
	}
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.show(text)
			}
		}
	})
	return func() { close(done); ticking.Wait(); p.end() }
}

func percent(done, total int64) int64 {
	if total <= 0 {
		return 100
	}
	return min(100, int64(float64(done)/float64(total)*100))
}
