package check

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// Bounds of what an excerpt shows.
const (
	around      = 3  // rows above and below a marked one
	maxExcerpt  = 48 // rows
	maxMarked   = 12 // marked rows
	maxNearby   = 3  // events of each kind before a failure
	maxPayload  = 160
	maxInputTxt = 80
)

// excerptOf shows the screen, the marked lines as they are given.
func excerptOf(v *view, marked []Line) *Excerpt {
	return excerptLines(v, v.area(areaKey{}), marked)
}

// excerptLines shows lines of the screen: those around marked ones, or all.
func excerptLines(v *view, t *areaText, marked []Line) *Excerpt {
	x := new(Excerpt)
	x.Rows, x.Cols = v.Size()
	c := v.Cursor()
	x.Cursor, x.Hidden = [2]int{c.Row, c.Col}, !c.Visible
	marked = marked[:min(len(marked), maxMarked)]
	for _, l := range t.lines {
		i := slices.IndexFunc(marked, func(m Line) bool { return m.Row == l.row })
		switch {
		case i >= 0:
			x.Lines = append(x.Lines, marked[i])
		case len(x.Lines) < maxExcerpt && (len(marked) == 0 || isAround(marked, l.row)):
			x.Lines = append(x.Lines, Line{Row: l.row, Col: l.col, Text: l.text})
		case l.text != "":
			x.Omitted++
		}
	}
	for n := len(x.Lines); n > 1 && x.Lines[n-1].Text == "" && x.Lines[n-1].Marks == nil; n-- {
		x.Lines = x.Lines[:n-1]
	}
	return x
}

func isAround(marked []Line, row int) bool {
	return slices.ContainsFunc(marked, func(m Line) bool { return row >= m.Row-around && row <= m.Row+around })
}

// evidence is what a failure on this screen is understood by.
func (sh *showing) evidence(x *Excerpt) *Evidence {
	e := &Evidence{Screen: x, Context: sh.context.list()}
	for _, f := range []struct {
		is string
		m  *moment
	}{{"before", sh.prev}, {"at", sh.self}, {"after", sh.next}} {
		if f.m != nil {
			e.Frames = append(e.Frames, FrameTime{f.is, f.m.seq, ms(f.m.t)})
		}
	}
	if x != nil {
		x.Seq, x.TMS = sh.self.seq, ms(sh.self.t)
	}
	return e
}

// recent holds the latest events of each kind but output.
type recent struct{ service, input, other []Nearby }

func (r *recent) add(e *event) {
	n := Nearby{Seq: e.seq, TMS: ms(e.t)}
	switch e.kind {
	case isService:
		n.Kind, n.Text = "service", payloadText(e.payload)
		r.service = push(r.service, n)
	case isInput:
		n.Kind, n.Text = "input", inputText(e.bytes, e.key)
		r.input = push(r.input, n)
	case isResize:
		n.Kind, n.Text = "resize", sprintf("%dx%d", e.size.Rows, e.size.Cols)
		r.other = push(r.other, n)
	case isSignal:
		n.Kind, n.Text = "signal", e.signal
		r.other = push(r.other, n)
	}
}

func push(all []Nearby, n Nearby) []Nearby {
	if len(all) == maxNearby {
		copy(all, all[1:])
		all = all[:maxNearby-1]
	}
	return append(all, n)
}

// list returns the events in their order.
func (r *recent) list() []Nearby {
	all := slices.Concat(r.service, r.input, r.other)
	slices.SortFunc(all, func(a, b Nearby) int { return int(a.Seq - b.Seq) })
	return all
}

func payloadText(b []byte) string {
	if json.Valid(b) {
		return visible.Line(shorten(string(b), maxPayload))
	}
	return quote(shorten(string(b), maxPayload))
}

func inputText(b []byte, key string) string {
	s := quote(shorten(string(b), maxInputTxt))
	if key != "" {
		s += " (" + visible.Line(key) + ")"
	}
	return s
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
