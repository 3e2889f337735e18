package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A Group is recordings that were made in the same way: forks of one parent at one record with the same change, and the same upstreams.
type Group struct {
	Members []int    `json:"recordings"` // by their places, from 1
	Parent  *string  `json:"parent"`
	ForkSeq *uint64  `json:"fork_seq"`
	Counted Counted  `json:"counted"` // what Numbers are of, but for what passed
	Numbers []Number `json:"numbers"`

	fork *recording.Fork // of its members; nil for a run, and the parent of the others
	from point
}

// Counted says which part of its runs the numbers of a group are of.
type Counted string

// Parts of runs. What a fork did before its point comes from the tape: it took no time, and costs nothing.
const (
	Whole     Counted = "whole"
	FromPoint Counted = "from_point" // and time is that of the answers
)

// A point is where forks leave their parent. The zero point is the begin of a run.
type point struct {
	parent string
	seq    uint64
	lane   string
	turn   int
}

// A Number is what the runs of a group come to in one regard.
type Number struct {
	Name    string  `json:"name"`    // "passed", "turns", "tools", "tokens in", "tokens out", "cost", "time"
	Sample  *Sample `json:"sample"`  // null where it is not known of one of them
	Apart   *Apart  `json:"apart"`   // from the first group; null in that one, and where nothing can be said
	Verdict Verdict `json:"verdict"` // "" where nothing can be said
	values  []float64
}

// Apart is the 95% interval of the difference of two means, of two rates of what passed.
type Apart struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Verdict says whether two groups differ by more than chance.
type Verdict string

// Verdicts. Higher is worse, but for what passed.
const (
	Noise       Verdict = "noise" // the interval of the difference holds 0
	Regression  Verdict = "regression"
	Improvement Verdict = "improvement"
)

// Names of numbers that are not as the others.
const (
	passed = "passed"
	lasted = "time"
)

// group finds the groups that were run several times, and says of each in what it differs from that of the first recording, which may be
// of one run.
func (c *Comparison) group() {
	groups := c.groupsOf()
	first, others := groups[0], slices.DeleteFunc(groups[1:], func(g *Group) bool { return len(g.Members) < 2 })
	if len(first.Members) < 2 && len(others) == 0 {
		return
	}
	if len(first.Members) < 2 && others[0].from.parent == c.Rows[0].ID &&
		!slices.ContainsFunc(others, func(g *Group) bool { return g.from != others[0].from }) {
		first.fork, first.from = nil, others[0].from // what it is a fork of itself does not matter
	}
	c.Groups = append([]*Group{first}, others...)
	for _, g := range c.Groups {
		g.Counted = Whole
		if g.from != (point{}) {
			g.Counted = FromPoint
		}
		g.Numbers = c.numbers(g)
		if g != first {
			g.against(first)
		}
	}
	c.Notes = append(c.Notes, "of groups of forks all but what passed counts from the point on: what comes before is from the tape; "+
		"time is there that of the answers")
}

// groupsOf are all groups, of one run too.
func (c *Comparison) groupsOf() (groups []*Group) {
	byKey := make(map[string]*Group)
	for i, r := range c.Rows {
		key := keyOf(r, i)
		g := byKey[key]
		if g == nil {
			g = &Group{Parent: r.Parent, ForkSeq: r.ForkSeq}
			if f := r.fork(); f != nil {
				g.fork, g.from = f, point{*r.Parent, *r.ForkSeq, f.Lane, f.Turn}
			}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.Members = append(g.Members, i+1)
	}
	return groups
}

// keyOf is the same for recordings that were made in the same way: forks of one parent at one record, with one change, over one work
// tree, that asked the same servers, and let the same tool servers answer. place is that of the row.
func keyOf(r *Row, place int) string {
	f := r.fork()
	if f == nil {
		return strconv.Itoa(place)
	}
	var upstreams map[string]string
	if again := r.rec.Manifest.Again; again != nil {
		upstreams = again.Upstreams
	}
	return fmt.Sprintln(*r.Parent, *r.ForkSeq, f.Live, r.found, string(f.Changes), upstreams, slices.Sorted(slices.Values(f.MCP)))
}

// fork is how the run left its parent's tape; nil where it did not.
func (r *Row) fork() *recording.Fork {
	if r.Parent == nil || r.ForkSeq == nil {
		return nil
	}
	return r.rec.Manifest.Fork
}

// numbers are what the members of a group come to. A fork that did not come to its end did not pass, and says nothing else.
func (c *Comparison) numbers(g *Group) []Number {
	var rows []*Row
	held, all := 0, []Number{{Name: passed}}
	for _, i := range g.Members {
		r := c.Rows[i-1]
		if r.passed() {
			held++
		}
		if !r.failed() {
			rows = append(rows, r)
		}
	}
	rate := rateOf(held, len(g.Members))
	all[0].Sample = &rate
	for _, of := range measures {
		n := Number{Name: of.name}
		for _, r := range rows {
			if v, known := of.value(r.counted(g.from)); known {
				n.values = append(n.values, v)
			}
		}
		if len(n.values) == len(rows) && len(rows) > 0 {
			s := sampleOf(n.values)
			n.Sample = &s
		}
		all = append(all, n)
	}
	return all
}

// counted is what the run spent from a point on, with its whole time as that of the answers where that is its begin.
func (r *Row) counted(from point) *Spent {
	if from != (point{}) {
		s := spent(r.account.From(from.lane, from.turn, from.seq))
		return &s
	}
	t := &r.Total
	return &Spent{t.Turns, t.Tools, t.InputTokens, t.OutputTokens, t.CostUSD, t.DurationMS, t.Uncounted}
}

// passed reports whether a run did: by the command, or without one by how the program ended.
func (r *Row) passed() bool {
	switch {
	case r.failed():
		return false
	case r.Check != nil:
		return r.Check.Passed()
	}
	return r.Exit != nil && r.Exit.Code == 0
}

// failed reports whether the run is a fork that did not come to its end.
func (r *Row) failed() bool {
	f := r.fork()
	return f != nil && f.Failed != ""
}

// measures are the numbers that are compared, beside the rate of what passed.
var measures = []struct {
	name  string
	value func(*Spent) (v float64, known bool)
}{
	{"turns", func(s *Spent) (float64, bool) { return float64(s.Turns), true }},
	{"tools", func(s *Spent) (float64, bool) { return float64(s.Tools), true }},
	{"tokens in", func(s *Spent) (float64, bool) { return float64(s.InputTokens), s.uncounted == 0 }},
	{"tokens out", func(s *Spent) (float64, bool) { return float64(s.OutputTokens), s.uncounted == 0 }},
	{"cost", func(s *Spent) (float64, bool) {
		if s.CostUSD == nil {
			return 0, false
		}
		return *s.CostUSD, true
	}},
	{lasted, func(s *Spent) (float64, bool) { return float64(s.LatencyMS) / 1000, true }},
}

// comparable reports whether a number of two groups is of the same part of their runs, and a time of the same kind of run.
func (g *Group) comparable(first *Group, name string) bool {
	switch {
	case name == passed:
		return true
	case g.from != first.from:
		return false
	}
	return name != lasted || first.fork != nil && first.fork.Live == g.fork.Live
}

// against says in what g differs from the first group.
func (g *Group) against(first *Group) {
	for i := range g.Numbers {
		n, was := &g.Numbers[i], &first.Numbers[i]
		if n.Sample == nil || was.Sample == nil || !g.comparable(first, n.Name) {
			continue
		}
		var low, high float64
		var ok bool
		if n.Name == passed {
			low, high = ratesApart(*was.Sample, *n.Sample)
		} else if low, high, ok = apart(*was.Sample, *n.Sample); !ok {
			continue
		}
		if low == high && low != 0 {
			continue // runs without any spread say nothing of chance
		}
		n.Apart = &Apart{low, high}
		n.Verdict = verdictOf(low, high, n.Name == passed)
	}
}

// verdictOf says what an interval of a difference means. What differs by less than numbers of this size can is no difference.
func verdictOf(low, high float64, moreIsBetter bool) Verdict {
	const least = 1e-12
	switch {
	case low <= least && high >= -least:
		return Noise
	case (low > 0) == moreIsBetter:
		return Improvement
	}
	return Regression
}

// numbers are places in words: 1, 2, 5 to 9.
func numbers(places []int) string {
	var parts []string
	for i := 0; i < len(places); {
		j := i
		for j+1 < len(places) && places[j+1] == places[j]+1 {
			j++
		}
		if j-i >= 2 {
			parts = append(parts, fmt.Sprintf("%d to %d", places[i], places[j]))
		} else {
			for _, p := range places[i : j+1] {
				parts = append(parts, strconv.Itoa(p))
			}
		}
		i = j + 1
	}
	return strings.Join(slices.Clip(parts), ", ")
}

// round is a number with as many digits as a person reads.
func round(v float64) string {
	digits := 0
	if a := math.Abs(v); a > 0 && a < 100 {
		digits = min(max(2-int(math.Floor(math.Log10(a))), 0), 6)
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s
}

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
