// Package columns lays texts out in the columns of a terminal: cut, wrapped, beside each other, with what differs in them marked.
package columns

import (
	"strings"

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
			return append(out, bodies.Words(s)...)
		}
		out = append(out, bodies.Words(s[:at])...)
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

// Wrap cuts text into lines of at most width columns, at blanks where there are some. It returns one line at least.
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
	return out
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
