package tape

import (
	"testing"
	"testing/synctest"
	"time"
)

// The clock says what time.Now says, at every step across the borders of the wall clock's milliseconds and of its own.
func TestClockIsThatOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Microsecond) // so that the two borders lie apart
		c, begun := newClock(), time.Now()
		for range 5000 {
			wall, mono := c.now()
			now := time.Now()
			if wall != now.UnixMilli() || mono != now.Sub(begun).Milliseconds() {
				t.Fatalf("after %v: %d and %d ms, want %d and %d", now.Sub(begun), wall, mono, now.UnixMilli(), now.Sub(begun).Milliseconds())
			}
			time.Sleep(977 * time.Nanosecond)
		}
	})
}
