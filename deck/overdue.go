package deck

import "time"

// An overdueWhy is why a program was ended.
type overdueWhy int

const (
	overdueNot   overdueWhy = iota // it ended by itself
	overdueLimit                   // its time was up
	overdueStill                   // nothing happened after a refused request
)

// stillLeast is how long nothing happens after a refused request, at least, before the program is taken to wait for what died of it.
const stillLeast = time.Minute

// An overdue says when the program of a replay is ended that does not end by itself: its time is up, or it waits for a part of itself that
// did not survive a refused request. Nil ends none.
type overdue struct {
	limit   time.Duration // of the whole run; 0 for none
	still   time.Duration // without a record after a refusal
	refused func() bool
	records func() int
}

// watch calls end once the program is overdue, until stop, which says why it did.
func (o *overdue) watch(end func()) (stop func() overdueWhy) {
	if o == nil {
		return func() overdueWhy { return overdueNot }
	}
	stopped, why := make(chan struct{}), make(chan overdueWhy, 1)
	go func() {
		reason := o.wait(stopped)
		if reason != overdueNot {
			end()
		}
		why <- reason
	}()
	return func() overdueWhy {
		close(stopped)
		return <-why
	}
}

// wait returns why the program is overdue once it is, or overdueNot once it has ended.
func (o *overdue) wait(ended <-chan struct{}) overdueWhy {
	var limit <-chan time.Time
	if o.limit > 0 {
		limit = time.After(o.limit)
	}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	had, since := o.records(), time.Now()
	for {
		select {
		case <-ended:
			return overdueNot
		case <-limit:
			return overdueLimit
		case <-look.C:
			if n := o.records(); n != had || !o.refused() {
				had, since = n, time.Now()
			} else if time.Since(since) >= o.still {
				return overdueStill
			}
		}
	}
}
