package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A place is a directory in which one command after the other works. Who took it has it alone.
type place struct {
	dir       string
	unchanged func(a, b fs.FileInfo) bool
	seen      map[string]sighting // the files, as they were when they were looked at last
}

// A sighting is what a file was, and when.
type sighting struct {
	info  fs.FileInfo
	entry entry
	first time.Time // when info was taken for the first time
	read  time.Time // when the content was, the last time
}

// settled is how long after a file was seen first a look into it holds for as long as its times stay: file systems stamp with a clock that
// ticks, and what changes a file within a tick leaves no other time.
const settled = 100 * time.Millisecond

// sure reports whether the file would show another time if it had changed since it was read.
func (s *sighting) sure() bool { return s.read.Sub(s.first) >= settled }

// begin gives a command its place, with the files that it sees, and says what stands there.
func (h *Host) begin() (*place, map[string]entry, error) {
	p, err := h.take()
	if err != nil {
		return nil, nil, err
	}
	before, err := h.fill(p)
	if err != nil { // what the last command left may be why
		h.drop(p)
		if p, err = h.newPlace(); err != nil {
			return nil, nil, err
		}
		before, err = h.fill(p)
	}
	if err != nil {
		h.drop(p)
		return nil, nil, err
	}
	return p, before, nil
}

func (h *Host) fill(p *place) (map[string]entry, error) {
	if h.o.Fill == nil {
		return nil, nil
	}
	if err := h.o.Fill(p.dir); err != nil {
		return nil, err
	}
	return p.entries()
}

// take returns a place that is free, or a new one. Without Fill nobody would take away what a command left.
func (h *Host) take() (*place, error) {
	h.mu.Lock()
	if n := len(h.free); n > 0 && !h.closed {
		p := h.free[n-1]
		h.free = h.free[:n-1]
		h.mu.Unlock()
		return p, nil
	}
	h.mu.Unlock()
	return h.newPlace()
}

// newPlace makes a directory, below that of the host.
func (h *Host) newPlace() (_ *place, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, os.ErrClosed
	}
	if h.base == "" {
		if h.base, err = h.newBase(); err != nil {
			return nil, err
		}
	}
	h.places++
	p := &place{dir: filepath.Join(h.base, strconv.Itoa(h.places)), unchanged: h.o.Unchanged}
	return p, os.Mkdir(p.dir, 0o700)
}

func (h *Host) giveBack(p *place) {
	if h.o.Fill == nil {
		h.drop(p)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, p)
}

// drop removes a place that is not to be used again.
func (h *Host) drop(p *place) { _ = removeAll(p.dir) } // Close tries again, and says so
