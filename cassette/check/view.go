package check

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// A masker makes volatile facts of a text stable; masks.Masker is one.
type masker interface{ Mask(b []byte) []byte }

// A view is the screen as it is now. What texts are taken from it are kept until it changes.
type view struct {
	*vt.Screen
	masks masker // nil: none
	texts map[areaKey]*areaText
	seen  uint64
	rows  int
	cols  int
}

func newView(s *vt.Screen, m masker) *view {
	v := &view{Screen: s, masks: m, texts: make(map[areaKey]*areaText)}
	v.seen = s.Generation()
	v.rows, v.cols = s.Size()
	return v
}

// fresh forgets the texts of a screen that is another by now.
func (v *view) fresh() {
	rows, cols := v.Size()
	if g := v.Generation(); g != v.seen || rows != v.rows || cols != v.cols {
		v.seen, v.rows, v.cols = g, rows, cols
		clear(v.texts)
	}
}

// An areaKey names the text of a part of the screen.
type areaKey struct {
	region      // the zero region is the whole screen
	one    bool // one row: region.Row, from the end where below 0
	joined bool // a wrapped line is one line
	masked bool
}

// An areaText is the text of a part of the screen, its lines with newlines between them, and where they stand.
type areaText struct {
	text  string
	lines []areaLine
	none  string // the part is not on the screen: why; everything else is empty
}

// An areaLine is a row of the screen, or several that wrap, or a piece of one.
type areaLine struct {
	row, col int
	text     string
}

// area returns the text of k. It is valid until the screen changes.
func (v *view) area(k areaKey) *areaText {
	if t := v.texts[k]; t != nil {
		return t
	}
	t := v.read(k)
	if k.masked && v.masks != nil && t.none == "" {
		t.mask(v.masks)
	}
	v.texts[k] = t
	return t
}

func (v *view) read(k areaKey) *areaText {
	rows, cols := v.Size()
	t := new(areaText)
	switch {
	case k.one:
		row := k.Row
		if row < 0 {
			row += rows
		}
		if row < 0 || row >= rows {
			t.none = sprintf("row %d is not on a screen of %d rows", k.Row, rows)
			return t
		}
		t.lines = []areaLine{{row, 0, v.Row(row)}}
	case k.Rows > 0:
		if k.Row+k.Rows > rows || k.Col+k.Cols > cols {
			t.none = sprintf("the region ends at row %d, column %d, not on a screen of %dx%d", k.Row+k.Rows-1, k.Col+k.Cols-1, rows, cols)
			return t
		}
		for i := k.Row; i < k.Row+k.Rows; i++ {
			t.lines = append(t.lines, areaLine{i, k.Col, v.piece(i, k.Col, k.Col+k.Cols)})
		}
	default:
		t.lines = v.whole(rows, k.joined)
	}
	t.join()
	return t
}

// whole returns the lines of the screen.
func (v *view) whole(rows int, joined bool) []areaLine {
	lines := make([]areaLine, 0, rows)
	for i := 0; i < rows; i++ {
		line := areaLine{i, 0, v.Row(i)}
		if joined && v.Wrapped(i) && i+1 < rows {
			var b strings.Builder
			b.WriteString(line.text)
			for ; v.Wrapped(i) && i+1 < rows; i++ {
				b.WriteString(strings.Repeat(" ", v.cutBlanks(i)))
				b.WriteString(v.Row(i + 1))
			}
			line.text = b.String()
		}
		lines = append(lines, line)
	}
	return lines
}

// cutBlanks returns how many blanks of a row that wraps are not in its text. One column may be left by a wide character.
func (v *view) cutBlanks(row int) int {
	n := v.cols - vt.StringWidth(v.Row(row))
	if n == 1 && v.Cell(row+1, 0).Width == 2 {
		return 0
	}
	return max(n, 0)
}

// piece returns the columns from…to of a row, without trailing blanks. Half a wide character is a blank.
func (v *view) piece(row, from, to int) string {
	var b strings.Builder
	cells := v.AppendCells(nil, row)
	for col := from; col < to && col < len(cells); col++ {
		c := &cells[col]
		switch {
		case c.Width == 0 && col > from:
		case c.Text == "" || c.Width == 0 || col+c.Width > to:
			b.WriteByte(' ')
		default:
			b.WriteString(c.Text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func (t *areaText) join() {
	if len(t.lines) == 1 {
		t.text = t.lines[0].text
		return
	}
	var b strings.Builder
	for i, l := range t.lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.text)
	}
	t.text = b.String()
}

// mask makes the text stable. The lines keep their places, as far as no mask took one away.
func (t *areaText) mask(m masker) {
	masked := m.Mask([]byte(t.text))
	t.text = string(masked)
	pieces := bytes.Split(masked, []byte("\n"))
	if len(pieces) != len(t.lines) {
		row := t.lines[0].row
		t.lines = t.lines[:0:0]
		for i := range pieces {
			t.lines = append(t.lines, areaLine{row: row + i})
		}
	}
	for i, p := range pieces {
		t.lines[i].text = string(p)
	}
}

// splitRows returns the rows of a text, without the blank one that a newline at its end makes.
func splitRows(s string) []string {
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n")
}

// trimRows returns rows without trailing blanks and without blank rows at the end.
func trimRows(rows []string) []string {
	out := make([]string, len(rows))
	n := 0
	for i, r := range rows {
		if out[i] = strings.TrimRight(r, " "); out[i] != "" {
			n = i + 1
		}
	}
	return out[:n]
}

// screenMasks are what is volatile on screens beyond what package scrub masks everywhere: a screen says how long it has been at work,
// and counts what it draws. Those that have a name of scrub's are switched off with it. Each masks its group.
var screenMasks = sync.OnceValue(func() []masks.Extra {
	return []masks.Extra{
		{Name: "duration", Pattern: regexp.MustCompile(
			`\b(\d{1,3}d ?\d{1,2}h(?: ?\d{1,2}m(?: ?\d{1,2}s)?)?|\d{1,4}h ?\d{1,2}m(?: ?\d{1,2}(?:\.\d+)?s)?|\d{1,4}m ?\d{1,2}(?:\.\d+)?s|\d{1,3}(?:\.\d+)?s)\b`)},
		{Name: "socket", Pattern: regexp.MustCompile(`((?:<[a-z-]+>|~|\$[A-Z_]+)?(?:/[\w.@%+<>-]+)+(?:\.sock(?:et)?|/agent\.\d+|\.s\.PGSQL\.\d+))\b`)},
		{Name: "temp-name", Pattern: regexp.MustCompile(`[-_.]tmp([-_.]\w*\d\w*)\b`)},
		{Name: "animation", Pattern: regexp.MustCompile(`(?i)\b(?:frames?|ticks?|spinner|animation)[=:#] ?(\d+)\b`)},
	}
})

// A screenMasker masks what package scrub does, and what is volatile on screens where anything of a text may be.
type screenMasker struct{ always, screens *masks.Masker }

// newMasker returns a masker of the masks that o, which may be nil, asks for.
func newMasker(o *masks.Options) masker {
	all := new(masks.Options)
	if o != nil {
		*all = *o
	}
	always := masks.New(all)
	all.Extra = slices.Concat(screenMasks(), all.Extra)
	return &screenMasker{always, masks.New(all)}
}

func (m *screenMasker) Mask(b []byte) []byte {
	if mayBeVolatile(b) {
		return m.screens.Mask(b)
	}
	return m.always.Mask(b)
}

// mayBeVolatile reports whether one of screenMasks may find anything: to look for each costs more than the rest of a check.
func mayBeVolatile(b []byte) bool {
	for i := 1; i < len(b); i++ {
		switch c, before := b[i], b[i-1]; c {
		case 's', 'm', 'h', 'd':
			if before >= '0' && before <= '9' {
				return true
			}
		case '=', '#', ':':
			if l := before | 0x20; l == 'e' || l == 'k' || l == 's' || l == 'r' || l == 'n' {
				return true
			}
		case 't':
			if before != ' ' && bytes.HasPrefix(b[i:], []byte("tmp")) {
				return true
			}
		case '.':
			if rest := b[i:]; bytes.HasPrefix(rest, []byte(".sock")) || bytes.HasPrefix(rest, []byte(".s.PGSQL")) ||
				bytes.HasSuffix(b[:i], []byte("/agent")) {
				return true
			}
		}
	}
	return false
}

// checkMasks refuses masks that there are not.
func checkMasks(o *masks.Options) error {
	known := make(map[string]bool)
	for _, m := range masks.All() {
		known[m.Name] = true
	}
	all := *o
	all.Extra = nil
	for _, m := range screenMasks() {
		if !known[m.Name] {
			all.Extra = append(all.Extra, m)
		}
	}
	all.Extra = append(all.Extra, o.Extra...)
	return all.Check()
}

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
