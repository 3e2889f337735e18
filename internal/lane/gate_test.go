package lane

import (
	"testing"
	"testing/synctest"
	"time"
)

// waitFor waits for one thing, for limit at most.
func waitFor(t *testing.T, g *Gate[string], what string, limit time.Duration) {
	until := time.Now().Add(limit)
	err := g.Await(t.Context(), func(at func(string) time.Time) *Missing[string] {
		if !at(what).IsZero() {
			return nil
		}
		return &Missing[string]{What: what, Until: until, Why: what}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestGateWakesWhomItConcerns: who waits for one thing is not woken by another. Of a thousand that wait, waking all for each thing that
// happens would be half a million times.
func TestGateWakesWhomItConcerns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate[string](time.Second, nil)
		looked := 0
		go func() {
			_ = g.Await(t.Context(), func(at func(string) time.Time) *Missing[string] {
				if looked++; at("b").IsZero() {
					return &Missing[string]{What: "b", Until: time.Now().Add(time.Hour)}
				}
				return nil
			})
		}()
		synctest.Wait()
		for _, what := range []string{"a", "c", "a"} {
			g.Happened(what)
			synctest.Wait()
		}
		if looked != 1 {
			t.Errorf("looked %d times before it happened", looked)
		}
		g.Happened("b")
		synctest.Wait()
		if looked != 2 || len(g.waited) > 0 {
			t.Errorf("looked %d times; waited for %v", looked, g.waited)
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
		err := g.Await(t.Context(), func(at func(string) time.Time) *Missing[string] {
			since := begun
			if before := at("before"); !before.IsZero() {
				since = before
			}
			return &Missing[string]{What: "it", Until: since.Add(5 * time.Second)}
		})
		if took := time.Since(begun); err != nil || took != 6*time.Second {
			t.Errorf("waited for %v: %v", took, err)
		}
	})
}
