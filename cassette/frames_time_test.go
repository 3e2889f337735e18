package cassette_test

import (
	"math"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// TestTimesDoNotTurnOver has times that no duration can hold.
func TestTimesDoNotTurnOver(t *testing.T) {
	before := time.Duration(0)
	for _, ms := range []int64{1, math.MaxInt64 / 1_000_000, math.MaxInt64/1_000_000 + 1, math.MaxInt64} {
		f := cassette.Final{Timed: cassette.Timed{TMS: ms}, DurationMS: ms}
		if f.Time() < before || f.Duration() != f.Time() {
			t.Errorf("%d ms are %v and %v", ms, f.Time(), f.Duration())
		}
		before = f.Time()
	}
}
