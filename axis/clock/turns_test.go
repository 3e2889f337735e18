package clock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
)

// inTime fails a test whose branches wait for each other for ever. Everything runs in a bubble, in which nobody can.
func inTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// steps notes its name, sleeps, and notes it again, for each duration.
func steps(j *journal, name string, each ...time.Duration) ctxFunc {
	return func(ctx context.Context) error {
		j.note(name)
		for _, d := range each {
			if err := j.c.Sleep(ctx, d); err != nil {
				j.note(name + ": " + err.Error())
				return err
			}
			j.note(name)
		}
		return nil
	}
}

func TestTurnsGoByTimeThenByPath(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		err := c.Parallel(t.Context(),
			steps(j, "[0]", 20*ms, 0, 20*ms),
			func(ctx context.Context) error {
				defer j.note("[1] is over")
				return c.Parallel(ctx, steps(j, "[1 0]", 20*ms), steps(j, "[1 1]", 10*ms, 20*ms), steps(j, "[1 2]"))
			},
			steps(j, "[2]", 10*ms, 10*ms, 20*ms))
		if err != nil {
			t.Fatal(err)
		}
		j.note("all")
		j.want(t, "0 [0]", "0 [1 0]", "0 [1 1]", "0 [1 2]", "0 [2]", "10 [1 1]", "10 [2]",
			"20 [0]", "20 [0]", "20 [1 0]", "20 [2]", "30 [1 1]", "30 [1] is over", "40 [0]", "40 [2]", "40 all")
	})
}

func TestTimersFireBeforeTheBranchesThatAreDue(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		err := c.Parallel(t.Context(), steps(j, "a", 10*ms), func(ctx context.Context) error {
			c.AfterFunc(10*ms, j.noter("timer"))
			c.AfterFunc(5*ms, func() { // its context is that of a branch which waits
				if err := c.Wait(ctx, 2*ms); err != nil {
					t.Error(err)
				}
				j.note("waited itself")
				if err := c.Wait(ctx, 13*ms); err != nil {
					t.Error(err)
				}
			})
			return steps(j, "b", 10*ms)(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		j.want(t, "0 a", "0 b", "7 waited itself", "10 timer", "20 a", "20 b")
	})
}

var errOf = func(i int) error { return fmt.Errorf("branch %d failed", i) }

func TestTheFirstErrorByBranchOrderAndTheOthersAreCancelled(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c, _, lines := taped(t, nil)
		j := &journal{c: c}
		begun := false
		err := c.Parallel(t.Context(),
			steps(j, "sleeper", time.Hour),
			func(ctx context.Context) error { // fails too once it is cancelled, by itself
				_ = c.Sleep(ctx, time.Hour)
				return errOf(1)
			},
			func(ctx context.Context) error {
				if err := c.Sleep(ctx, 10*ms); err != nil {
					return err
				}
				return errOf(2)
			},
			func(ctx context.Context) error { return c.Wait(ctx, 5*ms) })
		if err == nil || err.Error() != errOf(1).Error() {
			t.Errorf("error %v", err)
		}
		j.want(t, "0 sleeper", "10 sleeper: context canceled")
		if got := lines(); strings.Count(got, `"duration_ms":10}`) != 3 {
			t.Errorf("the sleeps were as long as they were:\n%s", got)
		}
		err = c.Parallel(t.Context(), func(context.Context) error { return errOf(0) },
			func(context.Context) error { begun = true; return nil })
		if err == nil || err.Error() != errOf(0).Error() || begun {
			t.Errorf("error %v, the second branch begun: %v", err, begun)
		}
	})
}

func TestTheCallersContextEndsAllBranches(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		ctx, cancel := c.WithTimeout(t.Context(), 15*ms)
		defer cancel()
		err := c.Parallel(ctx, steps(j, "a", 20*ms), steps(j, "b", 10*ms, 10*ms))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		j.want(t, "0 a", "0 b", "10 b", "15 a: context deadline exceeded", "15 b: context deadline exceeded")
		if err := c.Parallel(ctx, steps(j, "never")); !errors.Is(err, context.DeadlineExceeded) || len(j.lines) != 5 {
			t.Errorf("error %v, %v", err, j.lines)
		}
	})
}

func TestACancelledBranchGoesOnAtThePresentTime(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Parallel(ctx, steps(j, "a", time.Hour), func(ctx context.Context) error {
			cancel()
			j.note("cancelled")
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		j.want(t, "0 a", "0 cancelled", "0 a: context canceled")
	})
}

func TestAPanicComesOutOfParallel(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		cause := errors.New("the cause")
		defer func() {
			p, _ := recover().(*clock.Panic)
			if p == nil || !errors.Is(p, cause) || fmt.Sprint(p.Branch) != "[1 0]" {
				t.Errorf("recovered %v", p)
			} else if !strings.Contains(p.Error(), "TestAPanicComesOutOfParallel") {
				t.Errorf("the stack is not that of the branch:\n%s", p.Stack)
			}
			j.want(t, "0 a", "10 a: context canceled")
		}()
		_ = c.Parallel(t.Context(), steps(j, "a", time.Hour), func(ctx context.Context) error {
			return c.Parallel(ctx, func(ctx context.Context) error {
				_ = c.Sleep(ctx, 10*ms)
				panic(cause)
			})
		})
		t.Error("Parallel returned")
	})
}

func TestGoexitOfABranchIsTheCallers(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		returned := false
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Parallel(t.Context(), steps(j, "a", time.Hour), func(ctx context.Context) error {
				_ = c.Sleep(ctx, 10*ms)
				runtime.Goexit() // what t.FailNow does
				return nil
			})
			returned = true
		}()
		<-done
		if returned {
			t.Error("Parallel returned")
		}
		j.want(t, "0 a", "10 a: context canceled")
	})
}

func TestGoexitOfATimersFunctionEndsNobodysTurn(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		c.AfterFunc(5*ms, runtime.Goexit)
		if err := c.Parallel(t.Context(), steps(j, "a", 10*ms), steps(j, "b", 10*ms)); err != nil {
			t.Error(err)
		}
		j.want(t, "0 a", "0 b", "10 a", "10 b")
	})
}

func TestNobodysGoroutineMovesAPausedClockAtOnce(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		err := c.Parallel(t.Context(), steps(j, "late", 10*ms), func(context.Context) error {
			done := make(chan error)
			go func() { done <- c.Sleep(t.Context(), 30*ms) }() // it waits for the goroutine, and the goroutine for no turn
			return <-done
		}, steps(j, "later", 10*ms))
		if err != nil {
			t.Error(err)
		}
		j.want(t, "0 late", "30 later", "30 late", "40 later")
	})
}

func TestTheContextOfABranchThatIsOverIsNobodys(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		var left context.Context
		if err := c.Parallel(t.Context(), func(ctx context.Context) error { left = context.WithoutCancel(ctx); return nil }); err != nil {
			t.Fatal(err)
		}
		if err := c.Parallel(left, sleeper(c, 10), sleeper(c, 10)); err != nil {
			t.Error(err)
		}
		if err := c.Sleep(left, 10*ms); err != nil || c.Monotonic() != 20*ms {
			t.Errorf("%v at %v", err, c.Monotonic())
		}
	})
}

func TestTheContextOfABranchThatIsOverIsNobodysInItsGroup(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		var left context.Context
		err := c.Parallel(t.Context(), func(ctx context.Context) error { left = ctx; return nil }, steps(j, "late", 10*ms),
			func(context.Context) error {
				done := make(chan error)
				go func() { done <- c.Sleep(left, 30*ms) }()
				return <-done
			})
		if err != nil {
			t.Error(err)
		}
		j.want(t, "0 late", "30 late")
	})
}

func TestAGoroutineOfABranchKeepsTheTurnsWhole(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		branch := func(ctx context.Context) error { // two goroutines wait with one branch's context
			done := make(chan error)
			go func() { done <- c.Sleep(ctx, 20*ms) }()
			err := c.Sleep(ctx, 10*ms)
			return errors.Join(err, <-done)
		}
		if err := c.Parallel(t.Context(), branch, branch, branch); err != nil {
			t.Error(err)
		}
	})
}

func TestParallelOfNothing(t *testing.T) {
	if err := clock.New(nil).Parallel(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestARealClockIsTheBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, lines := taped(t, &clock.Options{Real: true})
		if c.Paused() || !c.Start().Equal(time.Now()) {
			t.Errorf("starts at %v, it is %v", c.Start(), time.Now())
		}
		j := &journal{c: c}
		c.AfterFunc(15*ms, j.noter("timer"))
		begun := time.Now()
		err := c.Parallel(t.Context(), steps(j, "a", 10*ms, 20*ms), func(ctx context.Context) error {
			err := c.Outside(ctx, func() error { time.Sleep(25 * ms); return nil })
			j.note("back")
			return err
		}, func(ctx context.Context) error {
			ctx, cancel := c.WithTimeout(ctx, 5*ms)
			defer cancel()
			err := c.Sleep(ctx, time.Hour)
			j.note(err.Error())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		j.want(t, "0 a", "5 context deadline exceeded", "10 a", "15 timer", "25 back", "30 a")
		if took := time.Since(begun); took != 30*ms {
			t.Errorf("took %v", took)
		}
		if got := lines(); strings.Count(got, "\n") != 3 || !strings.Contains(got, `"virtual_time_ms":946684800030,"monotonic_ms":30,"kind":{"kind":"clock_sleep","duration_ms":20}`) {
			t.Errorf("on the tape\n%s", got)
		}
	})
}

func TestWithARealClockOneBranchRunsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(&clock.Options{Real: true, Start: clock.Epoch})
		j := &journal{c: c}
		busy := func(name string, first time.Duration) ctxFunc {
			return func(ctx context.Context) error {
				if err := c.Wait(ctx, first); err != nil { // so that nobody has the turn for a while
					return err
				}
				for range 2 {
					j.note(name)
					time.Sleep(5 * ms) // the clock knows nothing of it
					j.note(name + " waits")
					if err := c.Sleep(ctx, ms); err != nil {
						return err
					}
				}
				return nil
			}
		}
		if err := c.Parallel(t.Context(), steps(j, "x", 14*ms, 4*ms), busy("a", ms), busy("b", 2*ms)); err != nil {
			t.Fatal(err)
		}
		j.want(t, "0 x", "1 a", "6 a waits", "6 b", "11 b waits", "11 a", "16 a waits", "16 b", "21 b waits", "21 x", "25 x")
		if now := c.Now(); !now.Equal(clock.Epoch.Add(25 * ms)) {
			t.Errorf("the clock that began at %v says %v", clock.Epoch, now)
		}
	})
}

func TestARealClockInTheOpen(t *testing.T) {
	c := clock.New(&clock.Options{Real: true})
	shared := 0 // one branch has the turn: the race detector looks
	var all []ctxFunc
	for i := range 32 {
		all = append(all, func(ctx context.Context) error {
			for k := range 10 {
				shared++
				if err := c.Sleep(ctx, time.Duration(i*k%3)*time.Microsecond); err != nil {
					return err
				}
				shared++
				if err := c.Outside(ctx, func() error { runtime.Gosched(); return nil }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := c.Parallel(t.Context(), all...); err != nil || shared != 640 {
		t.Errorf("%v, %d of 640", err, shared)
	}
}

func TestARealClocksBranchIsCancelledWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(&clock.Options{Real: true})
		begun := time.Now()
		err := c.Parallel(t.Context(), sleeper(c, 3_600_000), func(ctx context.Context) error {
			_ = c.Sleep(ctx, 10*ms)
			return errOf(1)
		})
		if err == nil || err.Error() != errOf(1).Error() || time.Since(begun) != 10*ms {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

func TestARealTickerAndTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New(&clock.Options{Real: true})
		ticker, timer := c.NewTicker(10*ms), c.NewTimer(25*ms)
		stopped := c.NewTimer(15 * ms)
		for i := range 3 {
			if got := <-ticker.C; !got.Equal(c.Start().Add(time.Duration(i+1) * 10 * ms)) {
				t.Errorf("tick %v", got)
			}
			if i == 0 && !stopped.Stop() {
				t.Error("Stop says false")
			}
		}
		if got := <-timer.C; !got.Equal(c.Start().Add(25 * ms)) {
			t.Errorf("the timer gave %v", got)
		}
		time.Sleep(15 * ms)
		ticker.Stop()
		time.Sleep(50 * ms)
		if len(ticker.C) != 0 || len(stopped.C) != 0 {
			t.Error("fired after Stop")
		}
	})
}

func TestOutsideOfAPausedClock(t *testing.T) {
	inTime(t, func(t *testing.T) {
		c := clock.New(nil)
		j := &journal{c: c}
		err := c.Parallel(t.Context(), func(ctx context.Context) error {
			return c.Outside(ctx, func() error { time.Sleep(time.Hour); j.note("back"); return errOf(0) })
		}, steps(j, "b"))
		if err == nil || err.Error() != errOf(0).Error() {
			t.Error(err)
		}
		j.want(t, "0 back")
	})
}
