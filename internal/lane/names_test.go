package lane

import "testing"

// TestNames sees what a match teaches, and that a later one unteaches nothing.
func TestNames(t *testing.T) {
	var n Names
	learn := func(was, now []string) { n.Learn(was, now, false) }
	learn([]string{"u1", "c"}, []string{"w1", "c"})
	learn([]string{"u1"}, []string{"w2"})       // u1 is taken
	learn([]string{"u3"}, []string{"w1"})       // w1 is known
	learn([]string{"u4"}, []string{"w4", "w5"}) // nothing stands in the same place
	for now, want := range map[string]string{"w1": "u1", "c": "c", "w2": "w2", "w4": "w4"} {
		if got := n.Recorded(now); got != want {
			t.Errorf("%s stands for %s, want %s", now, got, want)
		}
	}
}
