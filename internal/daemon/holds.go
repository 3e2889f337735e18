package daemon

import (
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// holds knows which connections hold which open runs. A run that nobody holds any longer is given up after the grace, unless
// somebody takes it again before.
type holds struct {
	grace  time.Duration
	giveUp func(runtrace.ID) // ends it as incomplete; called without the lock, by a timer's goroutine or by flush

	mu     sync.Mutex
	runs   map[runtrace.ID]*hold
	ending sync.WaitGroup // calls of giveUp; begun under mu while closed is false, or by flush
	closed bool
}

// hold is one run that is open.
type hold struct {
	by     map[*session]struct{}
	grace  *time.Timer   // runs while by is empty
	graces int           // how many began or were broken off: a timer that fired late knows that it is not the last
	gone   chan struct{} // not nil while the run is being given up; closed when it was
}

func newHolds(grace time.Duration, giveUp func(runtrace.ID)) *holds {
	return &holds{grace: grace, giveUp: giveUp, runs: make(map[runtrace.ID]*hold)}
}

// take lets s hold a run, whose grace ends. It reports whether anybody held it before, or its grace ran. A run that is being
// given up is waited for.
func (h *holds) take(id runtrace.ID, s *session) (known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	run := h.runs[id]
	for run != nil && run.gone != nil {
		h.mu.Unlock()
		<-run.gone
		h.mu.Lock()
		run = h.runs[id]
	}
	known = run != nil
	if !known {
		run = &hold{by: make(map[*session]struct{}, 1)}
		h.runs[id] = run
	}
	if run.grace != nil {
		run.grace.Stop()
		run.grace = nil
		run.graces++
	}
	run.by[s] = struct{}{}
	return known
}

// release says that s holds a run no longer, because its connection went away.
func (h *holds) release(id runtrace.ID, s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	run := h.runs[id]
	if run == nil {
		return
	}
	delete(run.by, s)
	if len(run.by) > 0 || h.closed {
		return
	}
	run.graces++
	n := run.graces
	run.grace = time.AfterFunc(h.grace, func() { h.over(id, run, n) })
}

// drop takes back a hold of a run that was not started. Others may hold it meanwhile.
func (h *holds) drop(id runtrace.ID, s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	run := h.runs[id]
	if run == nil || run.gone != nil {
		return
	}
	if delete(run.by, s); len(run.by) == 0 && run.grace == nil {
		delete(h.runs, id)
	}
}

// over gives a run up whose grace number n is over, if nobody took it in the same moment.
func (h *holds) over(id runtrace.ID, run *hold, n int) {
	h.mu.Lock()
	if h.closed || h.runs[id] != run || run.graces != n || len(run.by) > 0 || run.gone != nil {
		h.mu.Unlock()
		return
	}
	run.gone = make(chan struct{})
	h.ending.Add(1)
	h.mu.Unlock()
	defer h.ending.Done()
	h.giveUp(id)
	h.mu.Lock()
	defer h.mu.Unlock()
	close(run.gone)
	if h.runs[id] == run {
		delete(h.runs, id)
	}
}

// forget is for a run that has ended.
func (h *holds) forget(id runtrace.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	run := h.runs[id]
	if run == nil || run.gone != nil {
		return
	}
	if run.grace != nil {
		run.grace.Stop()
	}
	delete(h.runs, id)
}

func (h *holds) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.runs)
}

// flush gives up every run that is open, at once, and waits for those that were being given up. Nothing is given up after it.
func (h *holds) flush() {
	h.mu.Lock()
	h.closed = true
	left := make([]runtrace.ID, 0, len(h.runs))
	for id, run := range h.runs {
		if run.grace != nil {
			run.grace.Stop()
		}
		if run.gone == nil {
			left = append(left, id)
		}
	}
	h.mu.Unlock()
	slots := make(chan struct{}, 64) // the store writes those together
	for _, id := range left {
		slots <- struct{}{}
		h.ending.Go(func() {
			defer func() { <-slots }()
			h.giveUp(id)
		})
	}
	h.ending.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.runs)
}
