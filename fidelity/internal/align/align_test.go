package align

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAlignIsACommonSubsequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 40).Draw(t, "a")
		b := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 40).Draw(t, "b")
		got := Align(a, b)
		last := Match{-1, -1}
		for _, m := range got {
			if a[m.I] != b[m.J] || m.I <= last.I || m.J <= last.J {
				t.Fatalf("bad pair %v after %v", m, last)
			}
			last = m
		}
		if want := longestCommon(a, b); len(got) != want {
			t.Fatalf("%d pairs, want %d", len(got), want)
		}
	})
}

// longestCommon is the textbook table.
func longestCommon(a, b []int) int {
	prev := make([]int, len(b)+1)
	for i := range a {
		next := make([]int, len(b)+1)
		for j := range b {
			if next[j+1] = max(prev[j+1], next[j]); a[i] == b[j] {
				next[j+1] = prev[j] + 1
			}
		}
		prev = next
	}
	return prev[len(b)]
}

func TestAlignBeyondTheBound(t *testing.T) {
	a, b := make([]int, 3000), make([]int, 3000)
	for i := range a {
		a[i], b[i] = i, -i-1
		if i%1000 == 999 {
			b[i] = i
		}
	}
	got := Align(a, b)
	if !slices.ContainsFunc(got, func(m Match) bool { return m.I == m.J }) {
		t.Errorf("found no equal element in %v", got)
	}
}
