// Package align pairs the elements of two sequences that are equal: in order, by a shortest edit script where one can be had, and
// what is left by its keys.
package align

import (
	"cmp"
	"slices"
)

const (
	// maxEdits bounds one search for a shortest edit script. Two sequences that differ by fewer edits are aligned exactly.
	maxEdits = 1024
	// quickEdits bounds the search in long sequences, before they are cut at what occurs once in each.
	quickEdits = 128
	// MaxSteps bounds all searches of one alignment, about a second. What is left then is not aligned.
	MaxSteps = 50_000_000
)

// A Match pairs element i of one sequence with the equal element j of another.
type Match struct{ I, J int }

// Align returns pairs of equal elements, in order: those that a shortest edit script from a to b keeps (Myers 1986, "An
// O(ND) difference algorithm and its variations") where that has at most maxEdits edits. Longer ones are first cut at the
// elements that occur once on each side (Cohen's patience diff), in time that is linear but for MaxSteps.
func Align[T comparable](a, b []T) []Match {
	ms, _ := Within(a, b, MaxSteps)
	return ms
}

// Within is Align within a number of steps. It is coarse where these did not suffice.
func Within[T comparable](a, b []T, steps int) (ms []Match, coarse bool) {
	al := &aligner[T]{a: a, b: b, steps: steps}
	al.gap(Span{0, len(a)}, Span{0, len(b)})
	return al.out, al.coarse
}

// A Span is a run of elements of one sequence; an empty one is where the other has more.
type Span struct{ From, To int }

// Unpaired returns n times -1: no counterpart.
func Unpaired(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// ByKey pairs what has no counterpart yet and has equal keys, first with first, and returns the places in a of the pairs it made. ofA
// and ofB hold the places of the counterparts.
func ByKey[K comparable](ofA, ofB []int, keyA, keyB func(int) K) []int {
	free := make(map[K][]int)
	for j, i := range ofB {
		if i < 0 {
			k := keyB(j)
			free[k] = append(free[k], j)
		}
	}
	var made []int
	for i, j := range ofA {
		if j >= 0 || len(free) == 0 {
			continue
		}
		k := keyA(i)
		if js := free[k]; len(js) > 0 {
			ofA[i], ofB[js[0]] = js[0], i
			free[k] = js[1:]
			made = append(made, i)
		}
	}
	return made
}

// aligner is one alignment under way.
type aligner[T comparable] struct {
	a, b   []T
	steps  int // left
	out    []Match
	coarse bool
}

// gap aligns a run of each side, which no pair crosses.
func (al *aligner[T]) gap(sa, sb Span) {
	for sa.From < sa.To && sb.From < sb.To && al.a[sa.From] == al.b[sb.From] {
		al.out = append(al.out, Match{sa.From, sb.From})
		sa.From, sb.From = sa.From+1, sb.From+1
	}
	tail := 0
	for tail < min(sa.To-sa.From, sb.To-sb.From) && al.a[sa.To-1-tail] == al.b[sb.To-1-tail] {
		tail++
	}
	al.middle(Span{sa.From, sa.To - tail}, Span{sb.From, sb.To - tail})
	for n := tail; n > 0; n-- {
		al.out = append(al.out, Match{sa.To - n, sb.To - n})
	}
}

// middle aligns two runs that neither begin nor end alike.
func (al *aligner[T]) middle(sa, sb Span) {
	n := sa.To - sa.From + sb.To - sb.From
	switch {
	case sa.From == sa.To || sb.From == sb.To:
		return
	case al.steps <= 0:
		al.coarse = true
		return
	case n <= maxEdits:
		al.search(sa, sb, n)
		return
	case al.search(sa, sb, quickEdits):
		return
	}
	anchors := al.anchors(sa, sb)
	if len(anchors) == 0 {
		al.rounds(sa, sb)
		return
	}
	for _, m := range anchors {
		al.gap(Span{sa.From, m.I}, Span{sb.From, m.J})
		al.out = append(al.out, m)
		sa.From, sb.From = m.I+1, m.J+1
	}
	al.gap(sa, sb)
}

// anchors pairs the elements that occur once in each run, those of the longest sequence that stands in one order in both.
func (al *aligner[T]) anchors(sa, sb Span) []Match {
	type seen struct{ inA, inB, i, j int }
	all := make(map[T]*seen, sa.To-sa.From)
	for i := sa.From; i < sa.To; i++ {
		s := all[al.a[i]]
		if s == nil {
			s = new(seen)
			all[al.a[i]] = s
		}
		s.inA, s.i = s.inA+1, i
	}
	for j := sb.From; j < sb.To; j++ {
		if s := all[al.b[j]]; s != nil {
			s.inB, s.j = s.inB+1, j
		}
	}
	var once []Match
	for i := sa.From; i < sa.To; i++ {
		if s := all[al.a[i]]; s.inA == 1 && s.inB == 1 {
			once = append(once, Match{i, s.j})
		}
	}
	return rising(once)
}

// rising returns the longest part of ms, which rises in i, that rises in j too.
func rising(ms []Match) []Match {
	var piles []int // index in ms of the last of the best sequence of each length
	before := make([]int, len(ms))
	for n, m := range ms {
		at, _ := slices.BinarySearchFunc(piles, m.J, func(p, j int) int { return cmp.Compare(ms[p].J, j) })
		before[n] = -1
		if at > 0 {
			before[n] = piles[at-1]
		}
		if at == len(piles) {
			piles = append(piles, n)
		} else {
			piles[at] = n
		}
	}
	out := make([]Match, len(piles))
	if len(piles) > 0 {
		for at, n := len(piles)-1, piles[len(piles)-1]; n >= 0; at, n = at-1, before[n] {
			out[at] = ms[n]
		}
	}
	return out
}

// rounds searches maxEdits deep, goes on from the furthest point that was reached, and so on while there are steps.
func (al *aligner[T]) rounds(sa, sb Span) {
	for sa.From < sa.To && sb.From < sb.To {
		if al.steps <= 0 {
			al.coarse = true
			return
		}
		ms, x, y := al.round(al.a[sa.From:sa.To], al.b[sb.From:sb.To], maxEdits)
		al.take(ms, sa, sb)
		sa.From, sb.From = sa.From+x, sb.From+y
	}
}

// search is one round that counts only when it gets to the end.
func (al *aligner[T]) search(sa, sb Span, deepest int) bool {
	a, b := al.a[sa.From:sa.To], al.b[sb.From:sb.To]
	if d := len(a) - len(b); max(d, -d) > deepest {
		return false
	}
	ms, x, y := al.round(a, b, deepest)
	if x < len(a) || y < len(b) {
		return false
	}
	al.take(ms, sa, sb)
	return true
}

func (al *aligner[T]) take(ms []Match, sa, sb Span) {
	for _, m := range ms {
		al.out = append(al.out, Match{m.I + sa.From, m.J + sb.From})
	}
}

// round searches up to deepest edits deep. It returns the pairs found and how far in a and b they reach, which is not
// nowhere when both hold something.
func (al *aligner[T]) round(a, b []T, deepest int) (ms []Match, x, y int) {
	deepest = min(deepest, len(a)+len(b))
	off := deepest + 1
	v := make([]int32, 2*deepest+3) // v[off+k] is the furthest x on diagonal k = x-y
	var trace [][]int32
	best := struct{ sum, d, k, x int }{}
	for d := 0; d <= deepest; d++ {
		trace = append(trace, slices.Clone(v[off-d:off+d+1]))
		for k := -d; k <= d; k += 2 {
			start, _ := step(v[off-d:], d, k)
			x := start
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			al.steps -= x - start + 1
			v[off+k] = int32(x)
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
func step(reach []int32, d, k int) (x, from int) {
	if d == 0 {
		return 0, 0
	}
	if k == -d || k != d && reach[d+k-1] < reach[d+k+1] {
		return int(reach[d+k+1]), k + 1
	}
	return int(reach[d+k-1]) + 1, k - 1
}

// backtrack walks from (x, x-k), reached by d edits, to the start and returns the pairs on the way, in order. trace[d]
// is what step saw before edit d.
func backtrack(trace [][]int32, d, k, x int) []Match {
	var ms []Match
	for ; d >= 0; d-- {
		start, from := step(trace[d], d, k)
		for ; x > start; x-- {
			ms = append(ms, Match{x - 1, x - 1 - k})
		}
		if from < k {
			x-- // the deletion itself
		}
		k = from
	}
	slices.Reverse(ms)
	return ms
}
