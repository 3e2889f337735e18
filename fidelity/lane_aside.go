package fidelity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// setUpgradesAside takes out the requests for another protocol that were refused (tape.Exchange.UpgradeRefused), and notes where
// one side has more of them: their answer says nothing, and a client that wants a WebSocket asks again as it likes. One that
// nothing recorded is like gates.
func (c *laneCompare) setUpgradesAside() {
	refused := make(map[uint64]*upgrades)
	for s := range c.sides {
		for i := range c.sides[s].entries {
			e := &c.sides[s].entries[i]
			if e.rec == nil {
				continue
			}
			ex := tape.ExchangeOf(e.rec.Kind)
			if ex == nil || !ex.UpgradeRefused() || ex.Lane == laneUnmatched {
				continue
			}
			id := c.differ.identity(e.rec.Kind)
			u := refused[id]
			if u == nil && Side(s) == Replay {
				continue
			}
			if u == nil {
				u = &upgrades{what: describe(e.rec.Kind)}
				refused[id] = u
			}
			u.times[s]++
			e.rec = nil
		}
	}
	for _, u := range slices.SortedFunc(maps.Values(refused), (*upgrades).compare) {
		if u.times[Recorded] != u.times[Replay] {
			c.note("%s: refused upgrades do not gate (%d recorded, %d on replay)", u.what, u.times[Recorded], u.times[Replay])
		}
	}
}

// upgrades are equal requests for another protocol.
type upgrades struct {
	what  string
	times [2]int // that it was refused, by side
}

func (u *upgrades) compare(v *upgrades) int { return cmp.Compare(u.what, v.what) }

// setVerdictsAside takes out the verdicts of policies where one side has none: they are those of a daemon that the program knows
// nothing of, and a replay asks none. Two runs that both asked are compared.
func (c *laneCompare) setVerdictsAside() {
	var verdicts [2][]*entry
	for s := range c.sides {
		for i := range c.sides[s].entries {
			e := &c.sides[s].entries[i]
			if e.rec == nil {
				continue
			}
			if _, ok := e.rec.Kind.(*tape.PolicyVerdict); ok {
				verdicts[s] = append(verdicts[s], e)
			}
		}
	}
	was, now := len(verdicts[Recorded]), len(verdicts[Replay])
	if was+now == 0 || was > 0 && now > 0 {
		return
	}
	for _, e := range slices.Concat(verdicts[Recorded], verdicts[Replay]) {
		e.rec = nil
	}
	c.note("verdicts of policies do not gate where one side asked none (%d recorded, %d on replay)", was, now)
}
