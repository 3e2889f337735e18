package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// LaneOptions are what CompareLanes needs beside two tapes. The zero value works.
type LaneOptions struct {
	Watch           []string          // paths outside the work tree that gate too, as the tape writes them: ~/x, $TMP/x, /x
	AgentFiles      []string          // of the same form: what an agent logs of itself, which does not gate
	Crossed         int               // answers that replay served to a request of another key, or twice
	Masked          map[string]int    // masks that were used, by name
	Notes           []string          // notes of the caller, put before those found here
	NotCompared     []string          // what was asked for and could not be looked at
	NotCovered      []string          // what the recordings never looked at: a verdict says nothing of it
	Usual           map[string]string // short forms of what in NotCovered all recordings leave out, for the text
	ProgramReplaced bool              // replay ran another program: its path and arguments are a note

	// Sides are what messages call the two recordings, such as A and B. Empty stands for what was recorded and its replay.
	Sides [2]string
	// Masks mask the texts of each side as masks are set now: one argument, path or line of output, so that two of them compare,
	// and each place at which two records differ though their digests agree. nil masks nothing.
	Masks [2]*masks.Masker
	// Payload returns the bytes of a payload of one side, to explain a divergence with, and to see what a file outside the work tree
	// holds (OwnTimes). nil explains with what stands in the records.
	Payload func(p *tape.Payload, s Side) ([]byte, error)
	// Request returns of the body of a model call, as it was recorded, what its digests are of: the matchable surface and the
	// parameters, both JSON; of any other request the body as it compares, and nil. nil explains with the body as it stands.
	Request func(ex *tape.Exchange, body []byte) (surface, params []byte)
	// Answer returns an answer without its Content-Encoding. nil takes it as it stands.
	Answer func(ex *tape.Exchange, body []byte) []byte
	// InCallOrder returns a request to a model with the results of calls of one turn in the order of these calls; nil where there
	// are no two. A nil function compares them as they stand.
	InCallOrder func(ex *tape.Exchange, body []byte) []byte
	// Side is what a project says of paths. nil says nothing.
	Side *SideRules
	// AnswerSurface returns of the answer of a model what two of them compare by, where their bytes differ: decoded, masked,
	// and numbered what a provider makes up for every answer, such as the ids that pair calls of tools with results. nil
	// for an answer that compares by its bytes. A nil function compares all of them by their bytes.
	AnswerSurface func(ex *tape.Exchange, body []byte) []byte
	// RequestBody returns the body of a request without its Content-Encoding. nil takes it as it stands.
	RequestBody func(ex *tape.Exchange, body []byte) []byte
	// Remasked says that the digests of the tapes were taken under other masks than Masks and Request use.
	Remasked bool
	// Exact says that both runs were given the same time and randomness: what a mask of such would hide is a divergence.
	Exact bool
	// Times are the wall times that each run read, in ns since 1970. What runs side by side reads the clock in another order each
	// time: a time of the one that stands where the other has one of its own is a note.
	Times [2][]int64
	// OwnTimes is when the recorded run began, where the replay read times beyond the recorded ones: two times of the run that are near
	// to each other are then in doubt, and files outside the work tree that hold a word which may be made of a time do not gate. The zero
	// value stands for a replay that read none.
	OwnTimes time.Time
	// New reports whether a value stands in what is new in the program of the replay, and so is no measurement. nil stands for no.
	New func(value string) bool
	// SameSecrets says that placeholders of both tapes were made with one key, and stand for one secret where they are equal.
	SameSecrets bool
	// Again is one more replay of the same program, which tells chance from change. nil tells nothing.
	Again *Again
	// Headers says of the header of a request whether it compares. nil compares none.
	Headers func(name string) bool
	// Format1 says that a recording is of format 1, whose tape tells neither directories, FIFOs, whole modes nor attributes of files,
	// nor names that were looked up, Unix sockets and variables of MCP servers: they do not compare.
	Format1 bool
	// Held reports whether the replay found what this file_write of the recording left, and left it so: it wrote the same
	// again, or nothing, which no snapshot tells apart. Such a write, where the replay has no record of its path, is a note.
	// nil stands for no.
	Held func(*tape.Record) bool
	// SameStart says that the replay ran the recorded program with the recorded arguments, environment (but for secrets),
	// stdin and work tree: a request that differs before all else holds something that was new in that run.
	SameStart bool
	// Unseen are the files that the command line names of which nothing tells whether they are as recorded.
	Unseen []string
	// Inputs are what both runs were given and what differs between them: a divergence may follow from one.
	Inputs []Input
	// LongFiles are the files of each side that are too large for a tape, by path, with what tells two of them apart.
	LongFiles [2]map[string]string
	// Screens are what the runs' terminals showed. nil stands for nothing that is known.
	Screens *Screens
}

// An Input is something that two runs were given in different forms: a file of the work tree, stdin, a variable.
type Input struct {
	Name string // for people: "the file notes.txt, which the runs found different"
	// Short is the name in a list of several: "the file notes.txt". Empty is Name.
	Short string
	// Chance says that it may differ by chance from run to run, as a variable of the session does.
	Chance bool
	// Bytes returns what it was on a side; nothing where it was not there. It is called to explain, and to tell what a program was
	// given from what differs by chance.
	Bytes func(s Side) ([]byte, error)
}

// masked returns a text without its volatile parts.
func (o *LaneOptions) masked(s string) string {
	b := scrub.Renumber([]byte(s))
	if m := o.Masks[Recorded]; m != nil {
		b = m.Mask(b)
	}
	return string(b)
}

// SideRules are what a project says of paths: whether they gate, or are side traffic.
type SideRules = sidetraffic.Rules

// CompareLanes compares the tapes of two recordings lane by lane: every conversation, host, process and MCP server by
// itself, the files of the work tree sorted by path. Within a lane records are aligned by what they are about, so that one
// that is missing or new is one divergence. It holds the records of both tapes, not their payloads. The error is that of
// the tape that could not be read, with its side named.
func CompareLanes(mode Mode, recorded, replay Records, o *LaneOptions) (*Report, error) {
	c, err := compareAll(mode, recorded, replay, o, false)
	if err != nil {
		return nil, err
	}
	return c.finish(), nil
}

// compareAll is CompareLanes but for the report; pairing keeps which records stand for each other.
func compareAll(mode Mode, recorded, replay Records, o *LaneOptions, pairing bool) (*laneCompare, error) {
	if int(mode) >= len(modeNames) {
		return nil, fmt.Errorf("unknown mode %d", mode)
	}
	base := newComparison(mode, o)
	if base.o.Again != nil { // they are read twice
		recorded, replay = kept(recorded), kept(replay)
	}
	again, err := pairAgain(base, mode, recorded, replay)
	if err != nil {
		return nil, err
	}
	err = readBoth(base.o.Sides, recorded, replay, func(s Side, rec *tape.Record) {
		base.report.count(s)
		base.sides[s].add(rec, identity(&base.differ, rec.Kind)) // while it is at hand: later it is far away in memory
	})
	if err != nil {
		return nil, err
	}
	base.maskFiles()
	c := &laneCompare{
		comparison: base, ends: newEndings(base), renamed: make(map[string]bool),
		models: &modelCalls{comparison: base, orders: make(map[string]*order)},
		masked: &maskings{comparison: base, index: make(map[pairKey]int), told: make(map[pairKey]bool), brought: make(map[string]bool), again: again},
		order:  &ordering{base, make(map[origin][]pair), make(map[origin]int), make(map[*tape.Record]uint64)},
	}
	c.masked.timing = sync.OnceValue(c.masked.measured)
	base.differ.models = c.models
	if pairing {
		c.paired = make(map[uint64]*tape.Record)
	}
	alive := (&ignoring{comparison: base}).ignore()
	files := &fileLane{laneCompare: c}
	var lanes [2][]*lane
	var urls [2]map[string]string
	atOnce(func(s Side) {
		lanes[s], urls[s] = lanesOf(base, s)
	})
	maps.Copy(base.urls, urls[Recorded])
	maps.Copy(base.urls, urls[Replay])
	all := pairLanes(lanes[Recorded], lanes[Replay])
	var beside sync.WaitGroup
	for _, p := range all {
		if p.name == laneFiles {
			beside.Go(func() { files.pairUp(p) })
		}
	}
	for _, p := range all {
		switch p.name {
		case laneFiles:
		case laneNetwork:
			(&networkLane{c, alive}).compare(p)
		default:
			c.lane(p)
		}
	}
	beside.Wait()
	files.compare()
	files.compareLong()
	c.order.passed()
	c.order.compare()
	compareScreens(base)
	return c, nil
}

// laneCompare compares record by record.
type laneCompare struct {
	*comparison
	models    *modelCalls
	masked    *maskings
	order     *ordering
	ends      *endings
	now       differ // of the pair that is looked at
	elsewhere elsewhere
	paired    map[uint64]*tape.Record // by what was recorded; nil where nobody asks for it
	renamed   map[string]bool         // lanes of which it was said that their server has another name
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
	for _, pr := range pairs {
		if pr.b != nil {
			at = pr.b.at
		}
		c.pair(p.name, pr, at)
	}
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

// begin has what compared the pair before compare the next one.
func (c *laneCompare) begin(d *differ, p pair) {
	*d = c.differ
	d.exact = c.mode == ByteIdentical || c.mode == PhaseAware && !p.a.runtime()
}

func (c *laneCompare) both(lane string, p pair, at int) {
	p = c.heardElsewhere(p)
	c.order.keep(p)
	if c.paired != nil {
		c.paired[p.a.rec.Seq] = p.b.rec
	}
	d := &c.now
	c.begin(d, p)
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
	findings = c.masked.look(lane, p, at, d, findings)
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
	for e := range c.sides[s].records(ofFile | ofProcess | ofExchange) {
		o.addMasked(e.rec.Kind)
	}
	return o
}
