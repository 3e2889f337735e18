package daemon

import (
	"context"
	"sync"

	"github.com/tapedeck-dev/tapedeck/proposal"
)

// repeats remembers submissions that may come again: which ones, the last maxRepeats of them, and their results as long as
// there is room.
type repeats struct {
	room *quota

	mu    sync.Mutex
	byID  map[string]*repeat
	order []*repeat
}

const maxRepeats = 4096

type repeat struct {
	id     string
	done   chan struct{} // closed when result and err are there
	result *proposal.Result
	err    error
	size   int // of result, taken from room
}

// once runs f the first time that id comes, and gives what came of it to everybody. A submission that came to an error is not
// remembered.
func (r *repeats) once(ctx context.Context, id string, f func() (*proposal.Result, error)) (*proposal.Result, error) {
	r.mu.Lock()
	if earlier := r.byID[id]; earlier != nil {
		r.mu.Unlock()
		return earlier.wait(ctx)
	}
	mine := &repeat{id: id, done: make(chan struct{})}
	r.put(mine)
	r.mu.Unlock()
	defer close(mine.done)
	result, err := (*proposal.Result)(nil), failed("the first submission of this proposal did not end")
	defer func() { r.settle(mine, result, err) }()
	result, err = f()
	return result, err
}

func (one *repeat) wait(ctx context.Context) (*proposal.Result, error) {
	select {
	case <-one.done:
		return one.result, one.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// put remembers one more and forgets the oldest beyond the limit. r.mu is held.
func (r *repeats) put(one *repeat) {
	if r.byID == nil {
		r.byID = make(map[string]*repeat)
	}
	r.byID[one.id] = one
	if r.order = append(r.order, one); len(r.order) > maxRepeats {
		r.forget(r.order[0])
		r.order = r.order[1:]
	}
}

// forget takes one out, if it is still the one of its id. r.mu is held.
func (r *repeats) forget(one *repeat) {
	if r.byID[one.id] == one {
		delete(r.byID, one.id)
	}
	r.room.take(-one.size)
	one.size = 0
}

// settle keeps what came of one. A result for which there is no room is not kept; that it ran is.
func (r *repeats) settle(one *repeat, result *proposal.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		one.err = err
		r.forget(one)
		return
	}
	if r.byID[one.id] != one { // so many came since that it is forgotten: those who wait for it have the result, nobody keeps it
		one.result = result
		return
	}
	if size := sizeOf(result); r.room.take(size) {
		one.size, one.result = size, result
		return
	}
	one.err = failed("this proposal ran already, and there was no room to keep its result: its turns are in the trace")
}

// sizeOf is about how many bytes a result holds.
func sizeOf(r *proposal.Result) int {
	n := len(r.ProposalID)
	for i := range r.Results {
		a := &r.Results[i]
		n += 256 + len(a.ActionID) + len(a.Output)
		if a.Error != nil {
			n += len(*a.Error)
		}
		for k, v := range a.StateChanges {
			n += 64 + len(k) + len(v)
		}
	}
	return n
}
