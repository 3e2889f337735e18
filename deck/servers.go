package deck

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// servers knows the processes of the servers that a program talks with, so that what these change in files is told from what the
// program changes itself: the tape has it before the server's next line, and a replay, in which no server runs, makes the change in
// its place. Its methods may be called by several goroutines at once.
type servers struct {
	mu    sync.Mutex
	all   []*serverProcess   // by handle, from 1
	roots map[int]uint32     // handles, by PID, of those that live
	heard map[int]*listening // by PID: processes whose input passes here
	asked map[int]origin     // whose the thread was when it was asked last
}

// A serverProcess is one process that may be a server.
type serverProcess struct {
	conversation uint64        // 0 while it is not known to be one
	within       uint32        // the handle of what started it, where that may be a server too; 0 for the program
	changed      bool          // it may have changed files since the last barrier
	settled      chan struct{} // closed once its talk has ended: what it was is known then
}

// An origin is what was found out about a thread. It holds for a moment: threads end, and their numbers are given again.
type origin struct {
	by uint32
	at time.Time
}

// originHolds is how long an origin is believed, and maxOrigins how many are kept.
const (
	originHolds = time.Second
	maxOrigins  = 4096
)

// add says that the process pid may be a server, and returns the handle by which journals know it.
func (s *servers) add(pid int) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roots == nil {
		s.roots = make(map[int]uint32)
	}
	s.all = append(s.all, &serverProcess{within: s.climb(pid), settled: make(chan struct{})})
	by := uint32(len(s.all))
	s.roots[pid] = by
	s.asked = nil // a child may have been asked about before its program ran
	return by
}

// gone says that the talk with the process pid, which is known as by, has ended. What it started may go on.
func (s *servers) gone(pid int, by uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.roots, pid)
	close(s.all[by-1].settled)
}

// settled is closed once it is known whether by is a server.
func (s *servers) settled(by uint32) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[by-1].settled
}

// A listening is a process whose standard streams pass here, its input at least.
type listening struct {
	heard *heardStreams   // nil where they are a conversation's, or not known; set before done
	done  <-chan struct{} // closed once they have ended
}

// listens says that streams of a process pass here.
func (s *servers) listens(pid int, l *listening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard == nil {
		s.heard = make(map[int]*listening)
	}
	s.heard[pid] = l
}

// takeListening is what is known of the streams of a process that has ended, once; nil for nothing.
func (s *servers) takeListening(pid int) *listening {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.heard[pid]
	delete(s.heard, pid)
	return l
}

// talks says which conversation it is that a process holds.
func (s *servers) talks(by uint32, conversation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[by-1].conversation = conversation
}

// conversation is the number of the conversation of by, where it is none, or none yet, that of what started it; 0 for the program's.
func (s *servers) conversation(by uint32) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for by > 0 && int(by) <= len(s.all) {
		p := s.all[by-1]
		if p.conversation != 0 {
			return p.conversation
		}
		by = p.within
	}
	return 0
}

// changing returns whose the thread is that is about to change a file; 0 for the program's.
func (s *servers) changing(thread int) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.roots) == 0 {
		return 0
	}
	o, ok := s.asked[thread]
	if now := time.Now(); !ok || now.Sub(o.at) > originHolds {
		if o = (origin{by: s.climb(thread), at: now}); s.asked == nil || len(s.asked) >= maxOrigins {
			s.asked = make(map[int]origin)
		}
		s.asked[thread] = o
	}
	if o.by != 0 {
		s.all[o.by-1].changed = true
	}
	return o.by
}

// of is whose a process is that is about to start; 0 for the program's.
func (s *servers) of(pid int) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.roots) == 0 {
		return 0
	}
	return s.climb(pid)
}

// maxClimb bounds how many parents are asked.
const maxClimb = 64

// climb looks for a server among a thread's process and those that it comes from.
func (s *servers) climb(thread int) uint32 {
	for range maxClimb {
		process, parent := lineage(thread)
		if by, ok := s.roots[process]; ok {
			return by
		}
		if parent <= 1 {
			return 0
		}
		thread = parent
	}
	return 0
}

// lineage is the process of a thread and that one's parent; 0 where it is gone.
func lineage(thread int) (process, parent int) {
	status := statusOf(strconv.Itoa(thread))
	process, _ = strconv.Atoi(status["Tgid"])
	parent, _ = strconv.Atoi(status["PPid"])
	return process, parent
}

// takeChanged reports whether by may have changed files since it was asked last.
func (s *servers) takeChanged(by uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.all[by-1]
	was := p.changed
	p.changed = false
	return was
}

// look puts on the tape what the server by has changed in files by now: before the next line of its conversation.
func (c *changing) look(by uint32) error {
	j := c.journal.Load()
	if j == nil || !c.servers.takeChanged(by) {
		return nil
	}
	err := c.record(j.BarrierOf(by))
	if err != nil {
		c.s.fail(err)
	}
	return err
}

// A redoing makes the changes of one recorded server again, in the order of the tape.
type redoing struct {
	c       *changing
	changes []*tape.Record
	o       files.RedoOptions
	lost    func(err error) // told of changes that cannot be made again
	made    map[string]bool // paths that were changed since the journal looked last
}

// until makes the changes whose records stand before seq. What was recorded of one path at two moments is at two moments again: a lock that
// came and went.
func (r *redoing) until(seq uint64) error {
	for len(r.changes) > 0 && r.changes[0].Seq < seq {
		rec := r.changes[0]
		r.changes = r.changes[1:]
		if path := tape.ChangedFile(rec.Kind).Path; r.made[path] {
			if err := r.c.look(r.o.By); err != nil {
				return err
			}
			clear(r.made)
		}
		r.made[tape.ChangedFile(rec.Kind).Path] = true
		err := r.c.redo(rec, &r.o)
		if errors.Is(err, files.ErrNotRedone) {
			r.lost(err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *changing) redo(rec *tape.Record, o *files.RedoOptions) error {
	j := c.journal.Load()
	if j == nil {
		return nil
	}
	c.servers.mu.Lock()
	c.servers.all[o.By-1].changed = true
	c.servers.mu.Unlock()
	return j.Redo(rec, o)
}

// within is the conversation of the server that a process is, or comes from; 0 for none.
func (s *servers) within(pid int) uint64 {
	s.mu.Lock()
	by := s.climb(pid)
	s.mu.Unlock()
	return s.conversation(by)
}
