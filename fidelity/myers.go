package fidelity

import "slices"

// maxEdits bounds one round of the search for an alignment. Two sequences that differ by fewer edits are aligned
// exactly; beyond that the search goes on from the furthest point that it reached, so time stays within
// (n+m)*maxEdits and memory within maxEdits squared.
const maxEdits = 1024

// A match pairs element i of one sequence with the equal element j of another.
type match struct{ i, j int }

// align returns the pairs of equal elements that a shortest edit script from a to b keeps, in order (Myers 1986, "An
// O(ND) difference algorithm and its variations").
func align[T comparable](a, b []T) []match {
	var out []match
	x, y := 0, 0
	for x < len(a) && y < len(b) {
		ms, dx, dy := alignRound(a[x:], b[y:])
		for _, m := range ms {
			out = append(out, match{m.i + x, m.j + y})
		}
		x, y = x+dx, y+dy
	}
	return out
}

// alignRound searches up to maxEdits edits deep. It returns the pairs found and how far in a and b they reach, which is
// not nowhere when both hold something.
func alignRound[T comparable](a, b []T) (ms []match, x, y int) {
	deepest := min(maxEdits, len(a)+len(b))
	off := deepest + 1
	v := make([]int, 2*deepest+3) // v[off+k] is the furthest x on diagonal k = x-y
	var trace [][]int
	best := struct{ sum, d, k, x int }{}
	for d := 0; d <= deepest; d++ {
		trace = append(trace, slices.Clone(v[off-d:off+d+1]))
		for k := -d; k <= d; k += 2 {
			x, _ := step(v[off-d:], d, k)
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			v[off+k] = x
			if x > len(a) || x-k > len(b) {
				continue
			}
			if sum := 2*x - k; sum > best.sum || sum == best.sum && max(k, -k) < max(best.k, -best.k) {
				best.sum, best.d, best.k, best.x = sum, d, k, x
			}
			if x == len(a) && x-k == len(b) {
				return backtrack(trace, d, k, x), x, x - k
			}
		}
	}
	return backtrack(trace, best.d, best.k, best.x), best.x, best.x - best.k
}

// step returns where edit d lands on diagonal k and from which diagonal it comes: an insertion from k+1 or a deletion
// from k-1. reach[d+k] is the furthest x on diagonal k after d-1 edits.
func step(reach []int, d, k int) (x, from int) {
	if d == 0 {
		return 0, 0
	}
	if k == -d || k != d && reach[d+k-1] < reach[d+k+1] {
		return reach[d+k+1], k + 1
	}
	return reach[d+k-1] + 1, k - 1
}

// backtrack walks from (x, x-k), reached by d edits, to the start and returns the pairs on the way, in order. trace[d]
// is what step saw before edit d.
func backtrack(trace [][]int, d, k, x int) []match {
	var ms []match
	for ; d >= 0; d-- {
		start, from := step(trace[d], d, k)
		for ; x > start; x-- {
			ms = append(ms, match{x - 1, x - 1 - k})
		}
		if from < k {
			x-- // the deletion itself
		}
		k = from
	}
	slices.Reverse(ms)
	return ms
}
