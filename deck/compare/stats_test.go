package compare

import (
	"math"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 5e-4*math.Max(1, math.Abs(b)) }

// TestStudent holds the quantiles to published ones.
func TestStudent(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.7062, 9: 2.2622, 30: 2.0423, 31: 2.0395, 40: 2.0211, 60: 2.0003, 120: 1.9799, 99: 1.9842} {
		if got := student(freedom); !near(got, want) {
			t.Errorf("%d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

func TestSample(t *testing.T) {
	s := sampleOf([]float64{2, 4, 4, 4, 5, 5, 7, 9}) // mean 5, standard deviation sqrt(32/7)
	if s.Mean != 5 || !near(s.Spread, 2.13809) || !near(*s.Low, 3.2125) || !near(*s.High, 6.7875) {
		t.Errorf("%v ± %v, %v to %v", s.Mean, s.Spread, *s.Low, *s.High)
	}
	if one := sampleOf([]float64{3}); one.Mean != 3 || one.Low != nil {
		t.Errorf("one run: %+v", one)
	}
}

// TestRate: Wilson's interval, of 8 in 10 and of all in 5 (Wilson 1927, as every table has them).
func TestRate(t *testing.T) {
	for _, tt := range []struct {
		held, of  int
		low, high float64
	}{{8, 10, 0.4902, 0.9433}, {5, 5, 0.5655, 1}, {0, 5, 0, 0.4345}, {50, 100, 0.4038, 0.5962}} {
		if s := rateOf(tt.held, tt.of); !near(*s.Low, tt.low) || !near(*s.High, tt.high) {
			t.Errorf("%d of %d: %v to %v, want %v to %v", tt.held, tt.of, *s.Low, *s.High, tt.low, tt.high)
		}
	}
}

// TestApart: Welch's interval, and Newcombe's (1998, table II: 56 of 70 less 48 of 80 is 0.0524 to 0.3339).
func TestApart(t *testing.T) {
	low, high, ok := apart(sampleOf([]float64{1, 2, 3, 4}), sampleOf([]float64{11, 12, 13, 14}))
	if !ok || !near(low, 7.7663) || !near(high, 12.2337) {
		t.Errorf("Welch: %v to %v", low, high)
	}
	low, high = ratesApart(rateOf(48, 80), rateOf(56, 70))
	if !near(low, 0.0524) || !near(high, 0.3339) {
		t.Errorf("Newcombe: %v to %v", low, high)
	}
	if _, _, ok := apart(sampleOf([]float64{1}), sampleOf([]float64{2})); ok {
		t.Error("two single runs have no interval")
	}
	low, high, ok = apart(sampleOf([]float64{3}), sampleOf([]float64{1, 2, 3, 4}))
	if half := 3.1824 * 1.2910 * math.Sqrt(1.25); !ok || !near(low, -0.5-half) || !near(high, -0.5+half) {
		t.Errorf("of one run: %v to %v", low, high)
	}
}

func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		better    bool
		want      Verdict
	}{{-1, 1, false, Noise}, {0, 0, false, Noise}, {0.5, 1, false, Regression}, {-1, -0.5, false, Improvement}, {0.1, 0.2, true, Improvement}, {-0.2, -0.1, true, Regression}} {
		if got := verdictOf(tt.low, tt.high, tt.better); got != tt.want {
			t.Errorf("%v to %v: %s, want %s", tt.low, tt.high, got, tt.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	if got := numbers([]int{1, 3, 4, 5, 7, 8}); got != "1, 3 to 5, 7, 8" {
		t.Error(got)
	}
}
