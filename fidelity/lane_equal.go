package fidelity

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/align"
	"github.com/tapedeck-dev/tapedeck/internal/grpcstatus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
	groups := make(map[uint64]*equals)
	var out []*equals
	for i, j := range p.ofA {
		if j < 0 || p.a[i].id != p.b[j].id || !hasOutcome(p.a[i].rec.Kind) {
			continue
		}
		g := groups[p.a[i].id]
		if g == nil {
			g = new(equals)
			groups[p.a[i].id] = g
		}
		if g.a, g.b = append(g.a, i), append(g.b, j); len(g.a) == 2 {
			out = append(out, g)
		}
	}
	for _, g := range out {
		slices.Sort(g.b)
	}
	return out
}

// partners returns, for each of g.a, the index in g.b of the one to compare it with.
func (g *equals) partners(p *pairing, caller func(tape.Kind) uint64) []int {
	out, taken := align.Unpaired(len(g.a)), make([]bool, len(g.b))
	p.pairResults(g, out, taken, caller)
	p.pairResults(g, out, taken, func(tape.Kind) uint64 { return 0 })
	next := 0
	for n := range out {
		if out[n] >= 0 {
			continue
		}
		for taken[next] {
			next++
		}
		out[n], taken[next] = next, true
	}
	return out
}

// pairResults pairs those of a group that are still alone and have equal results, and are of one caller as far as their headers tell.
func (p *pairing) pairResults(g *equals, out []int, taken []bool, caller func(tape.Kind) uint64) {
	type callers struct {
		result
		caller uint64
	}
	free := make(map[callers][]int)
	for n, j := range g.b {
		if k := p.b[j].rec.Kind; !taken[n] {
			r := callers{resultOf(k), caller(k)}
			free[r] = append(free[r], n)
		}
	}
	for n, i := range g.a {
		k := p.a[i].rec.Kind
		r := callers{resultOf(k), caller(k)}
		if ns := free[r]; out[n] < 0 && len(ns) > 0 {
			out[n], free[r], taken[ns[0]] = ns[0], ns[1:], true
		}
	}
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
