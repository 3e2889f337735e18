package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Group is recordings that were made in the same way: forks of one parent at one record with the same change, or one recording that has
// no like.
type Group struct {
	Members []int    `json:"recordings"` // by their places, from 1
	Parent  *string  `json:"parent"`
	ForkSeq *uint64  `json:"fork_seq"`
	Numbers []Number `json:"numbers"`
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

const passed = "passed"

// group finds the groups, and says of each in what it differs from the first one, where there is one that was run several times.
func (c *Comparison) group() {
	byKey := make(map[string]*Group)
	var groups []*Group
	several := false
	for i, r := range c.Rows {
		key := keyOf(r, i)
		g := byKey[key]
		if g == nil {
			g = &Group{Parent: r.Parent, ForkSeq: r.ForkSeq}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.Members = append(g.Members, i+1)
		several = several || len(g.Members) > 1
	}
	if !several {
		return
	}
	for _, g := range groups {
		g.Numbers = c.numbers(g)
		if g != groups[0] {
			g.against(groups[0])
		}
	}
	c.Groups = groups
}

// keyOf is the same for recordings that were made in the same way: forks of one parent at one record, with one change, over one work
// tree. place is that of the row.
func keyOf(r *Row, place int) string {
	f := r.rec.Manifest.Fork
	if r.Parent == nil || r.ForkSeq == nil || f == nil {
		return strconv.Itoa(place)
	}
	return fmt.Sprintln(*r.Parent, *r.ForkSeq, f.Live, r.found, string(f.Changes))
}

// numbers are what the members of a group come to.
func (c *Comparison) numbers(g *Group) []Number {
	held, all := 0, []Number{{Name: passed}}
	for _, of := range measures {
		n := Number{Name: of.name}
		for _, i := range g.Members {
			if v, known := of.value(c.Rows[i-1]); known {
				n.values = append(n.values, v)
			}
		}
		if len(n.values) == len(g.Members) {
			s := sampleOf(n.values)
			n.Sample = &s
		}
		all = append(all, n)
	}
	for _, i := range g.Members {
		if c.Rows[i-1].passed() {
			held++
		}
	}
	s := rateOf(held, len(g.Members))
	all[0].Sample = &s
	return all
}

// passed reports whether a run did: by the command, or without one by how the program ended.
func (r *Row) passed() bool {
	if r.Check != nil {
		return r.Check.Passed()
	}
	if f := r.rec.Manifest.Fork; f != nil && f.Failed != "" {
		return false
	}
	return r.Exit != nil && r.Exit.Code == 0
}

// measures are the numbers that are compared, beside the rate of what passed.
var measures = []struct {
	name  string
	value func(*Row) (v float64, known bool)
}{
	{"turns", func(r *Row) (float64, bool) { return float64(r.Total.Turns), true }},
	{"tools", func(r *Row) (float64, bool) { return float64(r.Total.Tools), true }},
	{"tokens in", func(r *Row) (float64, bool) { return float64(r.Total.InputTokens), r.Total.Uncounted == 0 }},
	{"tokens out", func(r *Row) (float64, bool) { return float64(r.Total.OutputTokens), r.Total.Uncounted == 0 }},
	{"cost", func(r *Row) (float64, bool) {
		if r.Total.CostUSD == nil {
			return 0, false
		}
		return *r.Total.CostUSD, true
	}},
	{"time", func(r *Row) (float64, bool) { return float64(r.Total.DurationMS) / 1000, true }},
}

// against says in what g differs from the first group.
func (g *Group) against(first *Group) {
	for i := range g.Numbers {
		n, was := &g.Numbers[i], &first.Numbers[i]
		if n.Sample == nil || was.Sample == nil {
			continue
		}
		var low, high float64
		ok := true
		if n.Name == passed {
			low, high = ratesApart(*was.Sample, *n.Sample)
		} else if low, high, ok = apart(*was.Sample, *n.Sample); !ok {
			continue
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
