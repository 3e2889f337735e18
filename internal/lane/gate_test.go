package lane

import (
	"testing"
	"testing/synctest"
	"time"
)

// waitFor waits for one thing, for limit at most.
func waitFor(t *testing.T, g *Gate[string], what string, limit time.Duration) {
	if err := g.Await(t.Context(), []Condition[string]{{What: what, Since: time.Now(), For: limit, Why: what}}); err != nil {
		t.Error(err)
	}
}

// looking is a clock that counts how often somebody begins to wait.
type looking struct {
	realClock
	n int
}

func (c *looking) Timer(d time.Duration) (<-chan time.Time, func()) {
	c.n++
	return c.realClock.Timer(d)
}

// TestGateWakesWhomItConcerns: who waits for one thing is not woken by another. Of a thousand that wait, waking all for each thing that
// happens would be half a million times.
func TestGateWakesWhomItConcerns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := new(looking)
		g := NewGate[string](time.Second, looks)
		go waitFor(t, g, "b", time.Hour)
		synctest.Wait()
		for _, what := range []string{"a", "c", "a"} {
			g.Happened(what)
			synctest.Wait()
		}
		if looks.n != 1 {
			t.Errorf("looked %d times before it happened", looks.n)
		}
		g.Happened("b")
		synctest.Wait()
		if looks.n != 1 || len(g.waited) > 0 {
			t.Errorf("waited %d times; waits for %v", looks.n, g.waited)
		}
	})
}

// TestGateOpens: a wait in vain ends all others, and says why.
func TestGateOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, begun := NewGate[string](time.Second, nil), time.Now()
		go waitFor(t, g, "long", time.Hour)
		waitFor(t, g, "short", time.Minute)
		synctest.Wait()
		if took := time.Since(begun); took != time.Minute || len(g.Missed()) != 1 || g.Missed()[0] != "short" {
			t.Errorf("after %v: %q", took, g.Missed())
		}
		waitFor(t, g, "other", time.Hour)
		if took := time.Since(begun); took != time.Minute || g.Since("short") != Forever {
			t.Errorf("waited in an open gate until %v", took)
		}
	})
}

// TestGateGivesMoreTime: what happens may move the limit of what is waited for, though it is not that.
func TestGateGivesMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, begun := NewGate[string](time.Second, nil), time.Now()
		time.AfterFunc(time.Second, func() { g.Happened("before") })
		err := g.Await(t.Context(), []Condition[string]{{What: "it", From: "before", Since: begun, For: 5 * time.Second}})
		if took := time.Since(begun); err != nil || took != 6*time.Second {
			t.Errorf("waited for %v: %v", took, err)
		}
	})
}

// TestGateReacts: what waits for something waits a while longer, and what has no time to be waited from is not waited for.
func TestGateReacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, begun := NewGate[string](time.Second, nil), time.Now()
		time.AfterFunc(time.Second, func() { g.Happened("it") })
		err := g.Await(t.Context(), []Condition[string]{{What: "never", From: "before", For: time.Hour}, {What: "it", Since: begun, For: time.Hour, React: time.Second}})
		if took := time.Since(begun); err != nil || took != 2*time.Second {
			t.Errorf("waited for %v: %v", took, err)
		}
	})
}

// TestGateChances: who was waited for in vain as often as he may be is waited for no more; another one is, and what comes of him counts.
func TestGateChances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, begun := NewGate[string](time.Second, nil), time.Now()
		waits := func(what, by string, want time.Duration) {
			t.Helper()
			since := time.Now()
			err := g.Await(t.Context(), []Condition[string]{{What: what, Since: since, For: time.Second, Chances: 2, By: by, Why: what}})
			if took := time.Since(since); took != want || err != nil {
				t.Errorf("waited %v for %s of %s, want %v; %v", took, what, by, want, err)
			}
		}
		waits("a", "one", time.Second)
		waits("a", "one", 0) // nobody waits for it again
		go func() { time.Sleep(time.Second / 2); waits("c", "one", time.Second/2) }()
		waits("b", "one", time.Second) // and so does who waits for another thing of his
		waits("d", "one", 0)
		waits("e", "two", time.Second)
		if took := time.Since(begun); took != 3*time.Second || len(g.Missed()) > 0 || g.Past("a") {
			t.Errorf("after %v: %q, %v", took, g.Missed(), g.Past("a"))
		}
		if g.Happened("a"); !g.Past("a") {
			t.Error("what came late has not come")
		}
	})
}
