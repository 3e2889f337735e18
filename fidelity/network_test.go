package fidelity

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestNamesAndSockets: what one side alone looked up or tried gates where both were given the same time and randomness; the order, and
// how often, does not count.
func TestNamesAndSockets(t *testing.T) {
	type kinds = []tape.Kind
	name := func(host, typ string) tape.Kind { return &tape.NameLookup{Host: host, Type: typ, Result: "answered"} }
	udp := &tape.NetRefused{Addr: "stats.test", Port: 8125, Reason: "udp"}
	unix := &tape.NetRefused{Addr: "/run/docker.sock", Reason: "unix"}
	for test, tt := range map[string]struct {
		a, b kinds
		want [2]int // divergences, without and with the same time and randomness
	}{
		"another order":     {kinds{name("a.test", "A"), name("a.test", "AAAA")}, kinds{name("a.test", "AAAA"), name("a.test", "A")}, [2]int{0, 0}},
		"another name":      {kinds{name("a.test", "A")}, kinds{name("b.test", "A")}, [2]int{0, 2}},
		"another type":      {kinds{name("a.test", "A")}, kinds{name("a.test", "MX")}, [2]int{0, 2}},
		"no datagram":       {kinds{udp}, nil, [2]int{0, 1}},
		"a datagram":        {nil, kinds{udp}, [2]int{1, 1}},
		"a Unix socket":     {nil, kinds{unix}, [2]int{0, 1}},
		"no Unix socket":    {kinds{unix}, nil, [2]int{0, 1}},
		"answered, refused": {kinds{name("a.test", "A")}, kinds{&tape.NameLookup{Host: "a.test", Type: "A", Result: "refused"}}, [2]int{0, 2}},
	} {
		for i, exact := range []bool{false, true} {
			if r := compareLanes(t, Semantic, tt.a, tt.b, &LaneOptions{Exact: exact}); len(r.Divergences) != tt.want[i] {
				t.Errorf("%s, exact %v: %v, want %d", test, exact, r.Divergences, tt.want[i])
			}
		}
	}
	r := compareLanes(t, Semantic, nil, kinds{name("a.test", "A"), unix}, &LaneOptions{Format1: true})
	if len(r.Divergences)+len(r.Notes) > 0 {
		t.Errorf("of format 1: %v, %v", r.Divergences, r.Notes)
	}
}
