package chars

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFilterMissesNothing holds next against the filter asked place by place, from every place on.
func TestFilterMissesNothing(t *testing.T) {
	few := rapid.SampledFrom([]byte("abAB!\x00\xff")) // of which some have their low bits alike
	rapid.Check(t, func(t *rapid.T) {
		f := NewFilter()
		for range rapid.IntRange(0, 4).Draw(t, "allowed") {
			f.AllowText(string(rapid.SliceOfN(few, 2, 3).Draw(t, "text")))
		}
		f = f.Clone()
		b := rapid.SliceOfN(few, 0, 40).Draw(t, "b")
		want := max(0, len(b)-2)
		for i := len(b) - 1; i >= 0; i-- {
			if i+2 < len(b) && f.passes(b[i], b[i+1], b[i+2]) {
				want = i
			}
			if got := f.Next(b, i); got != max(i, want) {
				t.Fatalf("%q from %d: got %d, want %d", b, i, got, max(i, want))
			}
		}
	})
}
