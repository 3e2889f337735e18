package check

import (
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// What an assertion may spend on finding the screen that is nearest to what it waits for: it looks at so many screens, then at
// as many again of every second one, of every fourth, …, and compares so many characters. The window's last screen is always
// looked at.
const (
	nearScreens = 128
	nearBudget  = 1 << 20
)

// A screenProbe asks a condition of the screens that an assertion is about.
type screenProbe struct {
	eventProbe
	when whenWant
	cond condition

	met     int           // screens that the assertion is about
	could   int           // of them, those that could be looked at
	since   time.Duration // the condition holds since then; below 0 it does not
	longest time.Duration
	nearest int // what near said of the screen in v.evidence; below 0 none
	waited  int // screens on which it did not hold
	spent   int
}

func newScreenProbe(w whenWant, c condition) *screenProbe {
	p := &screenProbe{when: w, cond: c, since: -1, nearest: -1}
	p.v.wanted = c.wanted() + ", " + w.String()
	return p
}

// String says when, as in: the screen contains "x", at 2s.
func (w *whenWant) String() string {
	switch {
	case w.At != nil && w.At.End:
		return "at the end"
	case w.At != nil:
		return "at " + seconds(w.At.T)
	case w.Never != nil:
		return "never" + w.Never.String()
	case w.Always != nil:
		return "always" + w.Always.String()
	case w.For > 0:
		return "for " + seconds(time.Duration(w.For)) + " without a break" + w.Eventually.String()
	}
	return "at some time" + w.Eventually.String()
}

// String says which window, with a blank before it; the whole cassette is "".
func (s *span) String() string {
	switch {
	case s.From == 0 && s.To < 0:
		return ""
	case s.To < 0:
		return " from " + seconds(s.From) + " on"
	}
	return " from " + seconds(s.From) + " to " + seconds(s.To)
}

// seconds writes a time as in "1.5 s".
func seconds(d time.Duration) string {
	s := strconv.FormatFloat(d.Seconds(), 'f', 3, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " s"
}

func (p *screenProbe) screen(sh *showing) {
	s := p.when.span()
	if at := p.when.At; at != nil {
		if at.End && !sh.iv.last || !at.End && !sh.iv.covers(at.T) {
			return
		}
	} else if !sh.iv.meets(s) {
		return
	}
	p.met++
	holds := p.cond.holds(sh.view)
	if holds != cannot {
		p.could++
	}
	switch {
	case p.when.Eventually != nil:
		p.wait(sh, s, holds)
	case holds == cannot:
		p.decide(Unchecked, sh)
	case p.when.Never != nil:
		if holds == yes {
			p.decide(Failed, sh)
		}
	case holds == no:
		p.decide(Failed, sh)
	case p.when.At != nil:
		p.v.status = Passed
	}
}

// wait looks for a screen on which the condition holds for long enough.
func (p *screenProbe) wait(sh *showing, s span, holds answer) {
	if holds == yes {
		from, to := sh.iv.clip(s)
		if p.since < 0 {
			p.since = from
		}
		p.longest = max(p.longest, to-p.since)
		if to-p.since >= time.Duration(p.when.For) {
			p.v.status, p.v.evidence = Passed, nil
		}
		return
	}
	p.since = -1
	last := sh.iv.last || s.To >= 0 && sh.iv.to > s.To
	p.waited++
	if !last && (p.spent > nearBudget || p.waited&(max(1, 1<<bits.Len(uint(p.waited/nearScreens))>>1)-1) != 0) {
		return
	}
	far, cost := p.cond.near(sh.view)
	p.spent += cost
	if far >= 0 && (p.nearest < 0 || far < p.nearest || last && far == p.nearest) || last && p.nearest < 0 {
		p.nearest = far
		p.keep(sh)
	}
}

// keep makes this screen the evidence.
func (p *screenProbe) keep(sh *showing) {
	came, x := p.cond.came(sh.view)
	p.v.evidence = sh.evidence(x)
	p.v.came = came + ", on the screen of " + seconds(sh.self.t)
}

func (p *screenProbe) decide(s Status, sh *showing) {
	p.v.status = s
	p.keep(sh)
}

func (p *screenProbe) finish(end *ending) verdict {
	if p.v.status != "" {
		if p.v.status == Passed && !end.whole && p.when.At != nil && p.when.At.End {
			return p.unchecked("the recording was not finished, its end is not known")
		}
		return p.v
	}
	s := p.when.span()
	beyond := s.To > end.end
	switch {
	case p.when.At != nil:
		return p.unchecked(sprintf("the cassette ends at %s", seconds(end.end)))
	case p.met == 0:
		return p.unchecked(sprintf("the window begins after the cassette's end at %s", seconds(end.end)))
	case p.when.Eventually != nil:
		p.failed(end)
	case beyond:
		return p.unchecked(sprintf("so far it is so, but the cassette ends at %s, before the window does", seconds(end.end)))
	case s.To < 0 && !end.whole:
		return p.unchecked("so far it is so, but the recording was not finished")
	default:
		p.v.status = Passed
	}
	return p.v
}

// failed says that no screen was as it should be.
func (p *screenProbe) failed(end *ending) {
	p.v.status = Failed
	if p.could == 0 {
		p.v.status = Unchecked
	}
	none := sprintf("on none of %s", countOf(p.met, "screen"))
	if p.longest > 0 || p.since >= 0 {
		none = "for " + seconds(p.longest) + " at most"
	}
	if p.v.came == "" {
		p.v.came = none
	} else {
		p.v.came = none + "; " + p.v.came
	}
	if p.when.Eventually.To > end.end {
		p.v.came += sprintf("; the cassette ends at %s, before the window does", seconds(end.end))
	}
	if p.v.evidence == nil {
		p.v.evidence = &Evidence{Context: end.context.list()}
	}
}

func (p *screenProbe) unchecked(why string) verdict {
	p.v.status, p.v.came, p.v.evidence = Unchecked, why, nil
	return p.v
}

// A stableProbe looks for a text that rests.
type stableProbe struct {
	eventProbe
	when whenWant
	key  areaKey
	rest time.Duration

	from    time.Duration // since when the text is as it is
	begun   bool
	text    string
	longest time.Duration // in the window
	at      time.Duration // when the longest rest began
	could   bool
}

func newStableProbe(w *frameWant, masks masker) *stableProbe {
	c := newTextCondition(w, masks)
	c.key.joined = false
	p := &stableProbe{when: w.whenWant, key: c.key, rest: time.Duration(w.Stable)}
	p.v.wanted = sprintf("%s does not change for %s, %s", c.where, seconds(p.rest), w.String())
	return p
}

func (p *stableProbe) screen(sh *showing) {
	t := sh.view.area(p.key)
	p.could = p.could || t.none == ""
	changed := !p.begun || t.text != p.text
	if changed {
		p.from, p.text, p.begun = sh.iv.from, t.text, true
	}
	rest := interval{p.from, sh.iv.to, sh.iv.last}
	if at := p.when.At; at != nil {
		p.atTime(sh, rest, changed)
		return
	}
	s := p.when.span()
	if t.none != "" || !rest.meets(s) {
		return
	}
	if from, to := rest.clip(s); to-from >= p.longest {
		p.longest, p.at = to-from, from
	}
	if p.longest >= p.rest {
		p.v.status = Passed
		if p.when.Never != nil {
			p.v.status, p.v.came = Failed, sprintf("it rests from %s to %s", seconds(p.at), seconds(p.at+p.longest))
			p.v.evidence = sh.evidence(excerptLines(sh.view, t, nil))
		}
		return
	}
	if sh.iv.last || s.To >= 0 && sh.iv.to > s.To {
		p.v.evidence = sh.evidence(excerptLines(sh.view, t, nil))
	}
}

// atTime looks for the rest that begins at a time or before it.
func (p *stableProbe) atTime(sh *showing, rest interval, changed bool) {
	t := p.when.At.T
	switch {
	case p.when.At.End:
		if sh.iv.last {
			p.judge(sh, rest.to-rest.from, p.from)
		}
	case rest.covers(t) && rest.to-t >= p.rest:
		p.v.status = Passed
	case changed && rest.from > t:
		p.judge(sh, rest.from-t, t)
	}
}

func (p *stableProbe) judge(sh *showing, rested, from time.Duration) {
	p.longest, p.at = rested, from
	if p.v.status = Passed; rested < p.rest {
		p.v.status = Failed
		p.v.came = sprintf("from %s it rests for %s", seconds(from), seconds(rested))
		p.v.evidence = sh.evidence(excerptLines(sh.view, sh.view.area(p.key), nil))
	}
}

func (p *stableProbe) finish(end *ending) verdict {
	if p.v.status != "" {
		if p.when.At != nil && p.when.At.End && !end.whole {
			p.v.status, p.v.came = Unchecked, "the recording was not finished, its end is not known"
		}
		return p.v
	}
	s := p.when.span()
	switch {
	case !p.could:
		p.v.status, p.v.came = Unchecked, "that part is on no screen"
	case p.when.At != nil:
		p.v.status, p.v.came = Unchecked, sprintf("the cassette ends at %s", seconds(end.end))
	case s.From > end.end:
		p.v.status, p.v.came = Unchecked, sprintf("the window begins after the cassette's end at %s", seconds(end.end))
	case p.when.Eventually != nil:
		p.v.status, p.v.came = Failed, sprintf("the longest rest is %s, from %s", seconds(p.longest), seconds(p.at))
	case s.To > end.end || s.To < 0 && !end.whole:
		p.v.status, p.v.came = Unchecked, sprintf("so far it is so, but the cassette ends at %s", seconds(end.end))
	default:
		p.v.status = Passed
	}
	return p.v
}
