package exchange

import "testing"

// TestWakesOnce: who waits for as many members as there are is not woken for each one that comes.
func TestWakesOnce(t *testing.T) {
	c := &company{joined: make(map[int]chan struct{})}
	few, all := c.untilJoined(2), c.untilJoined(4)
	if c.untilJoined(4) != all {
		t.Error("two that wait for the same wait apart")
	}
	for given := 1; given <= 4; given++ {
		c.join()
		if isClosed(few) != (given >= 2) || isClosed(all) != (given >= 4) {
			t.Errorf("of %d: %t for two, %t for four", given, isClosed(few), isClosed(all))
		}
	}
	if c.untilJoined(4) != nil || len(c.joined) > 0 {
		t.Errorf("something waits still: %v", c.joined)
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
