package exchange

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// How a replay keeps equal requests side by side.
const (
	// grain is by how much, in ms, a chunk must have come later than something else to have come after it: when it came
	// is known from when its answer ended, which may have been later than its last chunk. An end is exact, see findBegun.
	grain = 3
	// slack is how much longer than while recording a replay waits for an equal request.
	slack = 2 * time.Second
	// fewEqual is how many requests one sends to take the first answer. More are work that is done side by side.
	fewEqual = 3
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
	span    time.Duration // from the first begin to the last end; the same
	given   atomic.Uint64 // members that were handed out
	gate    *lane.Gate[moment]
}

// A moment is something that happened while recording, and is waited for on a replay.
type moment struct {
	kind momentKind
	rec  *Recorded // of momentAsked and momentOver
	n    uint64    // of the others: the spawn_id of a process, or how many equal requests were handed out
}

type momentKind uint8

const (
	momentAsked momentKind = iota // a request came
	momentOver                    // its answer was given
	momentGiven                   // so many equal requests came
	momentBegan                   // a process began
	momentNear                    // it was about to end, or nobody waits for it to be
	momentGone                    // it ended
)

// findBegun finds out when the requests of exchanges came, in ms since the recording began, or later: as long before its end
// as its last chunk came after it, and before whatever the tape says to have ended after its first chunk. So one that is
// less than the endedMS of another came before that one's end, for all are cut to whole milliseconds.
func findBegun(whole []*Recorded) {
	slices.SortStableFunc(whole, func(x, y *Recorded) int { return cmp.Compare(x.g, y.g) })
	for _, rec := range whole {
		rec.begunMS = rec.endedMS
		stream := rec.Exchange.Stream
		if len(stream) == 0 {
			continue
		}
		rec.begunMS -= stream[len(stream)-1].TMS
		first := stream[0]
		i, _ := slices.BinarySearchFunc(whole, first.G, func(x *Recorded, g uint64) int { return cmp.Compare(x.g, g) })
		if first.G > 0 && i < len(whole) && whole[i] != rec {
			rec.begunMS = min(rec.begunMS, whole[i].endedMS-max(first.TMS, 1))
		}
	}
}

// findEquals finds equals among the exchanges of one key.
func findEquals(all []*Recorded) {
	if len(all) < 2 {
		return
	}
	var whole []*Recorded
	for _, rec := range all {
		if rec.Exchange.Error == "" && rec.Exchange.Status > 0 {
			whole = append(whole, rec)
		}
	}
	findBegun(whole)
	whole = slices.DeleteFunc(whole, func(rec *Recorded) bool { return rec.begunMS <= 0 }) // the tape has no times
	for _, run := range runs(whole) {
		for _, members := range chains(run, (*Recorded).span) {
			newEquals(members)
		}
	}
}

// runs parts exchanges that stand by their ordinals into those that may be of one run. Those with ordinals are, for only a
// recorder of a run gives them. A tape without may hold what several runs recorded, each of which counted its times from its
// own begin: of those only such are taken together as were under way at the same time of day.
func runs(whole []*Recorded) [][]*Recorded {
	n, _ := slices.BinarySearchFunc(whole, 1, func(rec *Recorded, g uint64) int { return cmp.Compare(rec.g, g) })
	return append(chains(whole[:n], (*Recorded).wallSpan), whole[n:])
}

// chains sorts exchanges by when they began, and parts them where all had ended before the next one began.
func chains(all []*Recorded, span func(*Recorded) (begun, ended int64)) (parts [][]*Recorded) {
	begun := func(rec *Recorded) int64 { b, _ := span(rec); return b }
	slices.SortStableFunc(all, func(x, y *Recorded) int { return cmp.Compare(begun(x), begun(y)) })
	for len(all) > 0 {
		n := 1
		for _, end := span(all[0]); n < len(all) && begun(all[n]) < end; n++ {
			_, ended := span(all[n])
			end = max(end, ended)
		}
		parts = append(parts, all[:n:n])
		all = all[n:]
	}
	return parts
}

// newEquals makes members, which stand as they began, equals. One alone has none.
func newEquals(members []*Recorded) {
	if len(members) < 2 {
		return
	}
	var end int64
	for _, rec := range members {
		end = max(end, rec.endedMS)
	}
	c := &equals{
		members: members, gate: lane.NewGate[moment](slack, nil),
		span: time.Duration(end-members[0].begunMS) * time.Millisecond,
	}
	for _, rec := range members {
		rec.equals = c
	}
}

// join notes that a member was handed out. Nil is a request without equals.
func (c *equals) join() {
	if c != nil {
		c.gate.Happened(moment{kind: momentGiven, n: c.given.Add(1)})
	}
}

// leave notes that the answer of a member has been given.
func (c *equals) leave(rec *Recorded) {
	if c != nil {
		c.gate.Happened(moment{kind: momentOver, rec: rec})
	}
}

// await waits for what had happened when the chunk of rec came that came tms ms after its request, and then for a moment in which the
// program may act on the answers that had ended. end says that it is the last, paced that answers take their time. The error is ctx's
// where that is done before.
func (c *equals) await(ctx context.Context, rec *Recorded, tms int64, end, paced bool) error {
	at, since, took := rec.begunMS+tms, time.Now(), time.Duration(max(tms, 0))*time.Millisecond+slack
	if !end {
		at -= grain
	}
	var all []lane.Condition[moment]
	there, _ := slices.BinarySearchFunc(c.members, at, func(m *Recorded, at int64) int { return cmp.Compare(m.begunMS, at) })
	if there > 0 {
		all = append(all, lane.Condition[moment]{What: moment{kind: momentGiven, n: uint64(there)}, Since: since, For: took})
	}
	few := c.members
	if len(few) > fewEqual {
		few = nil
	}
	for _, m := range few {
		if end && m.endedBefore(rec) || m.endedMS < at {
			all = append(all, lane.Condition[moment]{
				What: moment{kind: momentOver, rec: m}, Since: since, For: took + c.span + slack, React: reactionTo(rec.endedMS-m.endedMS, paced),
			})
		}
	}
	return c.gate.Await(ctx, all)
}

// reactionTo is how long the program has to act on an answer that ended so many ms before the next: as long as it had where
// answers take their time, else some times that, for the rest of the machine does not go faster.
func reactionTo(gapMS int64, paced bool) time.Duration {
	gap := time.Duration(gapMS) * time.Millisecond
	if !paced {
		gap = 5*time.Millisecond + 4*gap
	}
	return min(gap, reaction)
}
