package fidelity

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// The errors of an exchange that the program itself ended, or on replay did not: tape.Cancelled and tape.HeldOn.
const (
	errorWithdrawn = tape.Cancelled
	errorHeldOn    = tape.HeldOn
)

// withdrawals counts what does not gate because the program itself ended it.
type withdrawals struct {
	cut      int             // pairs in which the program ended an answer
	needless int             // recorded ones that the replay did not ask for
	asked    map[uint64]bool // identities that the replay asked for and got an answer to; nil until it is needed
}

// withdrawn reports whether the program itself ended the exchange before its answer had ended.
func withdrawn(ex *tape.Exchange) bool { return ex != nil && ex.Error == errorWithdrawn }

// racy reports whether what came of two exchanges says nothing, for the program ended one of them itself: how much of its
// answer had come by then, and whether it had ended, is a matter of moments. What the program made of it shows elsewhere.
// One that the program held on to, where it had not while recording, is another matter.
func racy(a, b *tape.Exchange) bool {
	return (withdrawn(a) || withdrawn(b)) && a.Error != errorHeldOn && b.Error != errorHeldOn
}

// ended counts a pair of exchanges one of which the program itself ended, where they differ for that.
func (c *laneCompare) ended(p pair) {
	a, b := tape.ExchangeOf(p.a.rec.Kind), tape.ExchangeOf(p.b.rec.Kind)
	if a != nil && b != nil && racy(a, b) && !c.cutPair(p) && resultOf(p.a.rec.Kind) != resultOf(p.b.rec.Kind) {
		c.withdrawals.cut++
	}
}

// needless reports whether a recorded exchange that the replay never asked for is a note: the program had ended it itself,
// and either none of its answer had come by then, or the replay has asked the same and was answered. A program that sends a
// request twice, to take the answer that comes first, need not do so where that comes at once.
func (c *laneCompare) needless(e *entry) bool {
	ex := tape.ExchangeOf(e.rec.Kind)
	if !withdrawn(ex) {
		return false
	}
	if ex.Response != nil && ex.Response.Len > 0 && !c.answered(e.id) {
		return false
	}
	c.withdrawals.needless++
	return true
}

// answered reports whether the replay got an answer from the tape to a request of that identity.
func (c *laneCompare) answered(id uint64) bool {
	w := &c.withdrawals
	if w.asked == nil {
		w.asked = make(map[uint64]bool)
		for i := range c.sides[Replay].entries {
			e := &c.sides[Replay].entries[i]
			if e.rec == nil {
				continue
			}
			if ex := tape.ExchangeOf(e.rec.Kind); ex != nil && ex.Lane != laneUnmatched {
				w.asked[c.identityOf(e)] = true
			}
		}
	}
	return w.asked[id]
}

// note says what did not gate.
func (w *withdrawals) note(c *laneCompare) {
	if w.cut > 0 {
		c.note("the program itself ended %s early, which does not gate", answers(w.cut))
	}
	if w.needless > 0 {
		c.note("the program itself had ended %s while recording, and the replay did not ask for as much, which does not gate",
			answers(w.needless))
	}
}

func answers(n int) string {
	if n == 1 {
		return "1 answer"
	}
	return fmt.Sprintf("%d answers", n)
}
