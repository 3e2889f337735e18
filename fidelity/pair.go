package fidelity

import (
	"cmp"
	"path"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/align"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// lanePair is a lane of the recording and what the replay has of it. Either side may be empty.
type lanePair struct {
	name string
	a, b []*entry
}

// pairLanes pairs lanes by name, and those that are left by their class: a conversation whose first message changed has
// another name and is still the one to compare with.
func pairLanes(a, b []*lane) []lanePair {
	ofA, ofB := align.Unpaired(len(a)), align.Unpaired(len(b))
	align.ByKey(ofA, ofB, func(i int) string { return a[i].key }, func(j int) string { return b[j].key })
	align.ByKey(ofA, ofB,
		func(i int) string { return cmp.Or(a[i].class(), "none recorded") },
		func(j int) string { return cmp.Or(b[j].class(), "none on replay") })
	var out []lanePair
	for i, l := range a {
		p := lanePair{name: l.name, a: l.entries}
		if j := ofA[i]; j >= 0 {
			p.b = b[j].entries
		}
		out = append(out, p)
	}
	for j, l := range b {
		if ofB[j] < 0 {
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
	case *tape.MCPOpen: // a server that calls itself otherwise
		return spaced("mcp", k.Transport, path.Base(k.Program), k.URL)
	}
	return ""
}

// A pair is a record and its counterpart; one of them is nil where it has none.
type pair struct {
	a, b  *entry
	moved bool // came in another order
}

// pairRules say which records that stand alone may still be paired.
type pairRules struct {
	likely  []func(tape.Kind) string // in the same place, when one of these is equal, the first one first
	reorder bool                     // anywhere, when their identities are equal
	// caller tells apart who asks: of those with equal identities, the ones with equal outcomes, of one caller first. nil pairs none.
	caller func(tape.Kind) uint64
}

// pairUp pairs the entries of two lanes, in the order of a, those of b alone after what they follow: equal identities in
// order, then what the rules allow. moved counts those that came in another order.
func pairUp(a, b []*entry, rules *pairRules) (pairs []pair, moved int) {
	ms := align.ByOrder(a, b, func(e *entry) uint64 { return e.id })
	p := &pairing{a: a, b: b, ofA: align.Unpaired(len(a)), ofB: align.Unpaired(len(b))}
	for _, m := range ms {
		p.ofA[m.I], p.ofB[m.J] = m.J, m.I
	}
	if len(ms) < max(len(a), len(b)) {
		p.gaps(ms)
		if rules.reorder {
			p.reorder()
		}
		for _, likely := range rules.likely {
			align.ByKey(p.ofA, p.ofB,
				func(i int) near { return near{p.gapA[i], likely(a[i].rec.Kind)} },
				func(j int) near { return near{p.gapB[j], likely(b[j].rec.Kind)} })
		}
	}
	if rules.caller != nil {
		p.byOutcome(rules.caller)
	}
	return p.merge(), len(p.moved)
}

// pairing is pairUp under way.
type pairing struct {
	a, b       []*entry
	ofA, ofB   []int        // places of the counterparts; -1 for none
	gapA, gapB []int        // between which pairs of equal identities an entry stands
	moved      map[int]bool // places in a
}

// near is where a record stands and what it may be a version of.
type near struct {
	gap  int
	like string
}

func (p *pairing) gaps(ms []align.Match) {
	p.gapA, p.gapB = make([]int, len(p.a)), make([]int, len(p.b))
	i, j := 0, 0
	for n, m := range append(ms, align.Match{I: len(p.a), J: len(p.b)}) {
		for ; i < m.I; i++ {
			p.gapA[i] = n
		}
		for ; j < m.J; j++ {
			p.gapB[j] = n
		}
		i, j = m.I+1, m.J+1
	}
}

// reorder pairs equal identities that stand in another order.
func (p *pairing) reorder() {
	p.moved = make(map[int]bool)
	for _, i := range align.ByKey(p.ofA, p.ofB, func(i int) uint64 { return p.a[i].id }, func(j int) uint64 { return p.b[j].id }) {
		p.moved[i] = true
	}
}

// merge lists the pairs in the order of a. What b has alone comes before the next of its records that a has too.
func (p *pairing) merge() []pair {
	out := make([]pair, 0, max(len(p.a), len(p.b)))
	j := 0
	alone := func(to int) {
		for ; j < to; j++ {
			if p.ofB[j] < 0 {
				out = append(out, pair{b: p.b[j]})
			}
		}
	}
	for i := range p.a {
		if p.ofA[i] < 0 {
			out = append(out, pair{a: p.a[i]})
			continue
		}
		if !p.moved[i] {
			alone(p.ofA[i])
		}
		out = append(out, pair{p.a[i], p.b[p.ofA[i]], p.moved[i]})
	}
	alone(len(p.b))
	return out
}

// byOutcome pairs anew those pairs of exchanges whose identities are equal: equal outcomes with each other, in order, then
// what is left, in order. Aligning sees identities alone, and which of several equal callers got which answer first says
// nothing. Those with a partner that is not the next one count as moved.
func (p *pairing) byOutcome(caller func(tape.Kind) uint64) {
	for _, g := range p.equals() {
		for n, place := range g.partners(p, caller) {
			i, j := g.a[n], g.b[place]
			p.ofA[i], p.ofB[j] = j, i
			if place == n {
				continue
			}
			if p.moved == nil {
				p.moved = make(map[int]bool)
			}
			p.moved[i] = true
		}
	}
}

// equals are pairs of exchanges with one identity: as many places on either side, in order.
type equals struct{ a, b []int }

// equals lists the groups of two pairs and more.
func (p *pairing) equals() []*equals {
	if len(p.ofA) < 2 {
		return nil
	}
	first, groups := make(map[uint64]int), make(map[uint64]*equals) // of most identities there is one pair
	var out []*equals
	for i, j := range p.ofA {
		id := p.a[i].id
		if j < 0 || id != p.b[j].id || !hasOutcome(p.a[i].rec.Kind) {
			continue
		}
		one, again := first[id]
		if !again {
			first[id] = i
			continue
		}
		g := groups[id]
		if g == nil {
			g = &equals{[]int{one}, []int{p.ofA[one]}}
			groups[id], out = g, append(out, g)
		}
		g.a, g.b = append(g.a, i), append(g.b, j)
	}
	for _, g := range out {
		slices.Sort(g.b)
	}
	return out
}

// partners returns, for each of g.a, the index in g.b of the one to compare it with: of equal results and one caller, as far as headers
// tell, then of equal results, then in order.
func (g *equals) partners(p *pairing, caller func(tape.Kind) uint64) []int {
	type outcome struct {
		result
		caller uint64
	}
	ofA, ofB := align.Unpaired(len(g.a)), align.Unpaired(len(g.b))
	for _, key := range []func(tape.Kind) outcome{
		func(k tape.Kind) outcome { return outcome{resultOf(k), caller(k)} },
		func(k tape.Kind) outcome { return outcome{result: resultOf(k)} },
		func(tape.Kind) outcome { return outcome{} },
	} {
		align.ByKey(ofA, ofB,
			func(n int) outcome { return key(p.a[g.a[n]].rec.Kind) },
			func(n int) outcome { return key(p.b[g.b[n]].rec.Kind) })
	}
	return ofA
}

// result is what came of a request.
type result struct {
	status  int
	call    string // the status of a gRPC call
	answer  cas.Digest
	failure string
}

// hasOutcome reports whether a record is a request, of which something came.
func hasOutcome(k tape.Kind) bool {
	_, call := k.(*tape.MCPJSONRPC)
	return call || tape.ExchangeOf(k) != nil
}

func resultOf(k tape.Kind) result {
	if call, ok := k.(*tape.MCPJSONRPC); ok {
		answer := call.ResultDigest
		if call.ParamsDigest.IsZero() {
			answer = call.ResponseDigest
		}
		return result{answer: answer, failure: call.Error}
	}
	ex := tape.ExchangeOf(k)
	return result{status: ex.Status, call: grpcstatus.Of(k).Code, answer: hashOf(ex.Response), failure: ex.Error}
}
