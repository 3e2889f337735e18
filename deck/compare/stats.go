package compare

import "math"

// A Sample is what is known of a number from some runs: mean, spread, and the interval that holds the true mean of 95 in 100 such samples
// (Student's t); of a rate Wilson's. Low and High are null where one run alone is known, or an interval would say nothing.
type Sample struct {
	N      int      `json:"n"`
	Mean   float64  `json:"mean"`
	Spread float64  `json:"spread"` // the standard deviation
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
}

// z is the 97.5th percentile of the normal distribution.
const z = 1.959963984540054

// sampleOf describes numbers; there is one at least.
func sampleOf(values []float64) Sample {
	n := float64(len(values))
	s := Sample{N: len(values)}
	for _, v := range values {
		s.Mean += v / n
	}
	if len(values) < 2 {
		return s
	}
	for _, v := range values {
		s.Spread += (v - s.Mean) * (v - s.Mean) / (n - 1)
	}
	s.Spread = math.Sqrt(s.Spread)
	half := student(len(values)-1) * s.Spread / math.Sqrt(n)
	s.bound(s.Mean-half, s.Mean+half)
	return s
}

// rateOf describes how often something held.
func rateOf(held, of int) Sample {
	n, p := float64(of), float64(held)/float64(of)
	s := Sample{N: of, Mean: p, Spread: math.Sqrt(p * (1 - p))}
	middle, half := (p+z*z/(2*n))/(1+z*z/n), z/(1+z*z/n)*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	s.bound(math.Max(0, middle-half), math.Min(1, middle+half))
	return s
}

func (s *Sample) bound(low, high float64) { s.Low, s.High = &low, &high }

// apart is the interval of the difference of two means, b less a: Welch's, with the degrees of freedom rounded down; where one of them is
// of one run alone, as if it had the spread of the other. ok is false where both are.
func apart(a, b Sample) (low, high float64, ok bool) {
	d := b.Mean - a.Mean
	if a.N < 2 && b.N < 2 {
		return 0, 0, false
	}
	va, vb := a.Spread*a.Spread/float64(a.N), b.Spread*b.Spread/float64(b.N)
	freedom := max(a.N, b.N) - 1
	switch {
	case a.N < 2:
		va = b.Spread * b.Spread
	case b.N < 2:
		vb = a.Spread * a.Spread
	case va+vb > 0:
		freedom = int((va + vb) * (va + vb) / (va*va/float64(a.N-1) + vb*vb/float64(b.N-1)))
	}
	half := student(max(freedom, 1)) * math.Sqrt(va+vb)
	return d - half, d + half, true
}

// ratesApart is the interval of the difference of two rates, b less a: Newcombe's, of their Wilson intervals.
func ratesApart(a, b Sample) (low, high float64) {
	d := b.Mean - a.Mean
	return d - math.Hypot(b.Mean-*b.Low, *a.High-a.Mean), d + math.Hypot(*b.High-b.Mean, a.Mean-*a.Low)
}

// student is the 97.5th percentile of Student's t: of a table up to 30 degrees of freedom, above by the expansion of Cornish and Fisher.
func student(freedom int) float64 {
	if freedom <= len(studentTable) {
		return studentTable[freedom-1]
	}
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*n*n)
}

var studentTable = [...]float64{
	12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314,
	2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
}
