package check

import (
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// sensible refuses what its shape allows and what can never be so.
func (r *reading) sensible(a *assertion) {
	family := a.family()
	n, path := a.node.Field(family), a.path+"."+family
	for _, key := range []string{"eventually", "never", "always", "between"} {
		var s span
		if w := n.Field(key); w != nil {
			r.decode(w, &s)
			r.ordered(w, path+"."+key, s.From, s.To)
		}
	}
	r.between(n.Field("delay"), path+".delay")
	r.between(n.Field("total"), path+".total")
	if c := n.Field("count"); c != nil && c.Kind == plainyaml.Object && a.Service.Count.Max >= 0 && a.Service.Count.Max < a.Service.Count.Min {
		r.errorf(c.Place, "%s.count: expected max to be at least min (%d), got %d", path, a.Service.Count.Min, a.Service.Count.Max)
	}
	r.possible(a, n, path)
}

// possible refuses an assertion that no cassette meets.
func (r *reading) possible(a *assertion, n *plainyaml.Node, path string) {
	switch {
	case a.Frame != nil && a.Frame.Contains != "" && isBlankText(a.Frame.Contains):
		r.errorf(n.Field("contains").Place, "%s.contains: expected a text that shows, got blanks alone, which every screen has", path)
	case a.Frame != nil && a.Frame.Region != nil && a.Frame.Equals != nil && len(*a.Frame.Equals) > a.Frame.Region.Rows:
		r.errorf(n.Field("equals").Place, "%s.equals: expected at most the %d rows of the region, got %d", path, a.Frame.Region.Rows, len(*a.Frame.Equals))
	case a.Frame != nil && a.Frame.Row != nil && a.Frame.Equals != nil && len(*a.Frame.Equals) > 1:
		r.errorf(n.Field("equals").Place, "%s.equals: expected one row, got %d", path, len(*a.Frame.Equals))
	case a.Timing != nil && hasTwice(a.Timing.Order):
		r.errorf(n.Field("order").Place, "%s.order: expected different texts, got one twice", path)
	case a.Process != nil && a.Process.ExitCode != nil && a.Process.Signal != nil && *a.Process.Signal != "none" && *a.Process.ExitCode >= 0:
		r.errorf(n.Place, "%s: a program that a signal ends has no exit code; leave one out", path)
	}
}

func hasTwice(all []string) bool {
	sorted := slices.Sorted(slices.Values(all))
	return len(slices.Compact(sorted)) < len(all)
}

func (r *reading) ordered(n *plainyaml.Node, path string, from, to time.Duration) {
	if to >= 0 && to < from {
		r.errorf(n.Place, "%s: expected an end after the beginning (%s), got %s", path, from, to)
	}
}

// between refuses a greatest time below the least one.
func (r *reading) between(n *plainyaml.Node, path string) {
	if n == nil || n.Field("min") == nil || n.Field("max") == nil {
		return
	}
	var b bounds
	r.decode(n, &b)
	if *b.Max < *b.Min {
		r.errorf(n.Place, "%s: expected max to be at least min (%s), got %s", path, time.Duration(*b.Min), time.Duration(*b.Max))
	}
}
