package ambient

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrTimes is returned for times that no Stream wrote.
var ErrTimes = errors.New("ambient: these are no times of a process")

// A Clock is the wall time of a replay, or its monotonic clock.
type Clock struct {
	kernel func() int64 // ns

	mu       sync.Mutex
	answered map[uint64]bool
	behind   int64 // by how many ns the time that was given last lay behind the kernel's

	count  atomic.Uint64 // of answered
	beyond atomic.Int64
}

// NewClock returns a clock for a recording that began at start.
func NewClock(start time.Time) *Clock {
	return &Clock{kernel: wall, answered: make(map[uint64]bool), behind: wall() - start.UnixNano()}
}

// NewTicks returns the monotonic clock of a replay: the kernel's, until a recorded time was given.
func NewTicks() *Clock { return &Clock{kernel: ticks, answered: make(map[uint64]bool)} }

// Answered is told of the recorded exchange of this arrival before its answer reaches the program again.
func (c *Clock) Answered(arrival uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.answered[arrival] {
		c.answered[arrival] = true
		c.count.Add(1)
	}
}

func (c *Clock) wasAnswered(arrival uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered[arrival]
}

// Beyond is how many reads got a time that is not recorded.
func (c *Clock) Beyond() int64 { return c.beyond.Load() }

func (c *Clock) behindNow() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.behind
}

func (c *Clock) gave(t int64) {
	now := c.kernel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.behind = now - t
}

// Given gives a process the times that a Stream kept; nil for a process that is not on the recording, whose time goes on with that
// of the others. The error is ErrTimes.
func (c *Clock) Given(times []byte) (*Given, error) {
	g := &Given{clock: c, left: times}
	var last int64
	for at := 0; at < len(times); {
		token, n := binary.Uvarint(times[at:])
		if n <= 0 {
			return nil, ErrTimes
		}
		if token&1 != 0 {
			g.marks = append(g.marks, mark{arrival: token >> 1, left: times[at+n:], last: last})
		} else {
			last += unzigzag(token >> 1)
		}
		at += n
	}
	return g, nil
}

// A Given is the times of one process on a replay.
type Given struct {
	clock *Clock

	mu    sync.Mutex
	left  []byte // not given yet
	last  int64  // given last; 0 for nothing
	real  int64  // when that was
	known int64  // recorded last before left, which its first token counts from
	marks []mark // in left
	seen  uint64 // how many answers there had been when marks were looked at
}

// A mark is where the times begin that were read after an answer.
type mark struct {
	arrival uint64
	left    []byte
	last    int64 // before it
}

// Now gives the next time, in ns since 1970.
func (g *Given) Now() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resume()
	now, ok := g.next()
	if !ok {
		now = g.goOn()
		g.clock.beyond.Add(1)
	}
	g.last, g.real = now, g.clock.kernel()
	g.clock.gave(now)
	return now
}

// Behind is by how many ns Now lies behind the kernel's time.
func (g *Given) Behind() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == 0 {
		return g.clock.behindNow()
	}
	return g.real - g.last
}

// resume passes over what was read before the last answer that has come, with all those before it.
func (g *Given) resume() {
	n := g.clock.count.Load()
	if n == g.seen {
		return
	}
	g.seen = n
	for len(g.marks) > 0 && g.clock.wasAnswered(g.marks[0].arrival) {
		g.pass()
	}
}

// pass goes on behind the next mark.
func (g *Given) pass() {
	m := &g.marks[0]
	g.left, g.known, g.marks = m.left, m.last, g.marks[1:]
}

// next is the recorded time that comes next; false where there is none before an answer that has not come yet. Where a later answer
// has come the order is another one than recorded, and nothing waits for that answer.
func (g *Given) next() (int64, bool) {
	for {
		token, n := binary.Uvarint(g.left)
		switch {
		case n <= 0:
			return 0, false
		case token&1 == 0:
			g.left = g.left[n:]
			g.known += unzigzag(token >> 1)
			return g.known, true
		case !slices.ContainsFunc(g.marks, func(m mark) bool { return g.clock.wasAnswered(m.arrival) }):
			return 0, false
		}
		g.pass()
	}
}

// goOn is a time that is not recorded.
func (g *Given) goOn() int64 {
	now := g.clock.kernel()
	if g.last == 0 {
		return now - g.clock.behindNow()
	}
	at := g.last + now - g.real
	if next, ok := g.ahead(); ok {
		at = max(g.last, min(at, next-1))
	}
	return at
}

// ahead is the first recorded time after the answer that is waited for.
func (g *Given) ahead() (int64, bool) {
	for i := range g.marks {
		if token, n := binary.Uvarint(g.marks[i].left); n > 0 && token&1 == 0 {
			return g.marks[i].last + unzigzag(token>>1), true
		}
	}
	return 0, false
}
