package lend

import "sync"

// A pipeID is the device and the inode of a pipe.
type pipeID [2]uint64

// A turn is held by the one Loan of a pipe that has lent a piece.
type turn struct {
	pipe  pipeID
	loans int           // guarded by turnsMu
	held  chan struct{} // full while it is held
}

// turns are those of the pipes that have loans: of this process, for pipes are the machine's.
var (
	turnsMu sync.Mutex
	turns   = make(map[pipeID]*turn)
)

func turnOf(pipe pipeID) *turn {
	turnsMu.Lock()
	defer turnsMu.Unlock()
	t := turns[pipe]
	if t == nil {
		t = &turn{pipe: pipe, held: make(chan struct{}, 1)}
		turns[pipe] = t
	}
	t.loans++
	return t
}

// leave is told of a Loan that ends.
func (t *turn) leave() {
	turnsMu.Lock()
	defer turnsMu.Unlock()
	if t.loans--; t.loans == 0 {
		delete(turns, t.pipe)
	}
}

// take waits for the turn, and reports false where left was closed before.
func (t *turn) take(left <-chan struct{}) bool {
	select {
	case t.held <- struct{}{}:
		return true
	case <-left:
		return false
	}
}

func (t *turn) give() { <-t.held }
