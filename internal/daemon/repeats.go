package daemon

import (
	"context"
	"sync"
)

// repeats remembers submissions that may come again, the last maxRepeats of them.
type repeats struct {
	mu    sync.Mutex
	byID  map[string]*repeat
	order []string
}

const maxRepeats = 256

type repeat struct {
	done   chan struct{} // closed when result and err are there
	result any
	err    error
}

// once runs f the first time that id comes, and gives what came of it to everybody. What failed is not remembered.
func (r *repeats) once(ctx context.Context, id string, f func() (any, error)) (any, error) {
	r.mu.Lock()
	if earlier := r.byID[id]; earlier != nil {
		r.mu.Unlock()
		select {
		case <-earlier.done:
			return earlier.result, earlier.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	mine := &repeat{done: make(chan struct{})}
	r.put(id, mine)
	r.mu.Unlock()
	defer close(mine.done)
	mine.err = failed("the first submission of this proposal did not end")
	mine.result, mine.err = f()
	if mine.err != nil {
		r.mu.Lock()
		if r.byID[id] == mine {
			delete(r.byID, id)
		}
		r.mu.Unlock()
	}
	return mine.result, mine.err
}

// put remembers one more and forgets the oldest beyond the limit. r.mu is held.
func (r *repeats) put(id string, one *repeat) {
	if r.byID == nil {
		r.byID = make(map[string]*repeat)
	}
	r.byID[id] = one
	r.order = append(r.order, id)
	if len(r.order) > maxRepeats {
		delete(r.byID, r.order[0])
		r.order = r.order[1:]
	}
}
