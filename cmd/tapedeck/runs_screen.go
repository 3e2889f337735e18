package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/internal/runview"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

const (
	screenEvery = 100 * time.Millisecond                   // between two pictures
	screenKeys  = "↑ ↓ another turn · end newest · q quit" // fits 40 columns
)

// A screenView draws a run on a terminal, on a screen of its own, and leaves the last picture on the terminal's own.
// Records come from the goroutine that follows the run; draw, keys and close are the caller's.
type screenView struct {
	w    io.Writer
	o    runview.Frame
	size func() (cols, rows int)

	mu      sync.Mutex
	run     runview.Run
	waiting string

	drawn      []string // what stands on the screen
	cols, rows int
}

func (v *screenView) wait(what string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = what
	return nil
}

func (v *screenView) record(rec runtrace.Record, _ []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting = ""
	v.run.Add(rec)
	return nil
}

func (v *screenView) end() error { return nil }

// watchOnScreen draws the run until it ends, the keys say so, or ctx ends.
func watchOnScreen(ctx context.Context, w *runWatch, std streams) error {
	caller := terminal.NewCaller([3]any{std.in, std.out, std.err})
	defer caller.Close()
	keys, release, err := takeKeys(caller, std)
	if err != nil {
		return err
	}
	v := &screenView{w: std.out, o: runview.Frame{Colour: colour(std.out), Selected: -1}, size: sizeOf(caller)}
	if keys != nil {
		v.o.Keys = screenKeys
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() { over <- w.follow(ctx, v) }() // ends with ctx; awaited below
	v.open()
	err, ended := v.loop(ctx, w, keys, over)
	cancel()
	if !ended {
		<-over
	}
	v.close()
	release()
	if errors.Is(err, errQuit) {
		return nil
	}
	return err
}

// takeKeys makes the terminal ours and hears its keys; nil where there are none to hear.
func takeKeys(caller *terminal.Caller, std streams) (keys <-chan string, release func(), err error) {
	if caller == nil || !isTerminal(std.in) || !caller.Foreground() {
		return nil, func() {}, nil
	}
	if err := caller.Take(true); err != nil {
		return nil, nil, err
	}
	heard := make(chan string, 16)
	stop, err := caller.ReadKeys(func(b []byte) {
		for _, k := range splitKeys(b) {
			select {
			case heard <- cmp.Or(terminal.KeyName(k), string(k)): // a character has no other name
			default: // faster than can be followed
			}
		}
	})
	if err != nil {
		caller.Release(true)
		return nil, nil, err
	}
	return heard, func() { stop(); caller.Release(true) }, nil
}

// splitKeys takes apart what was typed: a key sends one character, or a sequence that begins with ESC.
func splitKeys(b []byte) [][]byte {
	var out [][]byte
	for len(b) > 0 {
		n := 1
		if b[0] == 0x1b && len(b) > 2 && (b[1] == '[' || b[1] == 'O') {
			for n = 2; n < len(b)-1 && (b[n] < 0x40 || b[n] > 0x7e); {
				n++
			}
			n++
		}
		out, b = append(out, b[:n]), b[n:]
	}
	return out
}

// sizeOf tells how large the terminal is, 24 by 80 where it does not say.
func sizeOf(caller *terminal.Caller) func() (cols, rows int) {
	return func() (int, int) {
		if s, ok := caller.Size(); ok && s.Cols > 0 && s.Rows > 0 {
			return s.Cols, s.Rows
		}
		return 80, 24
	}
}

// loop draws until there is a reason to end; ended tells that following the run has.
func (v *screenView) loop(ctx context.Context, w *runWatch, keys <-chan string, over <-chan error) (err error, ended bool) {
	tick := time.NewTicker(screenEvery)
	defer tick.Stop()
	for {
		if err := v.draw(w.src.Connected()); err != nil {
			return err, false
		}
		select {
		case <-ctx.Done():
			return ctx.Err(), false
		case err := <-over:
			return err, true
		case <-tick.C:
			v.o.Beat++
		case k := <-keys:
			if err := v.key(k); err != nil {
				return err, false
			}
		}
	}
}

// key does what a key is for.
func (v *screenView) key(name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := len(v.run.Turns)
	at := v.o.Selected
	if at < 0 || at >= n {
		at = n - 1
	}
	switch name {
	case "q":
		return errQuit
	case "ctrl-c", "ctrl-d":
		return context.Canceled
	case "up", "k":
		at--
	case "down", "j":
		at++
	case "pageup":
		at -= v.rows / 2
	case "pagedown", " ", "space":
		at += v.rows / 2
	case "home", "g":
		at = 0
	case "end", "G", "escape":
		at = n
	default:
		return nil
	}
	v.o.Selected = max(0, at)
	if at >= n-1 { // the newest, and whatever comes after it
		v.o.Selected = -1
	}
	return nil
}

// picture is the run as it is now.
func (v *screenView) picture(connected bool) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.o
	f.Cols, f.Rows, f.Now = v.cols, v.rows, time.Now()
	f.News = v.waiting
	if !connected && !runEnded(&v.run) {
		f.News = "the daemon is gone: trying again"
	}
	return f.Draw(&v.run)
}

func (v *screenView) open() {
	raw(v.w, "\x1b[?1049h\x1b[?25l") // a screen of its own, without a cursor
}

// draw writes the rows that have changed.
func (v *screenView) draw(connected bool) error {
	var b strings.Builder
	if cols, rows := v.size(); cols != v.cols || rows != v.rows {
		v.cols, v.rows, v.drawn = cols, rows, nil
		b.WriteString("\x1b[2J")
	}
	lines := v.picture(connected)
	for i, line := range lines {
		if i < len(v.drawn) && v.drawn[i] == line {
			continue
		}
		// A character that is wider here than there must not push the rest into the next row: no wrapping. The row is cleared before
		// it is written: behind a full one the cursor of many terminals stands on the last column, and would clear that.
		raw(&b, "\x1b[%d;1H\x1b[K\x1b[?7l%s\x1b[?7h", i+1, line)
	}
	v.drawn = lines
	if b.Len() == 0 {
		return nil
	}
	return raw(v.w, "\x1b[?2026h%s\x1b[?2026l", b.String()) // shown at once, where a terminal knows how
}

// close gives the terminal its own screen back and leaves the last picture there.
func (v *screenView) close() {
	raw(v.w, "\x1b[?25h\x1b[?1049l")
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.run.ID == "" {
		return
	}
	f := v.o
	f.Cols, f.Rows, f.Now, f.Settled = v.cols, max(1, v.rows-1), time.Now(), true
	raw(v.w, "%s\r\n", strings.Join(f.Draw(&v.run), "\r\n"))
}
