package exchange

import (
	"cmp"
	"context"
	"slices"
	"time"
)

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
	return sleep(ctx, c.remaining(pause))
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
	if c.left == nil {
		c.left = make(chan struct{})
	}
	return c.left
}

// until waits for what next returns, which holds the lock, until that is nil, for limit at most. Once that has been in vain it
// waits no more.
func (c *company) until(ctx context.Context, limit time.Duration, next func() <-chan struct{}) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		wake := c.next(next)
		if wake == nil {
			return nil
		}
		select {
		case <-wake:
		case <-timer.C:
			c.giveUp()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *company) next(next func() <-chan struct{}) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inVain {
		return nil
	}
	return next()
}
