package exchange

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// How a replay keeps equal requests side by side.
const (
	// grace is how much longer, in ms, a program may take over an answer than while recording.
	grace = 20
	// grain is by how much, in ms, a chunk must have come later than something else to have come after it, on a tape without ordinals: when it
	// came is known from when its answer ended, which may have been later than its last chunk.
	grain = 3
	// slack is how much longer than while recording a replay waits for an equal request.
	slack = 2 * time.Second
	// fewEqual is how many requests one sends to take the first answer. More are work that is done side by side.
	fewEqual = 3
	// manyEqual is from how many requests of one key on those of them that went on together, where they are less than a quarter, were sent by
	// callers that do not know of each other.
	manyEqual = 32
	// reaction is the most time that a program has to act on the first of such answers before it gets the end of the next, see
	// reactionTo.
	reaction = 100 * time.Millisecond
)

// equals are exchanges of one key and one run that came to their end and were under way together while recording. A replay that
// answers at once would be done with the first before the second is sent, and the program would not send it; or it would give
// the second first, and the program would take the other answer. So a chunk waits for the equal requests that were
// there when it came then, and, where they are few, the head and the end of an answer wait for those that had ended by then,
// and for a moment in which the program may cancel. A wait is never longer than it was then and a little: one that is in vain
// ends all others, and what was not asked for is a divergence as ever.
type equals struct {
	members []*Recorded   // by when they began; not changed once it is made
	ends    []*Recorded   // members whose ends keep their order; nil for none
	span    time.Duration // from the first begin to the last end; the same
	given   atomic.Uint64 // members that were handed out
	gate    *lane.Gate[moment]
}

// findEquals finds equals among the exchanges of one key. Those with ordinals are of one run, for only a recorder of a run gives them. A
// tape without may hold what several runs recorded, each of which counted its times from its own begin: of those only such are taken
// together as were under way at the same time of day.
func findEquals(all []*Recorded) {
	var placed, timed []*Recorded
	for _, rec := range all {
		switch {
		case rec.Exchange.Error != "" || rec.Exchange.Status == 0:
		case rec.g > 0:
			placed = append(placed, rec)
		case rec.begun() > 0: // else the tape has no times either
			timed = append(timed, rec)
		}
	}
	var company [][]*Recorded
	n := 0
	for _, run := range append(chains(timed, (*Recorded).wallSpan), placed) {
		for _, members := range chains(run, (*Recorded).span) {
			if len(members) > 1 {
				company, n = append(company, members), n+len(members)
			}
		}
	}
	byChance := len(all) >= manyEqual && n < len(all)/4
	for _, members := range company {
		newEquals(members, byChance)
	}
}

// chains sorts exchanges by when they began, and parts them where all had ended before the next one began.
func chains(all []*Recorded, of func(*Recorded) span) (parts [][]*Recorded) {
	slices.SortStableFunc(all, func(x, y *Recorded) int { return cmp.Compare(of(x).begun, of(y).begun) })
	for len(all) > 0 {
		n := 1
		for end := of(all[0]).ended; n < len(all) && of(all[n]).begun < end; n++ {
			end = max(end, of(all[n]).ended)
		}
		parts = append(parts, all[:n:n])
		all = all[n:]
	}
	return parts
}

// newEquals makes members, which stand as they began, equals: of few, unless they are by chance, the ends keep their order.
func newEquals(members []*Recorded, byChance bool) {
	begun, end := members[0].begun(), int64(0)
	for _, rec := range members {
		begun, end = min(begun, rec.begun()), max(end, rec.endedMS)
	}
	c := &equals{
		members: members, gate: lane.NewGate[moment](slack, nil),
		span: time.Duration(end-begun) * time.Millisecond,
	}
	if len(members) <= fewEqual && !byChance {
		c.ends = members
	}
	for _, rec := range members {
		rec.equals = c
	}
}

// leave notes that the answer of a member has been given. Nil is a request without equals.
func (c *equals) leave(rec *Recorded) {
	if c != nil {
		c.gate.Happened(moment{kind: momentOver, rec: rec})
	}
}

// await waits for what had happened when a chunk of rec came, and then for a moment in which the program may act on the answers that had
// ended. end says that it is the last, paced that answers take their time. The error is ctx's where that is done before.
func (c *equals) await(ctx context.Context, rec *Recorded, chunk tape.Chunk, end, paced bool) error {
	if c == nil {
		return nil
	}
	at, since, took := rec.span().ended, time.Now(), time.Duration(max(chunk.TMS, 0))*time.Millisecond+slack
	switch {
	case end:
	case rec.g > 0:
		at = int64(chunk.G)
	default:
		at = rec.begun() + chunk.TMS - grain
	}
	var all []lane.Condition[moment]
	there, _ := slices.BinarySearchFunc(c.members, at, func(m *Recorded, at int64) int { return cmp.Compare(m.span().begun, at) })
	if there > 0 {
		all = append(all, lane.Condition[moment]{What: moment{kind: momentGiven, n: uint64(there)}, Since: since, For: took})
	}
	for _, m := range c.ends {
		if end && m.endedBefore(rec) || m.span().ended < at {
			all = append(all, lane.Condition[moment]{
				What: moment{kind: momentOver, rec: m}, Since: since, For: took + c.span + slack, React: reactionTo(rec.endedMS-m.endedMS, paced),
			})
		}
	}
	return c.gate.Await(ctx, all)
}
