package fidelity

import (
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxSideRead bounds, in bytes, the bodies of one comparison that are read to find side traffic.
const maxSideRead = 256 << 20

// A sideRoute is the requests of a route, of both sides.
type sideRoute struct {
	sidetraffic.Route
	entries [2][]*entry
	old     bool // a recorder said that they are telemetry, and kept no digest of them
}

// ignoreSideTraffic takes out side traffic that differs. What is alike stays, and counts as compared.
func (c *ignoring) ignoreSideTraffic() {
	if c.mode == ByteIdentical {
		return
	}
	routes := make(map[sidetraffic.Route]*sideRoute)
	var spans [2]sidetraffic.Span
	for s, e := range c.records(anything) { // each record says how long the run went on
		spans[s].Add(e.rec.VirtualTimeMS)
		x, ok := e.rec.Kind.(*tape.HTTPExchange)
		if !ok || strings.HasPrefix(x.Lane, laneMCP) || x.UpgradeRefused() {
			continue
		}
		at := sidetraffic.RouteOf(x.Method, x.URL)
		if routes[at] == nil {
			routes[at] = &sideRoute{Route: at}
		}
		r := routes[at]
		r.entries[s], r.old = append(r.entries[s], e), r.old || x.IsTelemetry()
	}
	for _, at := range slices.SortedFunc(maps.Keys(routes), sidetraffic.Route.Compare) {
		c.ignoreRoute(routes[at], &spans[Recorded])
	}
}

// ignoreRoute takes the requests of a route out, where they differ and are side traffic.
func (c *ignoring) ignoreRoute(r *sideRoute, run *sidetraffic.Span) {
	said := c.o.Side.Of(r.Route)
	added, gone := c.unequal(r)
	if said == sidetraffic.Gates || len(added)+len(gone) == 0 {
		return
	}
	why := SideTold
	switch {
	case said == sidetraffic.Ignored:
	case r.old || c.reports(r, run):
		why = SideReports
		isRefused := func(e *entry) bool { return isRefused(e.rec.Kind) }
		r.entries[Replay] = slices.DeleteFunc(r.entries[Replay], isRefused) // one that has another form than they have
		added = slices.DeleteFunc(added, isRefused)
	default:
		c.ignoreAskedAgain(r, added, gone)
		return
	}
	if len(added)+len(gone) > 0 {
		c.oneSide(r, why, added, gone)
	}
	for _, es := range r.entries {
		for _, e := range es {
			e.rec = nil
		}
	}
}

// oneSide reports side traffic that differs: added are those of the replay that nothing recorded is like, gone the recorded ones that
// nothing of the replay is.
func (c *ignoring) oneSide(r *sideRoute, why string, added, gone []*entry) {
	t := SideTraffic{
		Method: r.Method, Host: r.Host, Path: r.Path, Why: why,
		Recorded: len(r.entries[Recorded]), Replay: len(r.entries[Replay]), Differ: len(added),
	}
	if len(added) > 0 && len(gone) > 0 && !c.spent() {
		changes, _ := c.requestChanges(gone[0].rec, added[0].rec)
		t.Changes = changes[:min(len(changes), causeChanges)]
	}
	c.report.Side = append(c.report.Side, t)
}

// unequal returns the requests of a route that one side alone has, equal ones set off against each other.
func (c *ignoring) unequal(r *sideRoute) (added, gone []*entry) {
	type identity struct { // masks excuse nothing
		id   uint64
		body cas.Digest
	}
	of := func(e *entry) identity {
		is := identity{id: c.identityOf(e)}
		if p := tape.ExchangeOf(e.rec.Kind).RequestPayload; p != nil {
			is.body = p.Hash
		}
		return is
	}
	was := make(map[identity]int)
	for _, e := range r.entries[Recorded] {
		was[of(e)]++
	}
	for _, e := range r.entries[Replay] {
		if id := of(e); was[id] > 0 && !isRefused(e.rec.Kind) {
			was[id]--
		} else {
			added = append(added, e)
		}
	}
	for _, e := range slices.Backward(r.entries[Recorded]) {
		if id := of(e); was[id] > 0 {
			was[id]--
			gone = append(gone, e)
		}
	}
	slices.Reverse(gone)
	return added, gone
}

// reports reports whether the recorded requests of a route report what happened in the run.
func (c *ignoring) reports(r *sideRoute, run *sidetraffic.Span) bool {
	var all []sidetraffic.Exchange
	for _, e := range r.entries[Recorded] {
		ex := tape.ExchangeOf(e.rec.Kind)
		if ex.Status == 0 {
			continue
		}
		asked, errA := c.readFor(&c.seen, ex.RequestPayload, Recorded)
		answer, errB := c.readFor(&c.seen, ex.Response, Recorded)
		if errA != nil || errB != nil || c.seen > maxSideRead {
			return false
		}
		if c.o.RequestBody != nil {
			asked = c.o.RequestBody(ex, asked)
		}
		all = append(all, sidetraffic.Exchange{Status: ex.Status, Asked: asked, Answer: c.answer(ex, answer)})
	}
	return len(all) > 0 && sidetraffic.Reports(all, run)
}

// ignoreAskedAgain takes out the questions that one side asked more often, where they are asked again and again.
func (c *ignoring) ignoreAskedAgain(r *sideRoute, added, gone []*entry) {
	byID := make(map[uint64]*sideRoute)
	for s := range r.entries {
		for _, e := range r.entries[s] {
			id := c.identityOf(e)
			if byID[id] == nil {
				byID[id] = &sideRoute{Route: r.Route}
			}
			byID[id].entries[s] = append(byID[id].entries[s], e)
		}
	}
	changed := make(map[*sideRoute][]*entry)
	var questions []*sideRoute // in their order
	for _, e := range slices.Concat(added, gone) {
		q := byID[c.identityOf(e)]
		if changed[q] == nil {
			questions = append(questions, q)
		}
		changed[q] = append(changed[q], e)
	}
	questions = slices.DeleteFunc(questions, func(q *sideRoute) bool { // each is looked at once, while all records stand
		return !q.askedAgain() || c.inOneGo(q, Recorded) && c.inOneGo(q, Replay)
	})
	for _, q := range questions {
		c.oneSide(q, SideAsked, nil, nil)
		for _, e := range changed[q] {
			e.rec = nil
		}
	}
}

// askedAgain reports whether equal requests are one question, asked again and again with the same answer.
func (r *sideRoute) askedAgain() bool {
	return sidetraffic.AskedAgain(r.Method, len(r.entries[Recorded])) && len(r.entries[Replay]) > 0 &&
		equalResults(slices.Concat(r.entries[Recorded], r.entries[Replay]))
}

// maxSoon is how long after an answer the same is asked again by who does not wait for a timer, in ms.
const maxSoon = 500

// inOneGo reports whether one thread asked all of them one after the other while nothing else of the run went on, neither a request nor another
// process than those that it is of: how often it tried is what the program does then, and no timer's. A runtime with timers of its own must have
// asked again at once.
func (c *ignoring) inOneGo(r *sideRoute, s Side) bool {
	es := r.entries[s]
	by := numberOf(es[0].rec, tape.OpenerKey)
	if by == 0 {
		return false
	}
	for i, e := range es { // as they came
		switch {
		case begunAt(e.rec) == 0 || numberOf(e.rec, tape.OpenerKey) != by:
			return false
		case i > 0 && begunAt(e.rec) < endedAt(es[i-1].rec):
			return false
		}
	}
	from, to := begunAt(es[0].rec), endedAt(es[len(es)-1].rec)
	asked := make(map[*entry]bool, len(es))
	for _, e := range es {
		asked[e] = true
	}
	parents := make(map[uint64]uint64)
	var beside []uint64
	for e := range c.sides[s].records(anything) {
		k, isProcess := e.spawn()
		if isProcess && tape.FieldValue(k.Extra, tape.ThreadKey) == nil {
			parents[k.SpawnID] = k.ParentSpawnID
		}
		if isProcess && k.SpawnID == by && tape.HasFlag(k, tape.OwnTicksKey) && s == Recorded && !soonAfter(es) {
			return false
		}
		switch began := begunAt(e.rec); {
		case began == 0 || began > to || endedAt(e.rec) < from || asked[e]:
		case !isProcess:
			return false
		case tape.HasFlag(k, tape.ForkedKey) && k.ParentSpawnID == by && tape.FieldValue(k.Extra, tape.ThreadKey) == nil: // the threads of its own runtime
		default:
			beside = append(beside, k.SpawnID)
		}
	}
	for of := by; of != 0; {
		beside = slices.DeleteFunc(beside, func(id uint64) bool { return id == of })
		next := parents[of]
		delete(parents, of) // no circle
		of = next
	}
	return len(beside) == 0
}

// soonAfter reports whether each came soon after the one before.
func soonAfter(es []*entry) bool {
	for i := 1; i < len(es); i++ {
		if es[i].rec.MonotonicMS-es[i-1].rec.MonotonicMS > maxSoon {
			return false
		}
	}
	return true
}

// equalResults reports whether all requests got the same answer.
func equalResults(es []*entry) bool {
	first := resultOf(es[0].rec.Kind)
	return first.status != 0 && first.failure == "" && !slices.ContainsFunc(es, func(e *entry) bool { return resultOf(e.rec.Kind) != first })
}
