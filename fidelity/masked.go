package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// MaxMaskedPairs is how many masked pairs a Report lists. Further ones are counted.
const MaxMaskedPairs = 1000

// NotMatched is the mask of what is no part of what two requests are matched by: ids that pair calls of tools with their results,
// the boundary of a multipart body, keys that say nothing to a model.
const NotMatched = "not-matched"

// SecretMask is the mask of a placeholder that stands for another secret on the other side.
const SecretMask = "secret"

// A MaskedPair is a place at which two records differ though they compare as equal, since a mask takes out what differs.
type MaskedPair struct {
	Lane      string  `json:"lane,omitempty"`
	Seq       *uint64 `json:"seq,omitempty"` // of the first pair of records that has it
	ReplaySeq *uint64 `json:"replay_seq,omitempty"`
	Place     string  `json:"place"`
	Mask      string  `json:"mask"`
	Recorded  string  `json:"recorded"`
	Replay    string  `json:"replay"`
	Records   int     `json:"records"` // in how many pairs of records it stands
	// Settled says that the pair leaves no doubt: a person wrote the mask, or no run can give the value again.
	Settled bool `json:"settled,omitempty"`
}

// maxMaskedValue bounds a value in a report, in bytes.
const maxMaskedValue = 1000

func bounded(value string) string {
	if len(value) > maxMaskedValue {
		value = value[:bodies.CutAt(value, maxMaskedValue)] + "…"
	}
	return value
}

// maxShownMasked is how many characters of a value a line about a masked pair holds.
const maxShownMasked = 120

// String is the pair in one line.
func (p *MaskedPair) String() string {
	s := fmt.Sprintf("%s %s: %s → %s", p.Mask, p.Place, clipped(p.Recorded), clipped(p.Replay))
	if p.Lane != "" {
		s = p.Lane + ", " + s
	}
	if p.Records > 1 {
		s += fmt.Sprintf(" (and in %s more)", records(p.Records-1))
	}
	return s
}

func clipped(s string) string {
	if runes := []rune(s); len(runes) > maxShownMasked {
		s = string(runes[:maxShownMasked-1]) + "…"
	}
	return cmp.Or(visible.Line(s), "(nothing)")
}

// Doubtful is how many masked pairs leave the verdict in doubt: it is FAITHFUL, masked, and not FAITHFUL alone.
func (r *Report) Doubtful() int {
	n := r.moreDoubtful
	for i := range r.MaskedPairs {
		if !r.MaskedPairs[i].Settled {
			n++
		}
	}
	return n
}

// doubts names the masks of the pairs that leave a doubt, with how many each has.
func (r *Report) doubts() string {
	counts := make(map[string]int)
	for i := range r.MaskedPairs {
		if p := &r.MaskedPairs[i]; !p.Settled {
			counts[p.Mask]++
		}
	}
	var items []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		items = append(items, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if r.moreDoubtful > 0 {
		items = append(items, fmt.Sprintf("and %d more", r.moreDoubtful))
	}
	return strings.Join(items, ", ")
}

// hiding is what masks hid in the records of one comparison.
type hiding struct {
	index   map[pairKey]int  // in the report, of each pair that it lists
	told    map[pairKey]bool // those that were said as divergences
	brought map[string]bool  // whether a name stood in an answer before the program had it
	given   []source         // what both programs were given, as far as that differs, and their arguments
	read    int64            // bytes
}

// pairKey is what two pairs share that are one to a person.
type pairKey struct{ place, mask, was, now string }

// A verdict of judge.
type judgement uint8

const (
	inDoubt judgement = iota // masked: nothing tells whether the values differ by chance
	settled                  // a note
	differs                  // a divergence
)

// judge says what a place is at which a mask hides a difference.
func (c *laneCompare) judge(h *hidden, of pair) judgement {
	switch {
	case h.own, h.mask == AnswerIDs, masks.IsPath(h.mask), masks.Unrepeatable(h.mask, h.now):
		return settled
	case h.mask == SecretMask: // a run may be given another, by a person
		return inDoubt
	case !masks.Fits(h.mask, h.was, h.now):
		return differs
	case masks.IsDuration(h.mask):
		return c.judgeDuration(h, of)
	case c.crossed(h):
		return settled
	case c.exactly() && !c.ownTime(h), c.isConstant(h, of):
		return differs
	}
	return inDoubt
}

// exactly reports whether no mask that guesses holds: both runs were given time and randomness, or bytes count.
func (c *laneCompare) exactly() bool { return c.o.Exact || c.mode == ByteIdentical }

// ownTime reports whether two values may be times of one moment of the runs, of which a replay read its own.
func (c *laneCompare) ownTime(h *hidden) bool {
	from := c.o.OwnTimes
	return !from.IsZero() && !c.isNew(h) && c.mode != ByteIdentical && masks.Near(h.mask, h.was, h.now, from, from.Add(c.lasted()))
}

// lasted is how long the longer of the runs took, as far as its records tell.
func (c *laneCompare) lasted() time.Duration {
	ms := int64(0)
	for s := range c.sides {
		for _, e := range c.sides[s].entries {
			if e.rec != nil {
				ms = max(ms, e.rec.MonotonicMS)
			}
		}
	}
	return time.Duration(ms) * time.Millisecond
}

// crossed reports whether both values are times that their runs read: who read which is a matter of moments.
func (c *laneCompare) crossed(h *hidden) bool {
	if c.mode == ByteIdentical || c.isNew(h) {
		return false
	}
	was, okWas := masks.MomentOf(h.mask, h.was)
	now, okNow := masks.MomentOf(h.mask, h.now)
	return okWas && okNow && was.Unit == now.Unit && slices.ContainsFunc(c.o.Times[Recorded], was.Has) && slices.ContainsFunc(c.o.Times[Replay], now.Has)
}

// isNew reports whether the value of the replay stands in what is new in its program.
func (c *laneCompare) isNew(h *hidden) bool { return c.o.New != nil && c.o.New(h.now) }

// judgeDuration tells two measurements from two settings, one of which the program of the replay holds: a measured time is no longer than the run was by then, or two readings of
// the time since the machine began lie as far apart as the runs; and a measurement is seldom round.
func (c *laneCompare) judgeDuration(h *hidden, of pair) judgement {
	between := float64(of.b.rec.VirtualTimeMS - of.a.rec.VirtualTimeMS)
	apart := math.Abs(h.ms[Replay] - h.ms[Recorded] - between)
	possible := h.ms[Recorded] <= elapsed(of.a) && h.ms[Replay] <= elapsed(of.b) || between > 0 && apart <= max(elapsed(of.a), elapsed(of.b))
	written := h.round[Recorded] && h.round[Replay]
	switch {
	case written && !possible, c.exactly() && (written || !possible), c.isGiven(h), c.isNew(h):
		return differs
	case c.exactly():
		return settled
	}
	return inDoubt
}

// elapsed is how long a run had gone on when a record was written, in ms; a tape that does not say allows anything.
func elapsed(e *entry) float64 {
	if e.rec.MonotonicMS <= 0 {
		return 1e18
	}
	return float64(e.rec.MonotonicMS)
}

// isConstant reports whether it is known that a value is no chance: the programs were given it, or it is a name that stands
// unchanged at another place, where no answer brought it.
func (c *laneCompare) isConstant(h *hidden, of pair) bool {
	if c.isGiven(h) {
		return true
	}
	if !masks.Names(h.mask) {
		return false
	}
	return h.kept != "" && !c.broughtIn(h.kept, of)
}

// minGiven is how many bytes of a value are no chance in what a program was given.
const minGiven = 4

// isGiven reports whether what the programs were given, their arguments or files that differ, holds the value of one side there and
// not that of the other.
func (c *laneCompare) isGiven(h *hidden) bool {
	if h.argument {
		return false
	}
	if c.hiding.given == nil {
		c.hiding.given = c.whatWasGiven()
	}
	holds := func(text, value string) bool { return len(value) >= minGiven && strings.Contains(text, value) }
	args := c.hiding.given[0]
	return holds(args.was, h.was) != holds(args.now, h.now) || slices.ContainsFunc(c.hiding.given[1:], func(s source) bool {
		return holds(s.was, h.was) && !holds(s.now, h.was) || holds(s.now, h.now) && !holds(s.was, h.now)
	})
}

// whatWasGiven begins with the arguments.
func (c *laneCompare) whatWasGiven() []source {
	var args [2]string
	for s := range args {
		if p := c.programOf(Side(s)); p != nil {
			args[s] = strings.Join(p.Args, "\x00")
		}
	}
	out := []source{{was: args[Recorded], now: args[Replay]}}
	for _, in := range c.o.Inputs {
		if in.Chance {
			continue
		}
		was, errA := in.Bytes(Recorded)
		now, errB := in.Bytes(Replay)
		if errA == nil && errB == nil {
			out = append(out, source{was: string(was), now: string(now)})
		}
	}
	return out
}

// maxGiven bounds the names that are looked for in answers.
const maxGiven = 200

// broughtIn reports whether a name stood in an answer that came before a pair: what the program says again of it is no constant
// of its own. Where that is not known it says so too.
func (c *laneCompare) broughtIn(name string, of pair) bool {
	if yes, known := c.hiding.brought[name]; known {
		return yes
	}
	if len(c.hiding.brought) >= maxGiven {
		return true
	}
	if c.hiding.brought == nil {
		c.hiding.brought = make(map[string]bool)
	}
	found := false
	for i := range c.sides[Recorded].entries {
		e := &c.sides[Recorded].entries[i]
		if e.at >= of.a.at || found {
			break
		}
		if e.rec == nil {
			continue
		}
		for _, p := range answersOf(e.rec.Kind) {
			b, err := c.hiddenBytes(p, Recorded)
			found = found || err != nil || strings.Contains(string(b), name)
		}
	}
	c.hiding.brought[name] = found
	return found
}

// answersOf are the payloads of a record that came from outside.
func answersOf(k tape.Kind) []*tape.Payload {
	if ex := tape.ExchangeOf(k); ex != nil {
		return []*tape.Payload{ex.Response}
	}
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		return []*tape.Payload{k.Response, k.Request}
	case *tape.WSMessage:
		return []*tape.Payload{k.Payload}
	}
	return nil
}

// hide lists what masks hid in a pair of records, and reports as divergences what is none of their business.
func (c *laneCompare) hide(lane string, of pair, at int, found []hidden) {
	for i := range found {
		h := &found[i]
		switch j := c.judge(h, of); j {
		case differs:
			c.unmask(lane, of, at, h)
		default:
			c.list(lane, of, h, j == settled)
		}
	}
}

func (c *laneCompare) list(lane string, of pair, h *hidden, settled bool) {
	key := pairKey{h.place, h.mask, h.was, h.now}
	if i, ok := c.hiding.index[key]; ok {
		c.report.MaskedPairs[i].Records++
		return
	}
	if len(c.report.MaskedPairs) >= MaxMaskedPairs {
		if c.report.MoreMaskedPairs++; !settled {
			c.report.moreDoubtful++
		}
		return
	}
	if c.hiding.index == nil {
		c.hiding.index = make(map[pairKey]int)
	}
	c.hiding.index[key] = len(c.report.MaskedPairs)
	c.report.MaskedPairs = append(c.report.MaskedPairs, MaskedPair{
		Lane: lane, Seq: new(of.a.rec.Seq), ReplaySeq: new(of.b.rec.Seq), Place: h.place, Mask: h.mask,
		Recorded: bounded(h.was), Replay: bounded(h.now), Records: 1, Settled: settled,
	})
}

// unmask reports a place as a divergence. What was said of an earlier record is not said again of each that repeats it.
func (c *laneCompare) unmask(lane string, of pair, at int, h *hidden) {
	key := pairKey{h.place, h.mask, h.was, h.now}
	if c.hiding.told[key] {
		return
	}
	if c.hiding.told == nil {
		c.hiding.told = make(map[pairKey]bool)
	}
	c.hiding.told[key] = true
	f := finding{
		category: MaskedValue, message: h.place + " changed, which the mask " + h.mask + " does not excuse",
		values: [2]string{bodies.Shorten(h.was), bodies.Shorten(h.now)},
	}
	div := divergenceOf(&f, of.a.rec, of.b.rec)
	div.Lane = lane
	div = div.complete(&f, c.o.Sides, subjectOf(of.a.rec.Kind))
	ev := evidenceOf(&div, &f)
	ev.news = []string{h.now}
	c.place(placed{at: at, Divergence: div, rec: of.b.rec, evidence: ev})
}
