package fidelity

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxHidden bounds the bytes of payloads that are read because they differ, though their digests may agree.
const maxHidden = 512 << 20

// hidden is one place at which two records differ.
type hidden struct {
	place    string
	mask     string // "" where none takes out what differs
	was, now string
	own      bool   // a person wrote the mask
	argument bool   // it stands in the program's arguments themselves
	kept     string // of two names the one that stands on the other side too, elsewhere
	at       int    // in the recorded text
	ms       [2]float64
	round    [2]bool // as a setting is written
}

// maskings looks behind masks: at what differs though digests agree, or digests that differ under masks of before.
type maskings struct {
	*comparison
	index   map[pairKey]int  // in the report, of each pair that it lists
	told    map[pairKey]bool // those that were said as divergences
	brought map[string]bool  // whether a name stood in an answer before the program had it
	again   *again           // nil where the program ran but once
	given   []source         // what both programs were given, as far as that differs, and their arguments; nil before it is needed
	seen    int64            // bytes that were read
	sought  int64            // bytes of long inputs that were looked through
	timing  func() bool      // measured, found once
}

// look holds the bytes of two records that differ against each other, place by place, and returns what of the findings is left: one
// whose places are all taken out by masks, as they are set now, is none. What digests do not tell of, and no mask takes out,
// becomes one.
func (c *maskings) look(lane string, of pair, at int, d *differ, findings []finding) []finding {
	if c.mode == Outcome && lane != laneFiles { // which alone counts
		return findings
	}
	for i := range d.facets {
		f := &d.facets[i]
		told := slices.ContainsFunc(findings, func(g finding) bool { return g.category == f.category })
		if told && d.exact {
			continue
		}
		places, alike := c.places(f, told)
		if !alike {
			places = c.varies(f, of)
			alike = places != nil
		}
		switch {
		case alike:
			findings = slices.DeleteFunc(findings, func(g finding) bool { return g.category == f.category })
			c.hide(lane, of, at, places)
		case !told:
			findings = append(findings, f.differs())
		}
	}
	if d.exact { // which has compared them
		return findings
	}
	return append(findings, c.headerFindings(lane, of, at)...)
}

// places lists where a facet differs, and reports whether it compares as equal all the same. told says that its digests differ.
func (c *maskings) places(f *facet, told bool) ([]hidden, bool) {
	was, errA := c.side(f, Recorded)
	now, errB := c.side(f, Replay)
	if errA != nil || errB != nil {
		return []hidden{{place: f.named(bodies.Spot{}), mask: cmp.Or(f.besides, NotMatched), was: "not looked at", now: "not looked at"}}, !told
	}
	agreed := !told && !c.o.Remasked
	if f.part != ofAnswer && f.a != nil && c.o.Request != nil && !agreed {
		agreed = c.sameSurface(f)
		if !agreed {
			return nil, false
		}
	}
	found, alike := c.placesIn(f, was, now)
	return found, agreed || alike
}

// placesIn lists where two sides of a facet differ, and reports whether masks take out all of it.
func (c *maskings) placesIn(f *facet, was, now []byte) ([]hidden, bool) {
	l := leaves{c: c, f: f, both: [2][]byte{was, now}}
	if f.isText {
		l.leaf(bodies.Spot{}, string(was), string(now))
	} else {
		bodies.Places(string(was), string(now), l.leaf)
		if f.isBytes && !l.unmasked {
			_, same := c.align(string(was), string(now))
			l.unmasked = !same
		}
	}
	return l.found, !l.unmasked
}

// sameSurface reports whether two requests are one to those who match them, as masks are set now.
func (c *maskings) sameSurface(f *facet) bool {
	was, errA := c.hiddenBytes(f.was, Recorded)
	now, errB := c.hiddenBytes(f.now, Replay)
	if errA != nil || errB != nil {
		return false
	}
	surfaceA, paramsA := c.o.Request(f.a, was)
	surfaceB, paramsB := c.o.Request(f.b, now)
	return bytes.Equal(surfaceA, surfaceB) && bytes.Equal(paramsA, paramsB)
}

// side returns what a facet holds on one side, as it reads without its Content-Encoding.
func (c *maskings) side(f *facet, s Side) ([]byte, error) {
	p, ex := f.was, f.a
	if s == Replay {
		p, ex = f.now, f.b
	}
	if f.isText {
		return []byte(f.unescaped(f.texts[s])), nil
	}
	b, err := c.hiddenBytes(p, s)
	switch {
	case err != nil || ex == nil:
		return b, err
	case f.part == ofAnswer:
		return c.answer(ex, b), nil
	case c.o.RequestBody != nil:
		return c.o.RequestBody(ex, b), nil
	}
	return b, nil
}

// unescaped returns a text as masks see it: of a URL without its escapes, where two of them differ in more than those.
func (f *facet) unescaped(text string) string {
	was, errA := url.QueryUnescape(f.texts[Recorded])
	now, errB := url.QueryUnescape(f.texts[Replay])
	if f.place != "URL" || errA != nil || errB != nil || was == now {
		return text
	}
	plain, _ := url.QueryUnescape(text)
	return plain
}

// errSpent says that too much was read to look at more.
var errSpent = errors.New("too much was read")

// hiddenBytes reads a payload beside what explaining may read.
func (c *maskings) hiddenBytes(p *tape.Payload, s Side) ([]byte, error) {
	if p != nil {
		if c.seen += p.Len; c.seen > maxHidden {
			return nil, errSpent
		}
	}
	var account int64
	return c.readFor(&account, p, s)
}

// named is the place at of a facet, for people.
func (f *facet) named(at bodies.Spot) string {
	return cmp.Or(spaced(f.place, at.Path, at.In), "body")
}

// leaves are the places at which the bytes of two sides differ.
type leaves struct {
	c        *maskings
	f        *facet
	both     [2][]byte
	found    []hidden
	unmasked bool // one of them is no mask's
}

// leaf is called with each: two values as they are written, with their key where they have one, or all of two texts.
func (l *leaves) leaf(at bodies.Spot, was, now string) {
	if _, call := l.f.message.(*tape.MCPJSONRPC); call {
		if madeUpInCall[at.Path] {
			return
		}
		at.Path = withinCall(at.Path)
	}
	found, ok := l.c.align(was, now)
	for i := range found {
		h := &found[i]
		h.place = l.f.named(at)
		if line := lineOf(was, h.at); line > 0 {
			h.place += fmt.Sprintf(", line %d", line)
		}
		h.argument = l.f.argument
		if l.f.besides == AnswerIDs {
			h.mask = AnswerIDs
		}
		if masks.Names(h.mask) {
			h.kept = l.kept(h)
		}
	}
	l.found = append(l.found, found...)
	if !ok {
		p := bodies.PairTexts(was, now)
		l.found = append(l.found, hidden{place: l.f.named(at), mask: cmp.Or(l.f.besides, NotMatched), was: p.Was, now: p.Now})
		l.unmasked = true
	}
}

// kept returns the one of two names that stands on the other side too, at another place; "" for none.
func (l *leaves) kept(h *hidden) string {
	switch {
	case h.was != "" && bytes.Contains(l.both[Replay], []byte(h.was)):
		return h.was
	case h.now != "" && bytes.Contains(l.both[Recorded], []byte(h.now)):
		return h.now
	}
	return ""
}

// lineOf counts the line of a text, or of a text as JSON writes it, in which the byte at stands; 0 where it has one line.
func lineOf(text string, at int) int {
	for _, newline := range []string{"\n", `\n`} {
		if strings.Contains(strings.TrimSuffix(text, newline), newline) {
			return strings.Count(text[:at], newline) + 1
		}
	}
	return 0
}

// align returns what masks take out at the same places of two texts, where that differs. It is not ok where they leave another
// difference.
func (c *maskings) align(was, now string) (out []hidden, ok bool) {
	if c.o.SameSecrets {
		out = otherSecrets(was, now)
	}
	a, b := scrub.Renumber([]byte(was)), scrub.Renumber([]byte(now))
	if bytes.Equal(a, b) {
		return out, true
	}
	maskedA, takenA := c.o.Masks[Recorded].Trace(a)
	maskedB, takenB := c.o.Masks[Replay].Trace(b)
	if !bytes.Equal(maskedA, maskedB) {
		return out, false
	}
	return append(out, hiddenIn(a, b, takenA, takenB)...), true
}

// hiddenIn lists what masks took out of two texts, where that is not the same.
func hiddenIn(a, b []byte, takenA, takenB []masks.Taken) (out []hidden) {
	for len(takenA) > 0 || len(takenB) > 0 {
		x, y := nextTaken(&takenA, &takenB)
		h := hidden{mask: x.Mask + y.Mask, own: x.Own || y.Own, at: x.Start}
		if x.Mask == y.Mask {
			h.mask = x.Mask
		}
		h.was, h.now = string(a[x.Start:x.End]), string(b[y.Start:y.End])
		if h.was == h.now {
			continue
		}
		if masks.IsDuration(h.mask) {
			h.ms[Recorded], h.round[Recorded] = masks.Milliseconds(a, x.Start, x.End)
			h.ms[Replay], h.round[Replay] = masks.Milliseconds(b, y.Start, y.End)
		}
		out = append(out, h)
	}
	return out
}

// nextTaken takes the first fact off both lists, or off one where the other has none there: a line that goes without a trace.
func nextTaken(a, b *[]masks.Taken) (x, y masks.Taken) {
	takeA := len(*a) > 0 && (len(*b) == 0 || (*a)[0].At <= (*b)[0].At)
	takeB := len(*b) > 0 && (len(*a) == 0 || (*b)[0].At <= (*a)[0].At)
	if takeA && takeB && (*a)[0].Mask != (*b)[0].Mask { // one of them goes without a trace
		takeB = (*b)[0].Width == 0
		takeA = !takeB
	}
	if takeA {
		x, *a = (*a)[0], (*a)[1:]
	}
	if takeB {
		y, *b = (*b)[0], (*b)[1:]
	}
	return x, y
}

// otherSecrets says that placeholders at one place stand for different secrets.
func otherSecrets(was, now string) []hidden {
	a, b := (*masks.Masker)(nil).Facts([]byte(was)), (*masks.Masker)(nil).Facts([]byte(now))
	if slices.Equal(a, b) || len(a) != len(b) {
		return nil
	}
	return []hidden{{mask: SecretMask, was: "a secret", now: "another secret"}}
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
func (c *maskings) judge(h *hidden, of pair) judgement {
	switch {
	case h.own, h.mask == AnswerIDs, masks.IsPath(h.mask), masks.Unrepeatable(h.mask, h.now):
		return settled
	case h.mask == Varies: // a change of how it is made would not show
		return inDoubt
	case h.mask == SecretMask:
		if c.exactly() && !c.o.ProgramReplaced { // else a person may have given it another
			return differs
		}
		return inDoubt
	case !masks.Fits(h.mask, h.was, h.now):
		return differs
	case masks.IsDuration(h.mask) && c.timing():
		return c.judgeDuration(h, of)
	case c.crossed(h):
		return settled
	case c.exactly() && !c.ownTime(h), c.isConstant(h, of):
		return differs
	}
	return inDoubt
}

// exactly reports whether no mask that guesses holds: both runs were given time and randomness, or bytes count.
func (c *maskings) exactly() bool { return c.o.Exact || c.mode == ByteIdentical }

// measured reports whether what took how long is chance: of a process of one of the runs the monotonic clock was not given, or several threads
// shared it.
func (c *maskings) measured() bool {
	for _, s := range []Side{Recorded, Replay} {
		for e := range c.sides[s].records(ofProcess) {
			if p, ok := e.spawn(); ok && (tape.HasFlag(p, tape.OwnTicksKey) || tape.HasFlag(p, tape.ForkedKey) && p.Ticks != nil) {
				return true
			}
		}
	}
	return !c.exactly()
}

// ownTime reports whether two values may be times of one moment of the runs, of which a replay read its own.
func (c *maskings) ownTime(h *hidden) bool {
	from := c.o.OwnTimes
	return !from.IsZero() && !c.isNew(h) && c.mode != ByteIdentical && masks.Near(h.mask, h.was, h.now, from, from.Add(c.lasted()))
}

// lasted is how long the longer of the runs took, as far as its records tell.
func (c *maskings) lasted() time.Duration {
	ms := int64(0)
	for _, e := range c.records(anything) {
		ms = max(ms, e.rec.MonotonicMS)
	}
	return time.Duration(ms) * time.Millisecond
}

// crossed reports whether both values are times that their runs read, written in one form and of one date and zone: who read which is a
// matter of moments.
func (c *maskings) crossed(h *hidden) bool {
	if c.mode == ByteIdentical || c.isNew(h) {
		return false
	}
	was, okWas := masks.MomentOf(h.mask, h.was)
	now, okNow := masks.MomentOf(h.mask, h.now)
	form := func(value string) string {
		return strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf && isHex(byte(r)) { // UUIDs are made of times too
				return -1
			}
			return r
		}, value)
	}
	if !okWas || !okNow || was.Unit != now.Unit || was.Rest != now.Rest || form(h.was) != form(h.now) {
		return false
	}
	tried := make(map[time.Duration]bool) // zones: a quarter of an hour each
	return slices.ContainsFunc(c.o.Times[Recorded], func(at int64) bool {
		zone, ok := was.Zone(at)
		if !ok || tried[zone] {
			return false
		}
		tried[zone] = true
		return slices.ContainsFunc(c.o.Times[Replay], func(at int64) bool {
			other, ok := now.Zone(at)
			return ok && other == zone
		})
	})
}

// isNew reports whether the value of the replay stands in what is new in its program.
func (c *maskings) isNew(h *hidden) bool { return c.o.New != nil && c.o.New(h.now) }

// judgeDuration tells two measurements from two settings, one of which the program of the replay holds: a measured time is no longer
// than the run was by then, or two readings of the time since the machine began lie as far apart as the runs; and a measurement is
// seldom round.
func (c *maskings) judgeDuration(h *hidden, of pair) judgement {
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
func (c *maskings) isConstant(h *hidden, of pair) bool {
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
// not that of the other. Arguments that hold both, each its own, may be names that a caller makes up; where no mask guesses they are none.
func (c *maskings) isGiven(h *hidden) bool {
	if h.argument {
		return false
	}
	if c.given == nil {
		c.given = c.inputs(false)
	}
	holds := func(text, value string) bool { return len(value) >= minGiven && strings.Contains(text, value) }
	args := c.given[0]
	was, now := holds(args.was, h.was), holds(args.now, h.now)
	return was != now || was && c.exactly() || slices.ContainsFunc(c.given[1:], func(s source) bool {
		if long := len(s.was) + len(s.now); long > longInput {
			if c.sought += int64(long); c.sought > maxSought {
				return false
			}
		}
		return holds(s.was, h.was) && !holds(s.now, h.was) || holds(s.now, h.now) && !holds(s.was, h.now)
	})
}

// Values are looked for in inputs of more than longInput bytes, a program of Go say, until so much of these was looked through.
const longInput, maxSought = 1 << 20, 4 << 30

// maxGiven bounds the names that are looked for in answers.
const maxGiven = 200

// broughtIn reports whether a name stood in an answer that came before a pair: what the program says again of it is no constant
// of its own. Where that is not known it says so too.
func (c *maskings) broughtIn(name string, of pair) bool {
	if yes, known := c.brought[name]; known {
		return yes
	}
	if len(c.brought) >= maxGiven {
		return true
	}
	found := false
	for e := range c.sides[Recorded].records(ofExchange | ofServer | ofSocket) {
		if e.at >= of.a.at || found {
			break
		}
		for _, p := range answersOf(e.rec.Kind) {
			b, err := c.hiddenBytes(p, Recorded)
			found = found || err != nil || strings.Contains(string(b), name)
		}
	}
	c.brought[name] = found
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
func (c *maskings) hide(lane string, of pair, at int, found []hidden) {
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

func (c *maskings) list(lane string, of pair, h *hidden, settled bool) {
	key := pairKey{h.place, h.mask, h.was, h.now}
	if i, ok := c.index[key]; ok {
		c.report.MaskedPairs[i].Records++
		return
	}
	if len(c.report.MaskedPairs) >= MaxMaskedPairs {
		if c.report.MoreMaskedPairs++; !settled {
			c.report.moreDoubtful++
		}
		return
	}
	c.index[key] = len(c.report.MaskedPairs)
	c.report.MaskedPairs = append(c.report.MaskedPairs, MaskedPair{
		Lane: lane, Seq: new(of.a.rec.Seq), ReplaySeq: new(of.b.rec.Seq), Place: h.place, Mask: h.mask,
		Recorded: bodies.Cut(h.was, maxMaskedValue), Replay: bodies.Cut(h.now, maxMaskedValue), Records: 1, Settled: settled,
	})
}

// unmask reports a place as a divergence. What was said of an earlier record is not said again of each that repeats it.
func (c *maskings) unmask(lane string, of pair, at int, h *hidden) {
	key := pairKey{h.place, h.mask, h.was, h.now}
	if c.told[key] {
		return
	}
	c.told[key] = true
	f := finding{
		category: MaskedValue, title: h.place + " changed, which the mask " + h.mask + " does not excuse",
		values: [2]any{h.was, h.now},
	}
	div := divergenceOf(&f, of.a.rec, of.b.rec)
	div.Lane = lane
	div = div.complete(&f, c.o.Sides, subjectOf(of.a.rec.Kind))
	ev := evidenceOf(&div, &f)
	ev.news = []string{h.now}
	c.place(placed{at: at, Divergence: div, rec: of.b.rec, evidence: ev})
}
