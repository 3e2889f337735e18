package script

import (
	"testing"
	"time"
)

// LowerLeftBehind has a step without end left behind sooner, until the test has ended.
func LowerLeftBehind(t *testing.T, to time.Duration) {
	was := leftBehind
	leftBehind = to
	t.Cleanup(func() { leftBehind = was })
}
