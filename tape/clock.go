package tape

import "time"

// A clock is that of this machine, in ms. Records often come by the thousand in a millisecond, so the system is asked for
// the wall clock again only when one of the two times is another by now: else for the time since begun alone.
type clock struct {
	begun      time.Time
	wall, mono int64         // of the last look at both
	until      time.Duration // since begun: from then on one of them is another
}

// newClock returns a clock whose monotonic part begins now.
func newClock() *clock { return &clock{begun: time.Now()} }

// now is RecorderOptions.Now. It is for one goroutine at a time.
func (c *clock) now() (wallMS, monotonicMS int64) {
	if time.Since(c.begun) >= c.until {
		c.look()
	}
	return c.wall, c.mono
}

func (c *clock) look() {
	const ms = time.Millisecond
	t := time.Now()
	since := t.Sub(c.begun)
	c.wall, c.mono = t.UnixMilli(), since.Milliseconds()
	c.until = since + min(ms-time.Duration(t.Nanosecond())%ms, ms-since%ms)
}
