package fidelity

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// laneTerminal is the lane of what the terminals showed.
const laneTerminal = "terminal"

// shownRows is how many rows a divergence of screens shows before the others are counted.
const shownRows = 8

// hintScreens is for output that differs byte by byte and not on the screen.
const hintScreens = "the screens are the same whenever something was typed, and at the end: --tty compares them in the place of these bytes"

// compareScreens compares what the terminals showed. Where that does not gate, it says what it would have found.
func compareScreens(c *comparison) {
	s := c.o.Screens
	if s == nil {
		return
	}
	drawn := slices.IndexFunc(c.found, func(p placed) bool {
		return p.Lane == laneProgram && p.Category == streamCategory(s.Stream)
	})
	if !s.Gate && drawn < 0 {
		return // equal bytes draw equal screens
	}
	a, errA := s.Load(Recorded)
	b, errB := s.Load(Replay)
	if err := errors.Join(errA, errB); err != nil || a == nil || b == nil {
		if s.Gate {
			c.report.NotCompared = append(c.report.NotCompared, fmt.Sprintf("the screens: %v", err))
		}
		return
	}
	l := &screenLane{c: c, screenCompare: screenCompare{mask: s.Mask}}
	l.run(a, b)
	switch {
	case s.Gate:
		c.found = append(c.found, l.found...)
		c.report.Screens = l.looked
		l.tell()
	case len(l.found) == 0:
		c.found[drawn].Hint = hintScreens
	default:
		c.note("the screens differ, too (--tty compares them in the place of the bytes), first: %s", l.found[0].Message)
	}
}

func streamCategory(stream int) Category {
	if stream == 2 {
		return ProcessStderrHash
	}
	return ProcessStdoutHash
}

// screenLane is the comparison of two Showings.
type screenLane struct {
	screenCompare
	c       *comparison
	found   []placed
	looked  int         // moments that were compared
	drawing int         // those that were not
	last    []rowChange // of the moment before
	told    []screenField
}

func (l *screenLane) run(a, b *Showing) {
	byTyped := make(map[int64]*Moment, len(b.Moments))
	for i := range b.Moments {
		if m := &b.Moments[i]; !m.End {
			byTyped[m.Typed] = m
		}
	}
	for i := range a.Moments {
		m := &a.Moments[i]
		switch other := byTyped[m.Typed]; {
		case m.End || other == nil:
		case m.Drawing:
			l.drawing++
		default:
			l.moment(m, other)
		}
	}
	endA, endB := endOf(a), endOf(b)
	if endA == nil || endB == nil {
		return
	}
	if endA.Typed != endB.Typed && !l.unread(a, endA, endB) {
		l.add(ScreenInput, fmt.Sprintf("%d bytes were typed, and %d in the %s", endA.Typed, endB.Typed, l.c.report.names.of(Replay)), endB, nil)
	}
	l.moment(endA, endB)
	l.history(a, b, endB)
}

// unread reports whether what was typed while recording, and was not on the replay, changed nothing: the program was about to end.
func (l *screenLane) unread(a *Showing, endA, endB *Moment) bool {
	i := slices.IndexFunc(a.Moments, func(m Moment) bool { return m.Typed >= endB.Typed })
	return i >= 0 && endA.Typed > endB.Typed && len(l.rows(&a.Moments[i].Screen, &endA.Screen)) == 0
}

func endOf(s *Showing) *Moment {
	if n := len(s.Moments); n > 0 && s.Moments[n-1].End {
		return &s.Moments[n-1]
	}
	return nil
}

// moment compares two screens. What differed in the same way a moment before is not told again.
func (l *screenLane) moment(a, b *Moment) {
	l.looked++
	rows := l.rows(&a.Screen, &b.Screen)
	fresh := slices.DeleteFunc(slices.Clone(rows), func(r rowChange) bool { return slices.Contains(l.last, r) })
	l.last = rows
	if len(fresh) > 0 {
		l.add(ScreenRows, fmt.Sprintf("the screen differs in %s, %s", counted(len(fresh), "row"), when(a)), b, changesOf(fresh, "row"))
	}
	fields := l.fields(&a.Screen, &b.Screen)
	for _, f := range fields {
		if !slices.Contains(l.told, f) {
			l.add(f.category, titleOf(f.category)+l.c.report.names.versus(f.was, f.now)+", "+when(a), b, nil)
		}
	}
	l.told = fields
}

// history compares what had left the screens by the end.
func (l *screenLane) history(a, b *Showing, end *Moment) {
	was, now := a.History, b.History
	if a.Lost > 0 || b.Lost > 0 { // the newest rows stand beside each other
		n := min(len(was), len(now))
		was, now = was[len(was)-n:], now[len(now)-n:]
	}
	row := func(of []string, i int) string {
		if i < len(of) {
			return of[i]
		}
		return ""
	}
	var changes []rowChange
	for i := range max(len(was), len(now)) {
		r := rowChange{i, row(was, i), row(now, i)}
		if len(changes) < shownRows && l.masks(r.was) != l.masks(r.now) {
			changes = append(changes, r)
		}
	}
	if len(changes) == 0 && len(was) == len(now) {
		return
	}
	l.add(ScreenHistory, fmt.Sprintf("what left the screen at its top differs%s",
		l.c.report.names.versus(counted(len(was), "row"), counted(len(now), "row"))), end, changesOf(changes, "line"))
}

func changesOf(rows []rowChange, what string) (out []Change) {
	for _, r := range rows {
		out = append(out, r.change(what))
	}
	return out
}

// when says which moment this is.
func when(m *Moment) string {
	if m.End {
		return "at the end"
	}
	return fmt.Sprintf("before %q was typed (at %.3f s)", m.Before, float64(m.TMS)/1000)
}

// add places a divergence behind what the replay had done by then.
func (l *screenLane) add(cat Category, message string, b *Moment, changes []Change) {
	at, ex := l.before(b)
	p := placed{at: at, Divergence: Divergence{
		Category: cat, Lane: laneTerminal, Message: message, Exchange: ex, Changes: changes[:min(len(changes), shownRows)],
	}}
	p.rest = changes[len(p.Changes):]
	p.MoreChanges = len(p.rest)
	p.evidence = evidenceOf(&p.Divergence, &finding{category: cat})
	l.found = append(l.found, p)
}

// before returns how far the replay had come at a moment, and the last exchange by then.
func (l *screenLane) before(m *Moment) (at int, exchange string) {
	var last *tape.Record
	for e := range l.c.sides[Replay].records() {
		if !m.End && m.G != 0 && e.rec.G > m.G {
			continue
		}
		at = e.at
		if tape.ExchangeOf(e.rec.Kind) != nil {
			last = e.rec
		}
	}
	if last == nil {
		return at, ""
	}
	return at, fmt.Sprintf("the exchange before it: %s (%s seq %d)", describe(last.Kind), l.c.report.names.of(Replay), last.Seq)
}

// tell counts what was left out.
func (l *screenLane) tell() {
	if l.moving > 0 {
		l.c.report.Masked[AnimationMask] += l.moving
		l.c.note("%s compared without what moves in them while nothing is typed or answered (%s): %s",
			counted(l.moving, "row"), AnimationMask, strings.Join(l.names, " | "))
	}
	if l.drawing > 0 {
		l.c.note("screens not compared, for the program was still printing when the next key came: %d", l.drawing)
	}
}
