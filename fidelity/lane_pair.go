package fidelity

import (
	"path"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// lanePair is a lane of the recording and what the replay has of it. Either side may be empty.
type lanePair struct {
	name string
	a, b []entry
}

// pairLanes pairs lanes by name, and those that are left by their class: a conversation whose first message changed has
// another name and is still the one to compare with.
func pairLanes(a, b []*lane) []lanePair {
	byName := make(map[string]*lane)
	for _, l := range b {
		byName[l.name] = l
	}
	names := make(map[string]bool)
	for _, l := range a {
		names[l.name] = true
	}
	left := make(map[string][]*lane) // lanes of b alone, by class
	for _, l := range b {
		if c := l.class(); c != "" && !names[l.name] {
			left[c] = append(left[c], l)
		}
	}
	var out []lanePair
	taken := make(map[*lane]bool)
	for _, l := range a {
		p := lanePair{name: l.name, a: l.entries}
		other := byName[l.name]
		if rest := left[l.class()]; other == nil && len(rest) > 0 {
			other, left[l.class()] = rest[0], rest[1:]
		}
		if other != nil {
			p.b = other.entries
			taken[other] = true
		}
		out = append(out, p)
	}
	for _, l := range b {
		if !taken[l] {
			out = append(out, lanePair{name: l.name, b: l.entries})
		}
	}
	return out
}

// class says which lanes may have become each other; empty for those that may not.
func (l *lane) class() string {
	if l.name == laneUnmatched || l.name == laneProgram {
		return ""
	}
	switch k := l.entries[0].rec.Kind.(type) {
	case *tape.LLMCall:
		return "llm " + k.Provider + " " + tape.HostOf(k.URL)
	case *tape.ProcessSpawn:
		return "process " + path.Base(k.Program)
	}
	return ""
}

// A pair is a record and its counterpart; one of them is nil where it has none.
type pair struct{ a, b *entry }

// pairRules say which records that stand alone may still be paired.
type pairRules struct {
	likely  func(tape.Kind) string // in the same place, when this is equal
	reorder bool                   // anywhere, when their identities are equal
}

// pairUp pairs the entries of two lanes, in the order of a, those of b alone after what they follow: equal identities in
// order, then what the rules allow. moved counts those that came in another order.
func pairUp(a, b []entry, rules *pairRules) (pairs []pair, moved int) {
	ms := align(ids(a), ids(b))
	ofA, ofB := unpaired(len(a)), unpaired(len(b))
	gapA, gapB := make([]int, len(a)), make([]int, len(b))
	i, j := 0, 0
	for n, m := range append(ms, match{len(a), len(b)}) {
		for ; i < m.i; i++ {
			gapA[i] = n
		}
		for ; j < m.j; j++ {
			gapB[j] = n
		}
		if m.i < len(a) && m.j < len(b) {
			ofA[i], ofB[j] = j, i
			i, j = i+1, j+1
		}
	}
	if rules.reorder {
		moved = pairBy(ofA, ofB, func(i int) any { return a[i].id }, func(j int) any { return b[j].id })
	}
	type spot struct {
		gap  int
		like string
	}
	pairBy(ofA, ofB,
		func(i int) any { return spot{gapA[i], rules.likely(a[i].rec.Kind)} },
		func(j int) any { return spot{gapB[j], rules.likely(b[j].rec.Kind)} })
	return merge(a, b, ofA, ofB), moved
}

func ids(es []entry) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.id
	}
	return out
}

// unpaired returns n times -1: no counterpart.
func unpaired(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// pairBy pairs what is still alone and has equal keys, first with first, and returns how many pairs it made.
func pairBy(ofA, ofB []int, keyA, keyB func(int) any) (n int) {
	free := make(map[any][]int)
	for j, i := range ofB {
		if i < 0 {
			free[keyB(j)] = append(free[keyB(j)], j)
		}
	}
	for i, j := range ofA {
		if j >= 0 {
			continue
		}
		if js := free[keyA(i)]; len(js) > 0 {
			ofA[i], ofB[js[0]] = js[0], i
			free[keyA(i)] = js[1:]
			n++
		}
	}
	return n
}

// merge lists the pairs in the order of a. What b has alone comes before the next of its records that a has too.
func merge(a, b []entry, ofA, ofB []int) []pair {
	out := make([]pair, 0, max(len(a), len(b)))
	j := 0
	alone := func(to int) {
		for ; j < to; j++ {
			if ofB[j] < 0 {
				out = append(out, pair{b: &b[j]})
			}
		}
	}
	for i := range a {
		if ofA[i] < 0 {
			out = append(out, pair{a: &a[i]})
			continue
		}
		alone(ofA[i])
		out = append(out, pair{&a[i], &b[ofA[i]]})
	}
	alone(len(b))
	return out
}
