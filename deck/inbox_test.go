package deck

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// TestChildEnds: a child that may end holds up others until it is gone; one that is killed while it waits, and a run that is over, hold up nobody.
func TestChildEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := new(jail.Program) // a parent that has nothing to do
		i, first, killed, last := newInbox(nil), make(chan struct{}), make(chan struct{}), make(chan struct{})
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
