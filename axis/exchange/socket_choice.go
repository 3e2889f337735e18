package exchange

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A program that opens several sockets by equal requests says by nothing which of them is which until it speaks. So one of a replay is
// given a recorded one by arrival, as equal requests are, and becomes another one where what the program says next fits that, and not
// the one that it was. The two change places from there on: what the server had said of the one before, on which the program had
// said the same, is what it had said of the other from now on. So a program hears all that it heard, each once.

const (
	// maxUndecided is how many records of a socket wait at most until it is known which it is: then it stays what it is.
	maxUndecided = 64
	// maxRivals is how many recorded sockets at most one of a replay may be.
	maxRivals = 1024
)

// A choice is which recorded socket one of a replay is, while several may be it. What it holds is guarded by the mu of its Book.
type choice struct {
	book   *Book
	queue  *queue
	asked  *Traits
	rec    *Recorded
	rivals []*Recorded // that were opened by requests as like the program's as that of rec, with rec
	heard  []*saying   // what the program said: the first messages of rec
	made   bool
	times  int         // that it has changed
	play   *SocketPlay // nil before there is one
}

// current is the recorded socket that it is now, what passes on it, and how often the choice has changed by now.
func (c *choice) current() (rec *Recorded, entries []*socketEntry, times int) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	return c.rec, c.rec.Socket.entries, c.times
}

// hear takes what the program says next. A recorded socket whose next message that is goes before one that has it in another place.
func (c *choice) hear(now *saying, names *lane.Names) {
	if found, rivals := c.become(now, c.next, names); found && rivals {
		return
	} else if !found {
		c.become(now, c.later, nil)
	}
	c.decide()
}

// next reports whether a recorded socket goes on with now.
func (c *choice) next(s *RecordedSocket, now *saying) bool {
	n := len(c.heard)
	return n < len(s.asked) && c.book.begins(s, c.heard) && c.book.said(s, s.asked[n]).key == now.key
}

// later reports whether a recorded socket goes on with what has now in any place.
func (c *choice) later(s *RecordedSocket, now *saying) bool {
	return c.book.begins(s, c.heard) && slices.ContainsFunc(s.asked[len(c.heard):], func(e *socketEntry) bool {
		return c.book.said(s, e).key == now.key
	})
}

// become makes the choice one of the recorded sockets that fit what the program says now: by names, which may be nil, that most like
// it, then the one that it is, then the first. It reports whether one fits, and whether several do of which it is not known yet.
func (c *choice) become(now *saying, fits func(*RecordedSocket, *saying) bool, names *lane.Names) (found, rivals bool) {
	var fitting []*Recorded
	for _, r := range c.rivals { // before the lock is taken, for messages are read
		if fits(r.Socket, now) {
			fitting = append(fitting, r)
		}
	}
	c.book.mu.Lock()
	fitting = slices.DeleteFunc(fitting, (*Recorded).decided)
	rivals = len(fitting) > 1
	fitting = slices.DeleteFunc(fitting, func(r *Recorded) bool { return r != c.rec && !c.mayBecome(r) })
	var other *SocketPlay
	if found = len(fitting) > 0; found {
		other = c.change(c.likest(fitting, now, names))
		c.heard = append(slices.Clip(c.heard), now)
	}
	c.book.mu.Unlock()
	if other != nil {
		other.changed()
	}
	return found, rivals
}

// mayBecome reports whether the choice can be r, which is not decided: nobody is it, or one of which no more was heard, and that may be
// what the choice is now. The caller holds the Book's mu.
func (c *choice) mayBecome(r *Recorded) bool {
	other := r.Socket.choice
	return other == nil || len(other.heard) <= len(c.heard) && c.book.begins(c.rec.Socket, other.heard)
}

// likest is what the choice becomes of those that fit. The caller holds the Book's mu.
func (c *choice) likest(fitting []*Recorded, now *saying, names *lane.Names) *Recorded {
	best := c.rec
	if !slices.Contains(fitting, best) {
		best = fitting[0]
	}
	if names == nil || len(now.ids) == 0 {
		return best
	}
	like := func(r *Recorded) int {
		return names.Likeness(c.book.said(r.Socket, r.Socket.asked[len(c.heard)]).ids, now.ids)
	}
	most := like(best)
	for _, r := range fitting {
		if n := like(r); n > most {
			best, most = r, n
		}
	}
	return best
}

// change makes the choice rec; who was that becomes what it was, and its play is returned. The caller holds the Book's mu.
func (c *choice) change(rec *Recorded) *SocketPlay {
	was := c.rec
	if was == rec {
		return nil
	}
	changePlaces(was.Socket, rec.Socket, len(c.heard))
	other := rec.Socket.choice
	c.rec, rec.Socket.choice = rec, c
	c.times++
	if was.Socket.choice = other; other == nil {
		rec.Served, was.Served = true, false
		c.queue.GiveBack(was)
		return nil
	}
	other.rec = was
	other.times++
	return other.play
}

// changePlaces gives each of two recorded sockets what passed on the other before the nth message of the program.
func changePlaces(a, b *RecordedSocket, n int) {
	i, j := a.before(n), b.before(n)
	a.entries, b.entries = slices.Concat(b.entries[:j], a.entries[i:]), slices.Concat(a.entries[:i], b.entries[j:])
}

// before is how many entries stand before the nth message of the program.
func (s *RecordedSocket) before(n int) int {
	for i, e := range s.entries {
		if e.isEnd() {
			return i
		}
		if e.asks() {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return len(s.entries)
}

// decide ends the choice: it stays what it is.
func (c *choice) decide() {
	b := c.book
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.made {
		return
	}
	c.made, c.rec.Socket.choice = true, nil
	b.hand(c.rec, c.asked)
}
