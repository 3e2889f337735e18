package fidelity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestFilesPairPathByPath: in which order different files were written says nothing, and what stands at one path is paired by itself alone.
// So tapes sorted by path have the same divergences as those that mix the paths in any order.
func TestFilesPairPathByPath(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		paths := 1 + r.IntN(4)
		side := func() (all []tape.Kind) {
			for range r.IntN(7) {
				path, state := fmt.Sprintf("f%d", r.IntN(paths)), sum(fmt.Sprint(r.IntN(3)))
				all = append(all, &tape.FileWrite{File: tape.File{Path: path, ContentHash: state, ContentDigest: state, Mode: "100644"}})
			}
			return all
		}
		sorted := func(all []tape.Kind) []tape.Kind {
			return slices.SortedStableFunc(slices.Values(all), func(a, b tape.Kind) int {
				return slices.Compare([]byte(tape.FileOf(a).Path), []byte(tape.FileOf(b).Path))
			})
		}
		a, b := side(), side()
		if d := cmp.Diff(saidOfFiles(compareLanes(t, Semantic, sorted(a), sorted(b), nil)), saidOfFiles(compareLanes(t, Semantic, a, b, nil))); d != "" {
			t.Fatalf("tapes %d: -sorted +mixed\n%s", n, d)
		}
	}
}

// saidOfFiles is what a report says, without the places of records.
func saidOfFiles(r *Report) (said []string) {
	for _, d := range r.Divergences {
		said = append(said, fmt.Sprint(d.Category, " ", d.Recorded, " ", d.Replay))
	}
	slices.Sort(said)
	return append(said, r.Notes...)
}
