package ambient

import (
	"encoding/binary"
	"errors"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// ErrTimes is returned for times that no Stream wrote.
var ErrTimes = errors.New("ambient: these are no times of a process")

// A Clock is the wall time of a replay, or its monotonic clock.
type Clock struct {
	kernel func() int64 // ns

	mu       sync.Mutex
	asked    map[uint64]bool
	answered map[uint64]bool
	held     map[uint64]bool // recorded exchanges whose answers are held up until others have ended
	behind   int64           // by how many ns the time that was given last lay behind the kernel's
	recorded []int64
	given    []int64
	left     bool        // the run has left the recorded times
	changed  lane.Change // a time was given, or an answer came

	count         atomic.Uint64 // of asked and answered
	vain          atomic.Int64  // waits in vain
	reads, beyond atomic.Int64
}

// NewClock returns a clock for a recording that began at start.
func NewClock(start time.Time) *Clock {
	return &Clock{kernel: wall, asked: make(map[uint64]bool), answered: make(map[uint64]bool), held: make(map[uint64]bool), behind: wall() - start.UnixNano()}
}

// NewTicks returns the monotonic clock of a replay: the kernel's, until a recorded time was given.
func NewTicks() *Clock {
	return &Clock{kernel: ticks, asked: make(map[uint64]bool), answered: make(map[uint64]bool), held: make(map[uint64]bool)}
}

// Asked is told of the recorded exchange of this arrival when the program has asked for it again.
func (c *Clock) Asked(arrival uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark(c.asked, arrival)
}

// Answered is told of the recorded exchange of this arrival before its answer reaches the program again.
func (c *Clock) Answered(arrival uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mark(c.asked, arrival)
	c.mark(c.answered, arrival)
}

// next is closed when something happens.
func (c *Clock) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed.Next()
}

// hold says whether an answer is held up until others have ended.
func (c *Clock) hold(arrival uint64, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[arrival] = on
	c.changed.Happened()
}

// missing reports whether one of these answers has not come that is not held up. held is the number of the first before it that is; len(marks)
// for none.
func (c *Clock) missing(marks []uint64) (held int, free bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held = len(marks)
	for i, arrival := range marks {
		switch {
		case c.answered[arrival]:
		case c.held[arrival]:
			held = min(held, i)
		default:
			return held, true
		}
	}
	return held, false
}

// mark says of an exchange that it has come so far. mu is held.
func (c *Clock) mark(come map[uint64]bool, arrival uint64) {
	if !come[arrival] {
		come[arrival] = true
		c.count.Add(1)
		c.changed.Happened()
	}
}

// Leave has the run leave the recorded times: from now on time goes on from at, in ns since 1970, or from what was given last, whichever
// is later; 0 stands for no time.
func (c *Clock) Leave(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
	if at != 0 {
		c.behind = min(c.behind, c.kernel()-at)
	}
}

// leftBehind is by how many ns time lies behind the kernel's, and whether that is since Leave.
func (c *Clock) leftBehind() (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.behind, c.left
}

// Reads is how many reads there were.
func (c *Clock) Reads() int64 { return c.reads.Load() }

// Beyond is how many reads got a time that is not recorded.
func (c *Clock) Beyond() int64 { return c.beyond.Load() }

func (c *Clock) gave(t int64) {
	c.reads.Add(1)
	now := c.kernel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Happened()
	if !c.left {
		c.behind = now - t
	}
	if len(c.given) < maxKept {
		c.given = append(c.given, t)
	}
}

// maxKept bounds what Times returns of each run.
const maxKept = 1 << 20

// Times is what the processes of the recording read, as far as they run again, and what those of the replay did: at most a million each,
// in ns since 1970, in any order.
func (c *Clock) Times() (recorded, given []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.recorded), slices.Clone(c.given)
}

func (c *Clock) keep(reads []reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range reads[:min(len(reads), maxKept-len(c.recorded))] {
		c.recorded = append(c.recorded, r.at)
	}
}

// A Given is the times of one process on a replay.
type Given struct {
	AtWork  func() bool // whether the process has something to do; nil is never. Set before the first use
	Process *Given      // whose thread this is, and which heard of its answers too; nil for a process. Set likewise
	AtOnce  bool        // what holds its answers up is what it asked for at once with them, and gets in the order of their ends. Set likewise

	coming atomic.Int64 // answers that wait for nothing, and have not reached the process

	clock *Clock
	marks []uint64  // the answers that begin windows 1, 2, …
	reads []reading // in their order
	begin []int     // of each window, the first of reads that is of it or a later one

	mu            sync.Mutex
	queues        map[int][]int // of reads, what is not given yet, by place
	spared        int           // of reads, the first that spare may give
	last          int64         // given last; 0 for nothing
	real          int64         // when that was
	stands        int64         // since when it stands still below the next recorded one, by the kernel; 0 for not at all
	stood         bool          // for as long as anybody waits for it, once
	seen          uint64        // the count of the clock when window and open were found
	window        int           // all before it have been answered
	open          int           // the last one that may be read in: of what begins it has been asked
	waited        int           // no answer waits any more for what came before this mark
	vain          int           // how many have waited in vain
	vainOfThreads int           // the same, of answers to threads
}

// A reading is one recorded time.
type reading struct {
	at     int64
	window int // what came between two answers is of one
	given  bool
}

// Given gives a process the times that a Stream kept; nil for a process that is not on the recording, whose time goes on with that
// of the others. places are those that it has there. The error is ErrTimes.
func (c *Clock) Given(times []byte) (g *Given, places *Places, err error) {
	g = &Given{clock: c, queues: make(map[int][]int), begin: []int{0}}
	if times == nil {
		return g, new(Places), nil
	}
	places, times, err = readPlaces(times)
	if err != nil {
		return nil, nil, err
	}
	var last int64
	place := 0
	for len(times) > 0 {
		token, n := binary.Uvarint(times)
		switch {
		case n <= 0:
			return nil, nil, ErrTimes
		case token&1 == tokenTime:
			last += unzigzag(token >> 1)
			g.queues[place] = append(g.queues[place], len(g.reads))
			g.reads = append(g.reads, reading{at: last, window: len(g.marks)})
		case token&3 == tokenMark:
			g.marks = append(g.marks, token>>2)
			g.begin = append(g.begin, len(g.reads))
		default:
			if place = int(token >> 2); 0 < place && place <= len(places.list) && places.list[place-1] == unseen {
				place = 0
			}
		}
		times = times[n:]
	}
	places.untimed = len(g.queues[0]) > 0 && len(g.queues) == 1
	c.keep(g.reads)
	return g, places, nil
}

// Now gives the next time, in ns since 1970.
func (g *Given) Now(place int) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if behind, left := g.clock.leftBehind(); left {
		return g.give(max(g.last, g.clock.kernel()-behind))
	}
	g.resume()
	now, ok := g.next(place)
	if !ok {
		now, ok = g.early(place)
	}
	if ok {
		g.stands = 0
	} else {
		g.clock.beyond.Add(1)
	}
	return g.give(now)
}

func (g *Given) give(now int64) int64 {
	g.last, g.real = now, g.clock.kernel()
	g.clock.gave(now)
	return now
}

// Behind is by how many ns Now lies behind the kernel's time.
func (g *Given) Behind() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if behind, left := g.clock.leftBehind(); left || g.last == 0 {
		return behind
	}
	return g.real - g.last
}

// resume finds which answers have come, and which are about to. Where a later one has come before an earlier one the order is another than
// recorded, and no read waits for that.
func (g *Given) resume() {
	n := g.clock.count.Load()
	if n == g.seen {
		return
	}
	g.seen, g.stands = n, 0
	g.clock.mu.Lock()
	defer g.clock.mu.Unlock()
	for g.window < len(g.marks) && g.clock.answered[g.marks[g.window]] {
		g.window++
	}
	g.open = max(g.open, g.window)
	for i := g.open; i < len(g.marks); i++ {
		if g.clock.asked[g.marks[i]] {
			g.open = i + 1
		}
	}
}

// next is the recorded time that comes next at a place; false where there is none before an answer that has not been asked for yet. What
// was read before the last answer that has come, with all those before it, is passed over.
func (g *Given) next(place int) (int64, bool) {
	q, ok := g.queues[place]
	if !ok {
		return g.spare()
	}
	q = q[sort.SearchInts(q, g.begin[g.window]):]
	g.queues[place] = q
	if len(q) == 0 || g.reads[q[0]].window > g.open {
		return 0, false
	}
	return g.take(place), true
}

// spare is for a place of which no time is recorded, as of a program that was changed: the first recorded time in reach that nobody has had. Whose it
// is has it all the same.
func (g *Given) spare() (int64, bool) {
	g.spared = max(g.spared, g.begin[g.window])
	for g.spared < len(g.reads) && g.reads[g.spared].given {
		g.spared++
	}
	if g.spared == len(g.reads) || g.reads[g.spared].window > g.open {
		return 0, false
	}
	g.spared++
	return g.reads[g.spared-1].at, true
}

// near is how much earlier than recorded something may happen that runs beside an answer.
const (
	near   = int64(50 * time.Millisecond)
	second = int64(time.Second)
)

// early is the recorded time that comes next at a place, where the real clock has all but come to it; else, and false, a time that is not
// recorded. What a program does beside a request comes before its answer once, and once after it.
func (g *Given) early(place int) (int64, bool) {
	if q := g.queues[place]; len(q) > 0 && g.last != 0 {
		if ahead := g.reads[q[0]].at - g.last - (g.clock.kernel() - g.real); -near <= ahead && ahead <= near {
			return g.take(place), true
		}
	}
	return g.goOn(), false
}

// take gives out the first time of a place.
func (g *Given) take(place int) int64 {
	r := &g.reads[g.queues[place][0]]
	g.queues[place] = g.queues[place][1:]
	r.given = true
	return r.at
}

// goOn is a time that is not recorded.
func (g *Given) goOn() int64 {
	now := g.clock.kernel()
	if g.last == 0 {
		behind, _ := g.clock.leftBehind()
		return now - behind
	}
	at := g.last + now - g.real
	if g.open+1 >= len(g.begin) || g.begin[g.open+1] >= len(g.reads) {
		return at
	}
	bound := max(g.last, g.reads[g.begin[g.open+1]].at-1)
	switch {
	case at <= bound:
		g.stands = 0
		return at
	case g.stands == 0:
		g.stands = now
	case now-g.stands >= g.patience():
		g.stands = 0
		g.stood = true
		g.open++
	}
	return bound
}

// patience is how long time stands still: a program that waits for the clock alone would wait for ever, and what it waits for is what
// would ask for the next answer.
func (g *Given) patience() int64 {
	if g.stood {
		return near
	}
	return second
}
