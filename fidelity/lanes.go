package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// CompareLanes compares the tapes of two recordings lane by lane: every conversation, host, process and MCP server by
// itself, the files of the work tree sorted by path. Within a lane records are aligned by what they are about, so that one
// that is missing or new is one divergence. It holds the records of both tapes, not their payloads. The error is that of
// the tape that could not be read, with its side named.
func CompareLanes(mode Mode, recorded, replay Records, o *LaneOptions) (*Report, error) {
	if int(mode) >= len(modeNames) {
		return nil, fmt.Errorf("unknown mode %d", mode)
	}
	base := newComparison(mode, o)
	err := readBoth(base.o.Sides, recorded, replay, func(s Side, rec *tape.Record) {
		base.report.count(s)
		base.sides[s].add(rec)
	})
	if err != nil {
		return nil, err
	}
	c := &laneCompare{
		comparison: base, models: newModelCalls(base), masked: newMaskings(base), order: newOrdering(base), ends: newEndings(base),
		renamed: make(map[string]bool),
	}
	base.differ.models = c.models
	alive := (&ignoring{comparison: base}).ignore()
	files := &fileLane{c}
	var lanes [2][]*lane
	var urls [2]map[string]string
	atOnce(func(s Side) {
		lanes[s], urls[s] = lanesOf(base, s)
	})
	maps.Copy(base.urls, urls[Recorded])
	maps.Copy(base.urls, urls[Replay])
	for _, p := range pairLanes(lanes[Recorded], lanes[Replay]) {
		switch p.name {
		case laneFiles:
			files.compare(p)
		case laneNetwork:
			(&networkLane{c, alive}).compare(p)
		default:
			c.lane(p)
		}
	}
	files.compareLong()
	c.order.compare()
	compareScreens(base)
	return c.finish(), nil
}

// laneCompare compares record by record.
type laneCompare struct {
	*comparison
	models    *modelCalls
	masked    *maskings
	order     *ordering
	ends      *endings
	elsewhere elsewhere
	renamed   map[string]bool // lanes of which it was said that their server has another name
}

// lane compares one lane in order of arrival.
func (c *laneCompare) lane(p lanePair) {
	if c.aloneConversation(p) {
		return
	}
	rules := &pairRules{likely: []func(tape.Kind) string{likelyCall, likely}, reorder: true, caller: c.masked.headerHash}
	if p.name == laneProgram {
		rules.likely = []func(tape.Kind) string{tape.Kind.Name} // whatever ran: there is one
	}
	pairs, moved := pairUp(p.a, p.b, rules)
	if moved > 0 {
		c.order.callOrder(p.name, pairs, moved)
	}
	at := 0
	behind := len(c.found)
	for _, pr := range pairs {
		if pr.b != nil {
			at = pr.b.at
		}
		for ; pr.a != nil && pr.b != nil && behind < len(c.found); behind++ {
			if p := &c.found[behind]; p.rank == 1 && thenAsked(p.rec, pr.a.rec) {
				p.next = at
			}
		}
		c.pair(p.name, pr, at)
	}
}

// thenAsked reports whether one thread, or process, made the request y once x had ended.
func thenAsked(x, y *tape.Record) bool {
	by := numberOf(x, tape.OpenerKey)
	return by != 0 && by == numberOf(y, tape.OpenerKey) && endedAt(x) < begunAt(y)
}

// pair compares two records of a lane, or reports the one that is alone. at is where the replay had come to.
func (c *laneCompare) pair(lane string, p pair, at int) {
	switch {
	case p.b == nil:
		c.alone(Recorded, lane, p.a, at)
	case p.a == nil:
		c.alone(Replay, lane, p.b, at)
	case !c.skipped(p):
		c.both(lane, p, at)
	}
}

// skipped reports whether a pair does not count: clock reads of the runtime in PhaseAware.
func (c *laneCompare) skipped(p pair) bool {
	_, clock := p.a.rec.Kind.(*tape.ClockRead)
	return clock && c.mode == PhaseAware && p.a.runtime() && p.b.runtime()
}

func (c *laneCompare) both(lane string, p pair, at int) {
	p = c.heardElsewhere(p)
	c.order.keep(p)
	d := c.differ
	d.exact = c.mode == ByteIdentical || c.mode == PhaseAware && !p.a.runtime()
	if lane == laneProgram && c.o.ProgramReplaced {
		d.replaced = true
		c.note("another program ran%s", c.report.names.versus(describe(p.a.rec.Kind), describe(p.b.rec.Kind)))
	}
	if s := c.o.Screens; s != nil && s.Gate && lane == laneProgram {
		d.onScreen = s.Stream
	}
	if !d.exact {
		c.ends.pair(p)
	}
	d.child = lane != laneProgram && (hasStreams(p.a.rec) || hasStreams(p.b.rec))
	if call := callOf(p.a.rec); call != nil && call.IsCall() {
		c.report.MCPCalls++
	}
	d.renamed = c.renamed[lane]
	var last []Change
	findings := d.record(p.a.rec, p.b.rec)
	findings = c.masked.look(lane, p, at, &d, findings)
	if d.child {
		findings = append(findings, (&streamCompare{c.masked}).compare(lane, p, at)...)
	}
	for _, f := range findings {
		if f.category == MCPServer || f.category == MCPOpenServer {
			c.renamed[lane] = true
		}
		div := divergenceOf(&f, p.a.rec, p.b.rec)
		div.Lane = lane
		c.explain(&div, &f)
		about := ""
		if lane != laneProgram { // which says whose
			about = subjectOf(p.a.rec.Kind)
		}
		div = div.complete(&f, c.o.Sides, about)
		ev := evidenceOf(&div, &f)
		if len(last) > 0 && slices.Equal(div.Changes, last) {
			div.Cause, div.Changes, div.MoreChanges, div.rest = "", nil, 0, nil // two digests of one body
		} else {
			last = div.Changes
		}
		pl := placed{at: at, Divergence: div, rec: p.b.rec, evidence: ev}
		c.refusedPair(lane, &pl, p)
		c.place(pl)
	}
}

// alone reports a record that has no counterpart. Exchanges are listed as unasked or refused too.
func (c *laneCompare) alone(s Side, lane string, e *entry, at int) {
	if _, clock := e.rec.Kind.(*tape.ClockRead); clock && c.mode == PhaseAware && e.runtime() {
		return
	}
	if c.ends.unfinished(s, e) {
		return
	}
	p := placed{Divergence: missing(s, e.rec, c.o.Sides), at: at, rank: 1 - int(s), rec: e.rec}
	p.evidence = evidenceAlone(s, e.rec.Kind)
	p.Lane = lane
	switch asked, ok := c.requestIn(lane, e.rec.Kind); {
	case !ok:
	case s == Recorded && c.mode != ByteIdentical && c.ends.needless(e):
		return
	case s == Recorded:
		if !c.report.names.named() {
			p.Message = "recorded and never asked for: " + asked.String()
		}
		c.report.Unasked = append(c.report.Unasked, asked.ref(p.Seq, lane))
	case isRefused(e.rec.Kind):
		p.Message = "asked for and not recorded: " + asked.String()
		p.Cause = asked.failure
		c.refuse(&p, e, asked)
	}
	c.place(p)
}

// refuse lists a request of the replay that nothing answered.
func (c *laneCompare) refuse(p *placed, e *entry, asked *request) {
	c.report.Refused = append(c.report.Refused, asked.ref(p.ReplaySeq, p.Lane))
	c.refusals = append(c.refusals, refusal{p.at, e.rec.Seq, asked})
	p.refused = e
}

// finish makes the report of what was found.
func (c *laneCompare) finish() *Report {
	c.ends.tell()
	c.pids.tell(c.comparison)
	c.models.tell()
	c.elsewhere.tell(c)
	bySeq := func(a, b RequestRef) int { return cmp.Compare(*a.Seq, *b.Seq) }
	slices.SortStableFunc(c.report.Unasked, bySeq)
	slices.SortStableFunc(c.report.Refused, bySeq)
	if c.o.Crossed > 0 {
		c.report.add(Divergence{
			Category: Crossed, Message: fmt.Sprintf("%d answers were served to a request of another key, or twice", c.o.Crossed),
		})
	}
	if c.mode != Outcome {
		c.report.ModelCalls = c.sides[Recorded].calls
		explainAll(c.comparison)
		c.report.rate()
		return c.report
	}
	c.report.add(c.outcome(Recorded).diff(c.outcome(Replay), c.o.Sides)...)
	for i := range c.found {
		if c.found[i].Category == MaskedValue { // of files: digests are equal
			c.report.add(c.found[i].Divergence)
		}
	}
	c.report.rateOutcome()
	return c.report
}

// outcome folds what gates on one side.
func (c *laneCompare) outcome(s Side) *outcome {
	o := newOutcome()
	for e := range c.sides[s].records() {
		o.addMasked(e.rec.Kind)
	}
	return o
}
