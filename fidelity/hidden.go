package fidelity

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

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
	own      bool // a person wrote the mask
	argument bool // it stands in the arguments themselves
	at       int  // in the recorded text
	ms       [2]float64
	round    [2]bool // as a setting is written
}

// maskings looks behind masks: at what differs though digests agree, or digests that differ under masks of before.
type maskings struct {
	*comparison
	index map[pairKey]int  // in the report, of each pair that it lists
	told  map[pairKey]bool // those that were said as divergences
	given []source         // what both programs were given, as far as that differs, and their arguments; nil before it is needed
	seen  int64            // bytes that were read
}

func newMaskings(base *comparison) *maskings {
	return &maskings{comparison: base, index: make(map[pairKey]int), told: make(map[pairKey]bool)}
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
	l := leaves{c: c, f: f}
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
	}
	l.found = append(l.found, found...)
	if !ok {
		p := bodies.PairTexts(was, now)
		l.found = append(l.found, hidden{place: l.f.named(at), mask: cmp.Or(l.f.besides, NotMatched), was: p.Was, now: p.Now})
		l.unmasked = true
	}
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
	return out, true
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
