// Package columns lays texts out in the columns of a terminal: cut, wrapped, beside each other, with what differs in them marked.
package columns

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/align"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// A Segment is a run of text that is the same on both sides, or is not.
type Segment struct {
	Text    string
	Changed bool
}

// A Line is what stands in one line.
type Line []Segment

// Text is what stands in l.
func (l Line) Text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Merged is l with neighbours of one kind in one piece, as they are coloured: wrap cuts them at words.
func (l Line) Merged() Line {
	var out Line
	for _, s := range l {
		if n := len(out) - 1; n >= 0 && out[n].Changed == s.Changed {
			out[n].Text += s.Text
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Segments cuts two short texts at the words that differ.
func Segments(was, now string) (a, b []Segment) {
	wa, wb := tokens(was), tokens(now)
	hunksA, hunksB := bodies.Hunks(wa, wb)
	return segmentsOf(wa, hunksA), segmentsOf(wb, hunksB)
}

func segmentsOf(ws []string, hunks []align.Span) []Segment {
	var out []Segment
	add := func(from, to int, changed bool) {
		if from < to {
			out = append(out, Segment{strings.Join(ws[from:to], ""), changed})
		}
	}
	at := 0
	for _, h := range hunks {
		add(at, h.From, false)
		add(h.From, h.To, true)
		at = h.To
	}
	add(at, len(ws), false)
	return out
}

// tokens cuts a text as it is shown into words, an escape of JSON or of package visible in one piece.
func tokens(s string) []string {
	var out []string
	for s != "" {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			return append(out, bodies.Words(s, bodies.MaxWords)...)
		}
		out = append(out, bodies.Words(s[:at], bodies.MaxWords)...)
		n := escapeLen(s[at:])
		out, s = append(out, s[at:at+n]), s[at+n:]
	}
	return out
}

// escapeLen is the length of the escape that s begins with: \n, \x1b or \u202e.
func escapeLen(s string) int {
	n := 2
	if len(s) > 1 {
		switch s[1] {
		case 'x':
			n = 4
		case 'u':
			n = 6
		}
	}
	return bodies.CutAt(s, min(n, len(s)))
}

// Window cuts two lines that differ to room columns each, around their first difference: both lose as much at their start.
func Window(was, now []Segment, room int) (a, b []Segment) {
	if WidthOf(was) <= room && WidthOf(now) <= room {
		return was, now
	}
	skip := 0
	if len(was) > 0 && len(now) > 0 && !was[0].Changed && !now[0].Changed {
		lead, changed := Width(was[0].Text), 0
		for _, l := range [][]Segment{was, now} {
			if len(l) > 1 {
				changed = max(changed, Width(l[1].Text))
			}
		}
		if lead+changed > room-1 {
			skip = max(0, lead-room/3)
		}
	}
	return cutLine(was, skip, room), cutLine(now, skip, room)
}

// cutLine leaves out the first skip columns of a line, or a few less, and what is beyond room.
func cutLine(l []Segment, skip, room int) []Segment {
	out := l
	if skip > 0 {
		head := tokens(l[0].Text)
		for len(head) > 0 && skip > 0 {
			if w := Width(head[0]); w <= skip {
				head, skip = head[1:], skip-w
				continue
			}
			if head[0][0] != '\\' {
				head[0] = head[0][fitting(head[0], skip):]
			}
			break
		}
		out = append([]Segment{{Text: "…" + strings.Join(head, "")}}, l[1:]...)
	}
	if WidthOf(out) > room {
		out = Wrap(out, room-1)[0]
		out = append(out, Segment{Text: "…"})
	}
	return out
}

// Wrap cuts text into lines of at most width columns, at blanks where there are some. It returns one line at least. A closing
// quote never stands on a line of its own.
func Wrap(segs []Segment, width int) []Line {
	out := []Line{nil}
	used := 0
	for _, s := range segs {
		for _, word := range tokens(s.Text) {
			for first := true; word != ""; first = false {
				n := fitting(word, width-used)
				if used > 0 && first && Width(word) > width-used {
					out, used = append(out, nil), 0 // a word that fits a line of its own is not cut
					if word = strings.TrimLeft(word, " "); word == "" {
						break
					}
					n = fitting(word, width)
				}
				last := &out[len(out)-1]
				*last = append(*last, Segment{word[:n], s.Changed})
				used += Width(word[:n])
				if word = word[n:]; word != "" {
					out, used = append(out, nil), 0
				}
			}
		}
	}
	return withQuote(out)
}

// withQuote puts the end of the line before it in front of a closing quote that stands alone on the last line.
func withQuote(lines []Line) []Line {
	n := len(lines) - 1
	if n == 0 || lines[n].Text() != `"` || len(lines[n-1]) == 0 {
		return lines
	}
	before := lines[n-1]
	last := before[len(before)-1]
	before = slices.Clone(before[:len(before)-1])
	if len(before) == 0 { // one long word
		_, size := utf8.DecodeLastRuneInString(last.Text)
		if size == len(last.Text) {
			return lines
		}
		before = Line{{last.Text[:len(last.Text)-size], last.Changed}}
		last.Text = last.Text[len(last.Text)-size:]
	}
	lines[n-1], lines[n] = before, slices.Insert(lines[n], 0, last)
	return lines
}

// fitting is how many bytes of s fit into width columns, at least one character.
func fitting(s string, width int) int {
	for i, r := range s {
		if width -= grapheme.Width(r); width < 0 && i > 0 {
			return i
		}
	}
	return len(s)
}

// WidthOf is how many columns a terminal gives to segs.
func WidthOf(segs []Segment) int {
	n := 0
	for _, s := range segs {
		n += Width(s.Text)
	}
	return n
}

// Width is how many columns a terminal takes for s.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += grapheme.Width(r)
	}
	return n
}

// Of is a row by columns: a character of two stands in both, one of none with the one before it.
func Of(s string) (out []string) {
	for _, r := range s {
		n := grapheme.Width(r)
		if n == 0 && len(out) > 0 {
			out[len(out)-1] += string(r)
		}
		for range n {
			out = append(out, string(r))
		}
	}
	return out
}
