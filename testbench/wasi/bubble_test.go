package wasi_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestInABubble: modules run in a bubble of testing/synctest, on a clock that stands still and on the bubble's own, which is the real one
// there.
func TestInABubble(t *testing.T) {
	goModule(t)
	run(t, nil, nil, "nothing").ended(t) // compiled outside, run inside
	for name, c := range map[string]*testbench.Config{"paused": {}, "real": {Clock: testbench.Clock{Real: true}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				run(t, c, nil, "sleep", "30s").ended(t)
				if took := time.Since(began); (took >= 30*time.Second) != c.Clock.Real {
					t.Errorf("the bubble's clock moved by %v", took)
				}
			})
		})
	}
}
