package exchange

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestOverlap sees which requests of a queue were under way together.
func TestOverlap(t *testing.T) {
	rec := func(g uint64, endedMS int64, chunks ...tape.Chunk) *Recorded {
		return &Recorded{g: g, endedMS: endedMS, Exchange: &tape.Exchange{Stream: chunks}}
	}
	for name, tt := range map[string]struct {
		by   []*Recorded // arrival
		want bool
	}{
		"one after another":               {[]*Recorded{rec(2, 5, tape.Chunk{G: 1, TMS: 3}), rec(4, 9, tape.Chunk{G: 3, TMS: 4})}, false},
		"the second ended first":          {[]*Recorded{rec(4, 9), rec(2, 5)}, true},
		"the second began to come before": {[]*Recorded{rec(3, 5, tape.Chunk{G: 1}), rec(4, 5, tape.Chunk{G: 2})}, true},
		"the second was asked before":     {[]*Recorded{rec(2, 50, tape.Chunk{G: 1}), rec(4, 90, tape.Chunk{G: 3, TMS: 60})}, true},
		"a tape without times":            {[]*Recorded{rec(0, 0), rec(0, 0)}, false},
	} {
		q := newQueue()
		q.All = tt.by
		if got := q.overlap(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
