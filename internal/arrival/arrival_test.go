package arrival_test

import (
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/arrival"
)

// TestOrder asks for three things that end in every order: sorted by what their records say they stand as they were asked for.
func TestOrder(t *testing.T) {
	type record struct{ asked, said uint64 }
	for _, ends := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		var c arrival.Counter
		places := []uint64{c.Ask(), c.Ask(), c.Ask()}
		var records []record
		for i, n := range ends {
			r := record{places[n], c.Write(places[n])}
			if (r.said == 0) != (n == i) {
				t.Errorf("%v: record %d says %d", ends, i, r.said)
			}
			records = append(records, r)
		}
		arrival.Sort(records, func(r record) uint64 { return r.said })
		if !slices.IsSortedFunc(records, func(a, b record) int { return int(a.asked) - int(b.asked) }) {
			t.Errorf("%v: sorted %v", ends, records)
		}
	}
}

// TestNoneLeftOut: where what was asked for has no record, those behind it say their places and keep their order.
func TestNoneLeftOut(t *testing.T) {
	var c arrival.Counter
	c.Ask() // gets no record
	second, third := c.Ask(), c.Ask()
	said := []uint64{c.Write(third), c.Write(second)}
	arrival.Sort(said, func(n uint64) uint64 { return n })
	if !slices.Equal(said, []uint64{0, 3}) {
		t.Errorf("%v", said)
	}
}
