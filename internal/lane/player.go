package lane

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ErrEnd is the error of Next when the far side says nothing more: it ends the conversation, or the program has.
var ErrEnd = errors.New("the conversation has ended")

// PlayerOptions say how a conversation is played. K is the key of a message of the program.
type PlayerOptions[K comparable, V any] struct {
	Clock Clock // nil is the real one
	// Slack is how much longer than while recording a line of the program is waited for, and Unasked the same where nobody waits for
	// an answer; 0 is Slack.
	Slack, Unasked time.Duration
	// Speed is how fast the far side speaks: 0 as soon as it is due, 1 as recorded, N that many times as fast. SinceMS is when the
	// conversation began, in ms of the recording.
	Speed   float64
	SinceMS int64
	// Key is what a line of the program is known by. It is asked once a line, when that may be sought.
	Key func(V) K
	// Ends says that the far side ended the conversation: when all is said it does so again.
	Ends bool
	// EndWaits has that end wait for the program's last lines for as long as it takes, not as a line does.
	EndWaits bool
	// Linger is how long after the program's last line, which came at ms of the recording, the far side ends the conversation; ended
	// says that the program has. Nil is at once.
	Linger func(ms int64, ended bool) time.Duration
}

// A Player is an Order in which one far side says its lines to one program. Find, Came and Ended are called by who hears the program,
// Next by who speaks to it.
type Player[K comparable, V any] struct {
	*Order[V]
	o PlayerOptions[K, V]

	// guarded by the Order's mu
	came    []bool // the line of the program has come, whether or not it was waited for
	said    []bool // the line of the far side was said, or passed over
	index   map[K][]int
	indexed int // lines that stand in index
	owned   map[int][]int
	armed   []armed
	free    []int // lines of the far side that come unasked and were not said
	late    map[int][]int
	now     []Due[V]
	lastMS  int64     // when the program's last line came while recording
	heard   time.Time // and when it did now
	ended   bool      // by the program
	resting bool      // Next waits, and nothing is due
	stopped bool
	rested  Change
}

// An armed line is one whose request has come.
type armed struct {
	line  int
	since time.Time
	ms    int64 // when that came while recording
}

// A Due is what the far side says next.
type Due[V any] struct {
	Line  int // its index; -1 for what Say was given
	Value V
	For   []int // of its owners those that have come
}

// NewPlayer returns a player of lines.
func NewPlayer[K comparable, V any](lines []Line[V], o *PlayerOptions[K, V]) *Player[K, V] {
	p := &Player[K, V]{Order: NewOrder(lines, o.Slack, o.Clock), o: *o, late: make(map[int][]int), lastMS: o.SinceMS}
	if p.o.Unasked == 0 {
		p.o.Unasked = o.Slack
	}
	p.heard = p.clock.Now()
	p.last = p.heard
	p.came, p.said = make([]bool, len(lines)), make([]bool, len(lines))
	p.survey()
	p.forward()
	return p
}

// survey sorts the lines that were not said by what they wait for.
func (p *Player[K, V]) survey() {
	p.index, p.indexed, p.owned, p.free = make(map[K][]int), 0, make(map[int][]int), nil
	for i := range p.lines {
		switch l := &p.lines[i]; {
		case l.From == Program || p.said[i]:
		case len(l.Owners) == 0:
			p.free = append(p.free, i)
		default:
			for _, owner := range l.Owners {
				p.owned[owner] = append(p.owned[owner], i)
			}
		}
	}
}

// Replace has other lines in the place of those from the line same on, of which none was said and none has come.
func (p *Player[K, V]) Replace(lines []Line[V], same int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replace(lines, same)
}

// replace is Replace for who holds mu.
func (p *Player[K, V]) replace(lines []Line[V], same int) {
	p.lines, p.first = lines, min(p.first, same)
	grow := func(states []bool) []bool { return append(states[:same:same], make([]bool, len(lines)-same)...) }
	p.done, p.came, p.said = grow(p.done), grow(p.came), grow(p.said)
	p.armed = slices.DeleteFunc(p.armed, func(a armed) bool { return a.line >= same })
	p.survey()
	for i := range same {
		if p.came[i] {
			p.arm(i, p.heard, same)
		}
	}
	p.forward()
	p.wake()
}

// GoOn has the far side not end the conversation: another one speaks in its place.
func (p *Player[K, V]) GoOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.o.Ends = false
}

// Cut is GoOn that leaves off: only what belongs to what has come by now is said, and what stands before that.
func (p *Player[K, V]) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.o.Ends = false
	end := 0
	for i, came := range p.came {
		if came {
			end = i + 1
		}
	}
	for _, a := range p.armed {
		end = max(end, a.line+1)
	}
	p.replace(p.lines[:end], end)
}

// wake has Next look again. mu is held.
func (p *Player[K, V]) wake() {
	p.resting = false
	p.changed.Happened()
}

// Find is the line of the program with that key which has not come yet: of several the one that is most alike, then the first. alike may
// be nil; it returns at most best, and a negative number for a line that is none. False is for none.
func (p *Player[K, V]) Find(k K, best int, alike func(V) int) (line int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.find(k, best, alike)
}

// Take finds a line as Find does, and says that it has come.
func (p *Player[K, V]) Take(k K, best int, alike func(V) int) (v V, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, ok := p.find(k, best, alike)
	if ok {
		p.arrive(line)
		v = p.lines[line].Value
	}
	return v, ok
}

// find is Find for who holds mu.
func (p *Player[K, V]) find(k K, best int, alike func(V) int) (line int, ok bool) {
	p.index[k] = slices.DeleteFunc(p.index[k], func(i int) bool { return p.came[i] })
	line, most := -1, 0
	for n := 0; n < len(p.index[k]) || p.indexMore(k); n++ {
		i := p.index[k][n]
		if alike == nil {
			return i, true
		}
		like := alike(p.lines[i].Value)
		if like >= 0 && (line < 0 || like > most) {
			line, most = i, like
		}
		if line >= 0 && most >= best {
			break
		}
	}
	return line, line >= 0
}

// indexMore reads on to the next line of a key; false where there is none. mu is held.
func (p *Player[K, V]) indexMore(k K) bool {
	for ; p.indexed < len(p.lines); p.indexed++ {
		if p.lines[p.indexed].From != Program || p.came[p.indexed] {
			continue
		}
		key := p.o.Key(p.lines[p.indexed].Value)
		p.index[key] = append(p.index[key], p.indexed)
		if key == k {
			p.indexed++
			return true
		}
	}
	return false
}

// FindFunc is the first line of the program that has not come yet and that f is true of.
func (p *Player[K, V]) FindFunc(f func(V) bool) (line int, ok bool) {
	for i, v := range p.Missing {
		if f(v) {
			return i, true
		}
	}
	return 0, false
}

// HasCome reports whether a line of the program has come.
func (p *Player[K, V]) HasCome(line int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.came[line]
}

// Missing gives the lines of the program that have not come, in their order. It is used as a range.
func (p *Player[K, V]) Missing(yield func(line int, v V) bool) {
	p.mu.Lock()
	var left []int
	for i := range p.lines {
		if p.lines[i].From == Program && !p.came[i] {
			left = append(left, i)
		}
	}
	lines := p.lines
	p.mu.Unlock()
	for _, i := range left {
		if !yield(i, lines[i].Value) {
			return
		}
	}
}

// Came says that a line of the program has come.
func (p *Player[K, V]) Came(line int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrive(line)
}

// arrive is Came for who holds mu.
func (p *Player[K, V]) arrive(line int) {
	p.came[line] = true
	p.heard, p.lastMS = p.clock.Now(), p.lines[line].MS
	p.mark(line)
	p.arm(line, p.heard, 0)
	p.wake()
}

// Said says of lines of the far side that they were said by who carries them, or never will be. Next does not return them any more.
func (p *Player[K, V]) Said(lines ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range lines {
		p.said[i] = true
		p.armed = slices.DeleteFunc(p.armed, func(a armed) bool { return a.line == i })
	}
	p.mark(lines...)
}

// arm makes the lines from one on that belong to a line of the program wait for their places. mu is held.
func (p *Player[K, V]) arm(owner int, since time.Time, from int) {
	for _, i := range p.owned[owner] {
		if i >= from && !p.said[i] && !slices.ContainsFunc(p.armed, func(a armed) bool { return a.line == i }) {
			p.armed = append(p.armed, armed{line: i, since: since, ms: p.lines[owner].MS})
		}
	}
	for _, i := range p.late[owner] {
		p.now = append(p.now, Due[V]{Line: i, Value: p.lines[i].Value, For: []int{owner}})
	}
	delete(p.late, owner)
}

// Say has the far side say something of its own, before anything of the tape.
func (p *Player[K, V]) Say(v ...V) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range v {
		p.now = append(p.now, Due[V]{Line: -1, Value: v[i]})
	}
	p.wake()
}

// Ended says that the program says nothing more: what it has asked for is still said, and waits for nothing.
func (p *Player[K, V]) Ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.wake()
}

// HasEnded reports whether the program says nothing more.
func (p *Player[K, V]) HasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Stop says that Next is called no more.
func (p *Player[K, V]) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	p.rested.Happened()
}

// Stopped reports whether Next is called no more.
func (p *Player[K, V]) Stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

// Rest waits until nothing is due, but no longer than limit: what the far side had said before a line of the program is to be said before
// it.
func (p *Player[K, V]) Rest(limit time.Duration) {
	end := p.clock.Now().Add(limit)
	late := false
	_ = Hold(context.Background(), p.clock, func() (<-chan struct{}, time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.resting || p.stopped || late {
			return nil, 0
		}
		return p.rested.Next(), end.Sub(p.clock.Now())
	}, func() { late = true })
}

// Next waits until a line is due and returns it. The error is ErrEnd when nothing follows, or ctx's.
func (p *Player[K, V]) Next(ctx context.Context) (Due[V], error) {
	var next step[V]
	err := Hold(ctx, p.clock, func() (<-chan struct{}, time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		next = p.step()
		if next.ready {
			return nil, 0
		}
		p.resting = true
		p.rested.Happened()
		if next.until.IsZero() {
			return p.changed.Next(), Forever
		}
		return p.changed.Next(), max(next.until.Sub(p.clock.Now()), 0)
	}, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.resting = false; next.hold >= 0 {
			p.giveUp(next.hold, 0)
		}
	})
	if err == nil && next.ends {
		err = ErrEnd
	}
	return next.due, err
}

// Left is what is due when the program has gone, without waiting for anything. Next is called no more.
func (p *Player[K, V]) Left() (due []Due[V]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for s := p.step(); s.ready && !s.ends; s = p.step() {
		due = append(due, s.due)
	}
	return due
}

// A step is what Next does: return something, the end, or wait.
type step[V any] struct {
	ready bool
	due   Due[V]
	ends  bool
	until time.Time // zero: as long as it takes
	hold  int       // the line that is held up until then; -1 for none
}

// step finds out what is next. mu is held.
func (p *Player[K, V]) step() step[V] {
	if len(p.now) > 0 {
		due := p.now[0]
		p.now = p.now[1:]
		return step[V]{ready: true, due: due}
	}
	at, line := p.candidate()
	switch {
	case line < 0:
		return p.ending()
	case p.missing(line, 0) >= 0 && (at < 0 || !p.ended):
		return p.held()
	}
	if until := p.paced(p.lines[line].MS); until.After(p.clock.Now()) {
		return step[V]{until: until, hold: -1}
	}
	return step[V]{ready: true, due: p.take(at, line)}
}

// candidate is the first line that may be said, and its index in armed, -1 for one that comes unasked; both are -1 for none. mu is held.
func (p *Player[K, V]) candidate() (at, line int) {
	at, line = -1, -1
	for i, a := range p.armed {
		if at < 0 || a.line < line {
			at, line = i, a.line
		}
	}
	if len(p.free) > 0 && (at < 0 || p.free[0] < line) && (!p.ended || p.missing(p.free[0], 0) < 0) {
		return -1, p.free[0]
	}
	return at, line
}

// held is the wait for what holds all lines up. mu is held.
func (p *Player[K, V]) held() step[V] {
	s := step[V]{hold: -1}
	for _, a := range p.armed {
		m := p.missing(a.line, 0)
		if m < 0 {
			continue
		}
		if until := p.deadline(m, a.since, a.ms, p.slack); s.until.IsZero() || until.Before(s.until) {
			s.until, s.hold = until, a.line
		}
	}
	if s.hold < 0 {
		s.hold = p.free[0]
		s.until = p.deadline(p.missing(s.hold, 0), p.heard, p.lastMS, p.o.Unasked)
	}
	return s
}

// Paced is when what passed at ms of the recording is due at the speed that is wanted.
func (p *Player[K, V]) Paced(ms int64) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paced(ms)
}

// paced is Paced for who holds mu.
func (p *Player[K, V]) paced(ms int64) time.Time {
	if p.o.Speed <= 0 {
		return time.Time{}
	}
	return p.heard.Add(time.Duration(float64(Between(p.lastMS, ms)) / p.o.Speed))
}

// take has a line said to those of its owners that have come; the others get it when they do. mu is held.
func (p *Player[K, V]) take(at, line int) Due[V] {
	if at >= 0 {
		p.armed = slices.Delete(p.armed, at, at+1)
	} else {
		p.free = p.free[1:]
	}
	p.said[line] = true
	p.last = p.clock.Now()
	due := Due[V]{Line: line, Value: p.lines[line].Value}
	for _, owner := range p.lines[line].Owners {
		if p.came[owner] {
			due.For = append(due.For, owner)
		} else {
			p.late[owner] = append(p.late[owner], line)
		}
	}
	return due
}

// ending is the end of the conversation, or the wait for it. mu is held.
func (p *Player[K, V]) ending() step[V] {
	m := p.missing(len(p.lines), 0)
	switch {
	case p.ended:
	case !p.o.Ends || m >= 0 && p.o.EndWaits:
		return step[V]{hold: -1}
	case m >= 0:
		return step[V]{until: p.deadline(m, p.heard, p.lastMS, p.slack), hold: len(p.lines)}
	}
	var linger time.Duration
	if p.o.Linger != nil {
		linger = p.o.Linger(p.lastMS, p.ended)
	}
	if until := p.heard.Add(linger); linger > 0 && until.After(p.clock.Now()) {
		return step[V]{until: until, hold: -1}
	}
	return step[V]{ready: true, ends: true}
}
