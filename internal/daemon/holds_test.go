package daemon

import (
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// TestATimerThatFiresLateEndsNoLaterGrace lets the timer of a grace that was broken off come when the next one runs.
func TestATimerThatFiresLateEndsNoLaterGrace(t *testing.T) {
	given := 0
	h := newHolds(time.Hour, func(runtrace.ID) { given++ })
	id, s := runtrace.ID{Agent: "a", Run: "r"}, new(session)
	h.take(id, s)
	h.release(id, s)
	first := h.runs[id].graces
	h.take(id, s)
	h.release(id, s)
	if h.over(id, h.runs[id], first); given != 0 {
		t.Error("the run was given up within its grace")
	}
	if h.over(id, h.runs[id], h.runs[id].graces); given != 1 || h.len() != 0 {
		t.Errorf("given up %d times, %d held", given, h.len())
	}
}

// TestAStartThatFailedTakesNobodysHold lets two connections start a run at once, of which one comes to an error.
func TestAStartThatFailedTakesNobodysHold(t *testing.T) {
	h := newHolds(time.Hour, func(runtrace.ID) {})
	id, one, two := runtrace.ID{Agent: "a", Run: "r"}, new(session), new(session)
	if h.take(id, one) || !h.take(id, two) {
		t.Fatal("who was first?")
	}
	if h.drop(id, one); h.len() != 1 {
		t.Error("the other holds it no longer")
	}
	if h.drop(id, two); h.len() != 0 {
		t.Error("nobody holds it, and it is there")
	}
}
