package otlp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Live sends the spans of a recording while it is made: those of Export, but for what becomes known as a secret later than it was sent.
// One goroutine reads the tape, from Begin to End.
type Live struct {
	m      *mapper
	q      *Queue
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
	err    error         // why it ended too early; set before done is closed
}

// Begin begins to send the recording in dir, whose recorder is at work. End must be called.
func Begin(dir string, o *Options, to *Receiver) (*Live, error) {
	rec, err := recording.Open(dir)
	if err != nil {
		return nil, err
	}
	store, err := rec.Store()
	if err != nil {
		return nil, err
	}
	l := &Live{m: newMapper(rec.Manifest, store, o), done: make(chan struct{})}
	l.q = NewQueue(to, l.m.resource())
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(l.done)
		_, l.err = follow.Follow(ctx, rec, &follow.Options{Record: func(r *tape.Record) error {
			if s, ok := l.m.span(r); ok {
				l.q.Add(s)
			}
			return nil
		}})
	}()
	return l, nil
}

// End sends what is left and the span of the run itself, once the recorder has ended; rec is what it left, nil where it failed. It takes
// so long at most.
func (l *Live) End(rec *recording.Recording, within time.Duration) Tally {
	deadline := time.Now().Add(within)
	late := time.AfterFunc(within, l.cancel)
	<-l.done
	late.Stop()
	l.cancel()
	if rec != nil {
		l.m.rec = rec.Manifest
	}
	if l.err == nil {
		l.q.Add(l.m.run())
	}
	t := l.q.Close(time.Until(deadline))
	if l.err != nil {
		t.Dropped++ // the run itself, and who knows what else
		t.Err = fmt.Errorf("the tape could not be read to its end in time: %w", l.err)
	}
	return t
}

// Runs sends the spans of a daemon's runs while they go on. Its methods wait neither for the receiver nor for each other: a span is made,
// and secrets taken out of it, outside the lock.
type Runs struct {
	q       *Queue
	content func([]byte) []byte // takes secrets out, for several callers at once; nil where content stays

	mu   sync.Mutex
	open map[runtrace.ID]*openRun
}

// An openRun is what is known of a run that has not ended.
type openRun struct {
	started         *runtrace.Started
	begun, last     time.Time // last is when something was told of it
	turns, verdicts int
}

// NewRuns begins to send to a receiver. content takes secrets out of what the spans then have of content, for several callers at once; nil
// leaves all of it out. Close must be called.
func NewRuns(to *Receiver, host string, content func([]byte) []byte) *Runs {
	return &Runs{q: NewQueue(to, daemonResource(host)), content: content, open: make(map[runtrace.ID]*openRun)}
}

// of returns what is known of a run, and when what is told of it now began: with what was told before it. One that is not known is kept
// where it is starting: another one is of before the daemon's start, or has ended, and nobody would remove it. r.mu is held.
func (r *Runs) of(id runtrace.ID, starting bool) (run *openRun, from, now time.Time) {
	now = time.Now()
	if run = r.open[id]; run == nil {
		run = &openRun{begun: now, last: now}
		if starting {
			r.open[id] = run
		}
	}
	from, run.last = run.last, now
	return run, from, now
}

// Started is told of a new run.
func (r *Runs) Started(s *runtrace.Started) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, _, _ := r.of(s.ID(), true)
	run.started = s
}

// Turns is told of turns, of which the first has the index base. They may be told after the end of their run.
func (r *Runs) Turns(id runtrace.ID, base int, turns []runtrace.Turn) {
	r.mu.Lock()
	run, from, now := r.of(id, false)
	run.turns = base + len(turns)
	r.mu.Unlock()
	for i := range turns {
		if r.q.room() {
			r.q.Add(turnSpan(id, base+i, &turns[i], from, now, r.content))
		}
	}
}

// Verdict is told of a policy's decision, as it is kept, on an action of a run or, with the zero id, of none.
func (r *Runs) Verdict(id runtrace.ID, verdict json.RawMessage) {
	r.mu.Lock()
	run, _, now := r.of(id, false)
	run.verdicts++
	number := fmt.Sprint(run.verdicts)
	if r.open[id] == nil {
		number = fmt.Sprint("at ", now.UnixNano())
	}
	r.mu.Unlock()
	if r.q.room() {
		r.q.Add(verdictSpan(id, number, verdict, now, r.content))
	}
}

// Ended is told of the end of a run.
func (r *Runs) Ended(id runtrace.ID, e *runtrace.Ended) {
	r.mu.Lock()
	run, _, now := r.of(id, false)
	delete(r.open, id) // nobody else has run from here on
	r.mu.Unlock()
	if r.q.room() {
		r.q.Add(runSpan(id, run, e, now, r.content))
	}
}

// Counts are how many spans the receiver has taken so far, and how many were dropped.
func (r *Runs) Counts() (sent, dropped int) {
	t := r.q.Tally()
	return t.Sent, t.Dropped
}

// Close sends what waits, for so long at most.
func (r *Runs) Close(within time.Duration) Tally { return r.q.Close(within) }

// Lost says in words what was not sent, "" for nothing.
func (t *Tally) Lost() string {
	if t.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d spans were not sent: %v", t.Dropped, t.Dropped+t.Sent, t.Err)
}
