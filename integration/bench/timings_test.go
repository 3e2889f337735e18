package bench

import (
	"fmt"
	"slices"
	"time"
)

// timings are how long the runs of one program took, in ns.
type timings []float64

func (ts timings) median() float64 { return median(ts) }

// String tells the median and, where there are several, how far they lie apart: that is what the machine's noise makes.
func (ts timings) String() string {
	if len(ts) < 2 {
		return duration(ts.median())
	}
	return fmt.Sprintf("%s (%s to %s)", duration(ts.median()), duration(slices.Min(ts)), duration(slices.Max(ts)))
}

// alternate runs each of some programs n times, in turn, after once that does not count.
func alternate(n int, programs ...func() (time.Duration, error)) ([]timings, error) {
	all := make([]timings, len(programs))
	for round := range n + 1 {
		for i, run := range programs {
			took, err := run()
			if err != nil {
				return nil, err
			}
			if round > 0 {
				all[i] = append(all[i], float64(took))
			}
		}
	}
	return all, nil
}
