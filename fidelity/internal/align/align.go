// Package align pairs the elements of two sequences that are equal: in order, by a short edit script, and what is left by its keys.
package align

import (
	"cmp"
	"slices"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// exact is how many elements two runs may have together to be aligned by a shortest edit script, whatever stands in them.
const exact = 100

// A Match pairs element i of one sequence with the equal element j of another.
type Match struct{ I, J int }

// A Span is a run of elements of one sequence; an empty one is where the other has more.
type Span struct{ From, To int }

// Align returns pairs of equal elements, in order: those that a shortest edit script from a to b keeps. Long runs are first cut at the
// elements that occur once on each side (Cohen's patience diff). Between these, of what differs by more than about a hundred edits, only
// the begin and the end are aligned.
func Align[T comparable](a, b []T) []Match {
	al := &aligner[T]{a: a, b: b, out: make([]Match, 0, min(len(a), len(b)))}
	al.gap(Span{0, len(a)}, Span{0, len(b)})
	return al.out
}

// ByOrder is Align of elements that are equal where their keys are.
func ByOrder[T any, K comparable](a, b []T, key func(T) K) []Match {
	keys := func(of []T) []K {
		out := make([]K, len(of))
		for i := range of {
			out[i] = key(of[i])
		}
		return out
	}
	return Align(keys(a), keys(b))
}

// numbered are elements by their numbers, equal ones by one.
func numbered[T comparable](of []T, ids map[T]rune) []rune {
	out := make([]rune, len(of))
	for i, x := range of {
		id, ok := ids[x]
		if !ok {
			id = rune(len(ids))
			ids[x] = id
		}
		out[i] = id
	}
	return out
}

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
	a, b []T
	out  []Match
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
	if sa.From == sa.To || sb.From == sb.To {
		return
	}
	var anchors []Match
	if sa.To-sa.From+sb.To-sb.From > exact {
		anchors = al.anchors(sa, sb)
	}
	if len(anchors) == 0 {
		al.script(sa, sb)
		return
	}
	for _, m := range anchors {
		al.gap(Span{sa.From, m.I}, Span{sb.From, m.J})
		al.out = append(al.out, m)
		sa.From, sb.From = m.I+1, m.J+1
	}
	al.gap(sa, sb)
}

// script aligns two runs by an edit script.
func (al *aligner[T]) script(sa, sb Span) {
	ids := make(map[T]rune)
	a, b := numbered(al.a[sa.From:sa.To], ids), numbered(al.b[sb.From:sb.To], ids)
	i, j := 0, 0
	for _, d := range append(lcs.DiffRunes(b, a), lcs.Diff{Start: len(b), ReplStart: len(a)}) { // from b: of two that changed places the first one moved
		for ; j < d.Start; i, j = i+1, j+1 {
			al.out = append(al.out, Match{sa.From + i, sb.From + j})
		}
		i, j = d.ReplEnd, d.End
	}
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
