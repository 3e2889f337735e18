package exchange

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// How a replay keeps company.
const (
	// companyGrain is by how much, in ms, a chunk must have come later than something else to have come after it: when it came
	// is known from when its answer ended, which may have been later than its last chunk. An end is exact, see findBegun.
	companyGrain = 3
	// companySlack is how much longer than while recording a replay waits for an equal request.
	companySlack = 2 * time.Second
	// smallCompany is how many requests one sends to take the first answer. More are work that is done side by side.
	smallCompany = 3
	// reaction is the most time that a program has to act on the first of such answers before it gets the end of the next, see
	// reactionTo.
	reaction = 100 * time.Millisecond
)

// A company is exchanges of one key and one run that came to their end and were under way together while recording. A replay that
// answers at once would be done with the first before the second is sent, and the program would not send it; or it would give
// the second first, and the program would take the other answer. So a chunk waits for the equal requests that were
// there when it came then, and, in a small company, the head and the end of an answer wait for those that had ended by then,
// and for a moment in which the program may cancel. A wait is never longer than it was then and a little: one that is in vain
// ends all others, and what was not asked for is a divergence as ever.
type company struct {
	members []*Recorded   // by when they began; not changed once it is made
	span    time.Duration // from the first begin to the last end; the same

	mu     sync.Mutex            // guards what follows
	given  int                   // members that were handed out
	joined map[int]chan struct{} // closed when so many were; of those numbers alone that somebody waits for
	over   map[*Recorded]bool
	last   time.Time   // when the last of these ended
	left   lane.Change // the next one ends
	inVain bool
}

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

// keepCompany finds the companies among the exchanges of one key.
func keepCompany(all []*Recorded) {
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
			newCompany(members)
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

// newCompany makes a company of members, which stand as they began. One alone is none.
func newCompany(members []*Recorded) {
	if len(members) < 2 {
		return
	}
	var end int64
	for _, rec := range members {
		end = max(end, rec.endedMS)
	}
	c := &company{
		members: members, over: make(map[*Recorded]bool), joined: make(map[int]chan struct{}),
		span: time.Duration(end-members[0].begunMS) * time.Millisecond,
	}
	for _, rec := range members {
		rec.company = c
	}
}

// join notes that a member was handed out. It wakes those that it is enough for: of a thousand that wait, waking all for each one
// that comes would be half a million times. Nobody is no company.
func (c *company) join() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given++
	if enough := c.joined[c.given]; enough != nil {
		close(enough)
		delete(c.joined, c.given)
	}
}

// leave notes that the answer of a member has been given.
func (c *company) leave(rec *Recorded) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over[rec] {
		return
	}
	c.over[rec], c.last = true, time.Now()
	c.left.Happened()
}

// giveUp ends all waiting.
func (c *company) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inVain = true
	for n, enough := range c.joined {
		close(enough)
		delete(c.joined, n)
	}
	c.left.Happened()
}

// await waits for what had happened when the chunk of rec came that came tms ms after its request. end says that it is the
// last, paced that answers take their time. The error is ctx's where that is done before.
func (c *company) await(ctx context.Context, rec *Recorded, tms int64, end, paced bool) error {
	at := rec.begunMS + tms
	if !end {
		at -= companyGrain
	}
	there, _ := slices.BinarySearchFunc(c.members, at, func(m *Recorded, at int64) int { return cmp.Compare(m.begunMS, at) })
	limit := time.Duration(max(tms, 0))*time.Millisecond + companySlack
	err := c.until(ctx, limit, func() <-chan struct{} { return c.untilJoined(there) })
	if err != nil || len(c.members) > smallCompany {
		return err
	}
	return c.awaitEnds(ctx, rec, at, end, paced)
}

// awaitEnds waits for the answers that had ended at the time at, or where end is set before that of rec, and then for a moment in
// which the program may act on them.
func (c *company) awaitEnds(ctx context.Context, rec *Recorded, at int64, end, paced bool) error {
	var before []*Recorded
	pause := reaction
	for _, m := range c.members {
		if end && m.endedBefore(rec) || m.endedMS < at {
			before = append(before, m)
			pause = min(pause, reactionTo(rec.endedMS-m.endedMS, paced))
		}
	}
	if len(before) == 0 {
		return nil
	}
	if err := c.until(ctx, c.span+companySlack, func() <-chan struct{} { return c.untilLeft(before) }); err != nil {
		return err
	}
	return lane.Pause(ctx, nil, c.remaining(pause))
}

// reactionTo is how long the program has to act on an answer that ended so many ms before the next: as long as it had where
// answers take their time, else some times that, for the rest of the machine does not go faster.
func reactionTo(gapMS int64, paced bool) time.Duration {
	gap := time.Duration(gapMS) * time.Millisecond
	if paced {
		return gap
	}
	return 5*time.Millisecond + 4*gap
}

// remaining is what is left of a pause after the last end.
func (c *company) remaining(pause time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inVain {
		return 0
	}
	return pause - time.Since(c.last)
}

// untilJoined is closed when so many members were handed out; nil where they are. The caller holds mu.
func (c *company) untilJoined(n int) <-chan struct{} {
	if c.given >= n {
		return nil
	}
	if c.joined[n] == nil {
		c.joined[n] = make(chan struct{})
	}
	return c.joined[n]
}

// untilLeft is closed when another answer has been given; nil where all of these have been. The caller holds mu.
func (c *company) untilLeft(all []*Recorded) <-chan struct{} {
	if !slices.ContainsFunc(all, func(m *Recorded) bool { return !c.over[m] }) {
		return nil
	}
	return c.left.Next()
}

// until waits for what next returns, which holds the lock, until that is nil, for limit at most. Once that has been in vain it
// waits no more.
func (c *company) until(ctx context.Context, limit time.Duration, next func() <-chan struct{}) error {
	end := time.Now().Add(limit)
	return lane.Hold(ctx, nil, func() (<-chan struct{}, time.Duration) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.inVain {
			return nil, 0
		}
		return next(), time.Until(end)
	}, c.giveUp)
}
