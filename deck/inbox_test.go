package deck

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// TestChildEnds: a child that may end holds up others until it is gone; one that is killed while it waits, and a run that is over, hold up nobody.
func TestChildEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := new(jail.Program) // a parent that has nothing to do
		i, first, killed, last := newInbox(), make(chan struct{}), make(chan struct{}), make(chan struct{})
		i.childEnds(t.Context(), nobody, first)
		var came [3]bool
		over, cancel := context.WithCancel(t.Context())
		for n, wait := range []func(){
			func() { i.childEnds(t.Context(), nobody, killed) },
			func() { i.childEnds(over, nobody, last) },
			func() { i.childEnds(t.Context(), nobody, last) },
		} {
			go func() { wait(); came[n] = true }()
		}
		synctest.Wait()
		if came != [3]bool{} {
			t.Errorf("while the first one ends: %v", came)
		}
		close(killed)
		cancel()
		synctest.Wait()
		if came != [3]bool{true, true, false} {
			t.Errorf("after one was killed and the run of one was over: %v", came)
		}
		begun := time.Now()
		close(first)
		synctest.Wait()
		if !came[2] || time.Since(begun) > 0 {
			t.Errorf("after the first one has ended: %v", came)
		}
		close(last)
	})
}

// TestLooked: what is to be looked at is, the next time that the process rests, before it gets what has waited for longer.
func TestLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nobody = 0 // who has nothing to do
		i := newInbox()
		first := i.begin(nobody, "one", true)
		var order []string
		go func() {
			given := i.begin(nobody, "other", true)
			order = append(order, "given")
			given(false)
		}()
		synctest.Wait()
		go i.looked(nobody, func() { order = append(order, "looked") })
		synctest.Wait()
		first(false)
		synctest.Wait()
		if want := []string{"looked", "given"}; !slices.Equal(order, want) {
			t.Errorf("%q, want %q", order, want)
		}
		i.looked(nobody, func() { order = nil })
		if order != nil {
			t.Error("nobody gives anything, and it is not looked at")
		}
	})
}
