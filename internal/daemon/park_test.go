package daemon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

// What nobody decides is denied when its time is over, which an escalation begins anew; so is what finds no room.
func TestWhatNobodyDecidesIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSupervision(30*time.Second, 1)
		began := time.Now()
		in := new(intent)
		decided := make(chan rpcapi.Decision)
		go func() { decided <- v.park(t.Context(), in) }()
		synctest.Wait()
		if d := v.park(t.Context(), new(intent)); d.Kind != rpcapi.DecisionDeny || d.Reason != "too much waits for a decision" {
			t.Fatalf("no room: %+v", d)
		}
		time.Sleep(20 * time.Second)
		if !v.escalate(in.IntentID, "to whom it may concern") {
			t.Fatal("not escalated")
		}
		d := <-decided
		if d.Kind != rpcapi.DecisionDeny || d.Reason != "nobody decided within 30s" || time.Since(began) != 50*time.Second {
			t.Fatalf("%+v after %v", d, time.Since(began))
		}
		if v.take(in.IntentID) != nil || v.escalate(in.IntentID, "") {
			t.Fatal("it waits on")
		}
	})
}
