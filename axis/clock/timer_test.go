package clock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
)

const ms = time.Millisecond

// journal is a list of what happened, with the clock's own time.
type journal struct {
	c *clock.Clock

	mu    sync.Mutex // a real clock's timer notes beside a branch
	lines []string
}

func (j *journal) note(what string) {
	_, mono := j.c.Stamp()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf("%d %s", mono, what))
}

func (j *journal) noter(what string) func() { return func() { j.note(what) } }

func (j *journal) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(j.lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(j.lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestTimersFireByDueTimeThenByCreation(t *testing.T) {
	c := clock.New(nil)
	j := &journal{c: c}
	c.AfterFunc(30*ms, j.noter("c"))
	c.AfterFunc(10*ms, j.noter("a"))
	c.AfterFunc(30*ms, j.noter("d"))
	stopped := c.AfterFunc(20*ms, j.noter("never"))
	c.AfterFunc(-ms, j.noter("at once"))
	c.AfterFunc(math.MaxInt64, j.noter("past the end"))
	c.AfterFunc(15*ms, func() {
		j.note("b")
		if !stopped.Stop() || stopped.Stop() {
			t.Error("Stop does not say what it did")
		}
		c.AfterFunc(5*ms, j.noter("set on the way"))
	})
	if err := c.Sleep(t.Context(), 30*ms); err != nil {
		t.Fatal(err)
	}
	j.note("awake")
	j.want(t, "0 at once", "10 a", "15 b", "20 set on the way", "30 c", "30 d", "30 awake")
}

func TestResetIsAsInPackageTime(t *testing.T) {
	c := clock.New(nil)
	j := &journal{c: c}
	timer := c.AfterFunc(10*ms, j.noter("fired"))
	if !timer.Reset(20 * ms) {
		t.Error("Reset of an active timer says false")
	}
	wait(t, c, 15*ms)
	j.note("15 are over")
	wait(t, c, 10*ms)
	if timer.Reset(ms) {
		t.Error("Reset of a timer that fired says true")
	}
	wait(t, c, ms)
	j.want(t, "15 15 are over", "20 fired", "26 fired")
}

func wait(t *testing.T, c *clock.Clock, d time.Duration) {
	t.Helper()
	if err := c.Wait(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func TestAChannelTimerGivesItsDueTimeOnce(t *testing.T) {
	c := clock.New(nil)
	timer := c.NewTimer(10 * ms)
	after := c.After(20 * ms)
	wait(t, c, 50*ms)
	if got := <-timer.C; !got.Equal(clock.Epoch.Add(10 * ms)) {
		t.Errorf("the timer gave %v", got)
	}
	if got := <-after; !got.Equal(clock.Epoch.Add(20 * ms)) {
		t.Errorf("After gave %v", got)
	}
	if timer.Stop() {
		t.Error("stopped what was over")
	}
	timer.Reset(ms)
	wait(t, c, 10*ms)
	if !timer.Stop() || len(timer.C) != 0 {
		t.Error("a time can be received after Stop")
	}
}

func TestATickerDropsWhatNobodyReceives(t *testing.T) {
	c := clock.New(nil)
	ticker := c.NewTicker(10 * ms)
	wait(t, c, 10*ms)
	if got := <-ticker.C; !got.Equal(clock.Epoch.Add(10 * ms)) {
		t.Errorf("first tick %v", got)
	}
	var seen []time.Time
	c.AfterFunc(45*ms, func() { seen = append(seen, <-ticker.C) }) // at 55
	begun := time.Now()
	wait(t, c, 25*time.Hour)
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("nine million ticks took %v", took)
	}
	seen = append(seen, <-ticker.C)
	want := []time.Time{clock.Epoch.Add(20 * ms), clock.Epoch.Add(60 * ms)}
	if !slices.Equal(seen, want) {
		t.Errorf("ticks at %v", seen)
	}
	ticker.Reset(7 * ms)
	wait(t, c, 8*ms)
	if got := <-ticker.C; !got.Equal(clock.Epoch.Add(25*time.Hour + 17*ms)) {
		t.Errorf("after Reset %v", got)
	}
	ticker.Stop()
	wait(t, c, 100*ms)
	if len(ticker.C) != 0 {
		t.Error("a tick after Stop")
	}
	defer func() {
		if recover() == nil {
			t.Error("a ticker without a period")
		}
	}()
	c.NewTicker(0)
}

func TestATimeoutEndsASleepAtItsTime(t *testing.T) {
	c, _, lines := taped(t, nil)
	ctx, cancel := c.WithTimeout(t.Context(), 1500*ms)
	defer cancel()
	below, cancelBelow := context.WithCancel(ctx)
	defer cancelBelow()
	if _, ok := ctx.Deadline(); ok {
		t.Error("tells a deadline to whoever counts in the host's time")
	}
	if err := c.Sleep(below, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sleep: %v", err)
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(below), context.DeadlineExceeded) {
		t.Errorf("the context says %v, what is below %v", ctx.Err(), context.Cause(below))
	}
	if err := c.Sleep(below, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second Sleep: %v", err)
	}
	if got := lines(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"duration_ms":1500`) {
		t.Errorf("on the tape\n%s", got)
	}
}

func TestATimeoutThatIsCancelledNeverComes(t *testing.T) {
	c := clock.New(nil)
	ctx, cancel := c.WithTimeout(t.Context(), 10*ms)
	cancel()
	if err := c.Sleep(ctx, ms); !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep: %v", err)
	}
	wait(t, c, 20*ms)
	if !errors.Is(ctx.Err(), context.Canceled) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		t.Errorf("says %v", ctx.Err())
	}
	over, cancel := c.WithDeadline(t.Context(), clock.Epoch)
	defer cancel()
	if !errors.Is(over.Err(), context.DeadlineExceeded) {
		t.Errorf("a deadline in the past: %v", over.Err())
	}
	later, cancel := c.WithDeadline(t.Context(), clock.Epoch.Add(30*ms))
	defer cancel()
	if err := c.Sleep(later, 10*ms); err != nil { // due when the timeout is: it was slept to its end
		t.Errorf("a sleep until the deadline: %v", err)
	}
	if !errors.Is(later.Err(), context.DeadlineExceeded) {
		t.Errorf("at its deadline: %v", later.Err())
	}
}

func TestAWaitTellsWhyItWasCancelled(t *testing.T) {
	why := errors.New("the script took too long")
	for _, o := range []*clock.Options{nil, {Real: true}} {
		c := clock.New(o)
		ctx, cancel := context.WithCancelCause(t.Context())
		c.AfterFunc(ms, func() { cancel(why) })
		below, stop := c.WithTimeout(ctx, time.Hour)
		if err := c.Sleep(below, time.Minute); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("Sleep: %v", err)
		}
		if err := below.Err(); err != context.Canceled {
			t.Errorf("the context says %v", err)
		}
		stop()
	}
}

func TestWaitsThatAreNone(t *testing.T) {
	c, _, lines := taped(t, nil)
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		if err := c.Sleep(t.Context(), d); err != nil {
			t.Errorf("Sleep(%d): %v", d, err)
		}
		wait(t, c, d)
	}
	if got := lines(); strings.Count(got, `"monotonic_ms":0,"kind":{"kind":"clock_sleep","duration_ms":0}`) != 3 {
		t.Errorf("on the tape\n%s", got)
	}
	wait(t, c, ms)
	if err := c.Sleep(t.Context(), math.MaxInt64); !errors.Is(err, clock.ErrOverflow) {
		t.Errorf("past the end: %v", err)
	}
	if _, mono := c.Stamp(); mono != 1 {
		t.Errorf("moved to %d", mono)
	}
}

// TestStoppedTickerIsSilent stops a real clock's ticker while it ticks: none of its ticks comes after Stop.
func TestStoppedTickerIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(&clock.Options{Real: true})
		for i := range 2000 {
			k := c.NewTicker(time.Millisecond)
			if i%2 == 0 {
				<-k.C
			} else {
				time.Sleep(time.Millisecond)
			}
			k.Stop()
			time.Sleep(10 * time.Millisecond)
			select {
			case at := <-k.C:
				t.Fatalf("ticker %d ticked at %v, after Stop", i, at)
			default:
			}
		}
	})
}
