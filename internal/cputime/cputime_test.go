package cputime

import "testing"

// TestSpent works until time was spent, which a clock that stands never comes to.
func TestSpent(t *testing.T) {
	begun := Spent()
	for n := 0; Spent() <= begun; n++ {
		if n == 1<<30 {
			t.Fatal("no time was spent")
		}
	}
}
