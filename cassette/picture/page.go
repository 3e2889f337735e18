package picture

import (
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/cellfont"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed player.css
	playerCSS string
	//go:embed player.js
	playerJS string
)

// writeHTML writes the page. Its data comes first, as it is made: the page's own parts come behind it, with the last screen as
// text for who runs no scripts.
func writeHTML(w io.Writer, s *session, o *Options) error {
	set := o.settings()
	theme := "auto"
	if o != nil && o.Theme != nil {
		theme = themeSlot(o.Theme)
	}
	style := styleSheet(set.Theme) + playerCSS
	head, rest, _ := strings.Cut(pageHTML, "{{.Tape}}")
	values := []string{
		"{{.Theme}}", theme, "{{.Title}}", escape(set.title(s, "")), "{{.Style}}", style, "{{.Script}}", playerJS, "{{.Policy}}", escape(policy(style, playerJS)),
	}
	if _, err := strings.NewReplacer(values...).WriteString(w, head); err != nil {
		return err
	}
	last, err := writePacked(w, s, set)
	if err != nil {
		return err
	}
	var still []string
	for _, l := range last.Lines {
		still = append(still, escape(l.Text()))
	}
	values = append(values, "{{.Still}}", strings.TrimRight(strings.Join(still, "\n"), "\n"))
	_, err = strings.NewReplacer(values...).WriteString(w, rest)
	return err
}

// writePacked writes the tape: gzip, then base64, which no markup can end.
func writePacked(w io.Writer, s *session, set settings) (*Picture, error) {
	text := base64.NewEncoder(base64.StdEncoding, w)
	z, err := gzip.NewWriterLevel(text, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	last, err := writeTape(z, s, set)
	if err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return last, text.Close()
}

// policy allows the page what it holds, known by its digest, and nothing else: no request can leave it.
func policy(style, script string) string {
	digest := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + digest(script) + "; style-src " + digest(style) + "; base-uri 'none'; form-action 'none'"
}

// themeSlot says which of the page's two themes a theme takes the place of.
func themeSlot(t *Theme) string {
	if t.BG>>16&255+t.BG>>8&255+t.BG&255 > 3*128 {
		return "light"
	}
	return "dark"
}

// styleSheet is the colours of both themes; one that the caller brings stands in the place of the one like it.
func styleSheet(t *Theme) string {
	themes := map[string]*Theme{"dark": Dark, "light": Light}
	themes[themeSlot(t)] = t
	return ":root" + variables(themes["dark"]) + ":root[data-theme=light]" + variables(themes["light"])
}

func variables(t *Theme) string {
	var b strings.Builder
	edge := mix(t.Bar, t.FG, 1, 6)
	fmt.Fprintf(&b, "{--fg:%s;--bg:%s;--bar:%s;--text:%s;--page:%s;--edge:%s;--accent:%s;--found:%s", t.FG, t.BG, t.Bar, t.FG, mix(t.BG, t.Bar, 1, 2), edge, t.Palette[12], t.Palette[11])
	for i, c := range t.Palette {
		fmt.Fprintf(&b, ";--c%d:%s", i, c)
	}
	return b.String() + "}\n"
}

// The records of the page's data, each a JSON array on a line of its own. Times are milliseconds of the film.
//
//	[0, {"rows","cols","largest"}]                     the head: the size at first, the most rows and columns
//	[1, fg, bg, underline's colour, attributes, underline, link]  a style; the first is 0. Colours and attributes as in vt
//	[2, 1 if wrapped, text, style, columns, …]         a line, the first is 1; columns 0: each character of the text has one
//	[3, time, recorded, [row, line, …], cursor, more]  a frame: rows that are new; cursor [row, col, shape], 0 hidden, null as before;
//	                                                   [row, col, shape, 2] on a wide character
//	[4, time, kind, label]                             a mark
//	[5, character, [[path, cover, 1 if crisp], …]]     how a character is drawn that no font need have
//	[6, time]                                          the end
//
// A record comes before those that need it. more is {"size","title","colors"}, each where it is new.
const (
	recHead = iota
	recStyle
	recLine
	recFrame
	recMark
	recShape
	recEnd
)

// A tape writes the records.
type tape struct {
	w      io.Writer
	err    error
	buf    []byte
	styles map[styleKey]int
	lines  map[[16]byte]int
	nStyle int
	nLine  int
	shapes map[rune]bool
	known  map[*Line]int // of the last picture
	marks  []heldMark
	keys   bool
}

type styleKey struct {
	style vt.Style
	link  string
}

type heldMark struct {
	at    time.Duration
	shown bool // what was typed is on a picture
	*Mark
}

// keptLimit is how many lines and styles are remembered; after that they are written again.
const keptLimit = 1 << 17

func writeTape(w io.Writer, s *session, set settings) (*Picture, error) {
	t := &tape{w: w, styles: map[styleKey]int{}, lines: map[[16]byte]int{}, shapes: map[rune]bool{}, known: map[*Line]int{}, keys: set.Keys}
	t.record(recHead, map[string]any{"rows": s.size.rows, "cols": s.size.cols, "largest": [2]int{s.largest.rows, s.largest.cols}})
	f := newFilm(s, set)
	f.marks = t.mark
	var last *Picture
	for p, err := range f.pictures() {
		if err != nil {
			return nil, err
		}
		t.frame(p, last)
		t.echo(p)
		last = p
		if t.err != nil {
			return nil, t.err
		}
	}
	t.flushMarks()
	t.record(recEnd, f.end().Milliseconds())
	return last, t.err
}

// record writes one record of values.
func (t *tape) record(kind int, values ...any) {
	t.buf = append(t.buf[:0], '[')
	t.buf = strconv.AppendInt(t.buf, int64(kind), 10)
	for _, v := range values {
		t.buf = appendJSON(append(t.buf, ','), v)
	}
	t.put(append(t.buf, ']', '\n'))
}

func (t *tape) put(b []byte) {
	if t.err == nil {
		_, t.err = t.w.Write(b)
	}
}

func appendJSON(b []byte, v any) []byte {
	j, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("picture: %v", err)) // strings and numbers are all that is given
	}
	return append(b, j...)
}

// A more is what a frame has beside rows and cursor.
type more struct {
	Size   *[2]int           `json:"size,omitempty"`
	Title  *string           `json:"title,omitempty"`
	Colors map[string]string `json:"colors,omitempty"`
}

func (t *tape) frame(p, before *Picture) {
	rows := []int{}
	known := make(map[*Line]int, len(p.Lines))
	for i, l := range p.Lines {
		id, ok := t.known[l]
		if !ok {
			id = t.line(l)
		}
		known[l] = id
		if before == nil || i >= len(before.Lines) || t.known[before.Lines[i]] != id {
			rows = append(rows, i, id)
		}
	}
	t.known = known
	m := more{}
	if before == nil || p.Rows != before.Rows || p.Cols != before.Cols {
		m.Size = &[2]int{p.Rows, p.Cols}
	}
	if title := clean(p.Title); before == nil && title != "" || before != nil && p.Title != before.Title {
		m.Title = &title
	}
	if before == nil && p.Colors != nil || before != nil && p.Colors != before.Colors {
		m.Colors = cssColors(p.Colors)
	}
	cursor := cursorOf(p)
	values := []any{p.Time.Milliseconds(), p.Recorded.Milliseconds(), rows, cursor}
	if m.Size != nil || m.Title != nil || m.Colors != nil {
		values = append(values, m)
	}
	t.record(recFrame, values...)
}

func cursorOf(p *Picture) any {
	c := p.Cursor
	if !c.Visible {
		return 0
	}
	return append([]int{c.Row, c.Col, c.Shape}, []int{2}[:p.cursorWidth()-1]...)
}

// cssColors names what a program changed as the page's variables; none is the theme's again.
func cssColors(c *Colors) map[string]string {
	m := map[string]string{"--none": ""}
	if c == nil {
		return m
	}
	if c.FG != nil {
		m["--fg"], m["--bg"] = c.FG.String(), c.BG.String()
	}
	for i, v := range c.Palette {
		m["--c"+strconv.Itoa(int(i))] = v.String()
	}
	return m
}

// line returns a line's number; 0 is an empty one.
func (t *tape) line(l *Line) int {
	if len(l.Cells) == 0 && !l.Wrapped {
		return 0
	}
	runs := t.appendRuns(nil, l)
	sum := sha256.Sum256(runs)
	key := [16]byte(sum[:])
	if id, ok := t.lines[key]; ok {
		return id
	}
	if len(t.lines) >= keptLimit {
		clear(t.lines)
	}
	t.nLine++
	t.lines[key] = t.nLine
	t.put(append(append([]byte(`[2,`), runs...), ']', '\n'))
	return t.nLine
}

// appendRuns writes what stands in a line. Letters that each font has one column wide are put together by style; any other
// character is a run of its own, with its columns.
func (t *tape) appendRuns(b []byte, l *Line) []byte {
	if l.Wrapped {
		b = append(b, '1')
	} else {
		b = append(b, '0')
	}
	for from := 0; from < len(l.Cells); {
		c := &l.Cells[from]
		to := from + 1
		style := t.style(c)
		if c.Width == 0 { // filler of a character that was cut
			b = appendRun(b, " ", style, 0)
			from = to
			continue
		}
		if !simple(c) {
			t.shape(c.Text)
			b = appendRun(b, c.Text, style, c.Width)
			for to < len(l.Cells) && to < from+c.Width && l.Cells[to].Width == 0 {
				to++
			}
			from = to
			continue
		}
		text := []byte{}
		for to = from; to < len(l.Cells) && simple(&l.Cells[to]) && l.Cells[to].Style == c.Style && l.Cells[to].Link == c.Link; to++ {
			if one := seen(l.Cells[to].Text); one == "" {
				text = append(text, ' ')
			} else {
				text = append(text, one...)
			}
		}
		b = appendRun(b, string(text), style, 0)
		from = to
	}
	return b
}

func appendRun(b []byte, text string, style, columns int) []byte {
	b = appendJSON(append(b, ','), clean(text))
	b = strconv.AppendInt(append(b, ','), int64(style), 10)
	return strconv.AppendInt(append(b, ','), int64(columns), 10)
}

func simple(c *vt.Cell) bool {
	text := seen(c.Text)
	return text == "" && c.Width == 1 || joins(&look{text: text, width: uint8(c.Width)})
}

func (t *tape) style(c *vt.Cell) int {
	key := styleKey{c.Style, c.Link}
	if id, ok := t.styles[key]; ok {
		return id
	}
	if len(t.styles) >= keptLimit {
		clear(t.styles)
	}
	id := t.nStyle
	t.nStyle++
	t.styles[key] = id
	values := []any{c.Style.FG, c.Style.BG, c.Style.UnderlineColor, c.Style.Attr, c.Style.Underline}
	if c.Link != "" {
		values = append(values, clean(c.Link))
	}
	t.record(recStyle, values...)
	return id
}

// shape writes how a character is drawn, once.
func (t *tape) shape(text string) {
	c := first(text)
	if !drawnByProgram(text) || t.shapes[c] {
		return
	}
	t.shapes[c] = true
	var all [][]any
	for _, s := range cellfont.Shapes(c) {
		crisp := 0
		if s.Rect {
			crisp = 1
		}
		all = append(all, []any{string(appendPath(nil, s, 0)), s.Cover, crisp})
	}
	t.record(recShape, text, all)
}

// mark takes a mark. What is typed within a second becomes one.
func (t *tape) mark(m *Mark, at time.Duration) {
	if n := len(t.marks); n > 0 && m.Kind == "input" {
		last := &t.marks[n-1]
		if last.Kind == "input" && m.Recorded-last.Recorded < time.Second && len(last.Label) < 60 {
			joined := *last.Mark
			joined.typed += m.typed
			joined.Label += " " + m.Label
			if utf8.RuneCountInString(m.Label) == 1 {
				joined.Label = last.Label + m.Label
			}
			last.Mark, last.shown = &joined, false
			return
		}
	}
	t.marks = append(t.marks, heldMark{at: at, Mark: m})
}

// echo looks on a picture for what was typed, and writes the marks that no more can be said of.
func (t *tape) echo(p *Picture) {
	if len(t.marks) == 0 {
		return
	}
	var text strings.Builder
	for _, l := range p.Lines {
		text.WriteString(letters(l.Text()))
	}
	n := 0
	for i := range t.marks {
		m := &t.marks[i]
		m.shown = m.shown || strings.Contains(text.String(), m.typed)
		if n == i && p.Recorded-m.Recorded > 2*time.Second {
			t.writeMark(m)
			n++
		}
	}
	t.marks = t.marks[n:]
}

func (t *tape) flushMarks() {
	for i := range t.marks {
		t.writeMark(&t.marks[i])
	}
	t.marks = nil
}

// writeMark writes a mark. What was typed and is not on any picture may be a password.
func (t *tape) writeMark(m *heldMark) {
	label := m.Label
	if m.typed != "" && !m.shown && !t.keys {
		label = fmt.Sprintf("%d letters", utf8.RuneCountInString(m.typed))
	}
	t.record(recMark, m.at.Milliseconds(), m.Kind, label)
}
