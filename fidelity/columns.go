package fidelity

import (
	"strings"
	"unicode"
)

// A segment is a run of text that is the same on both sides, or is not.
type segment struct {
	text    string
	changed bool
}

// A line is what stands in one line.
type line []segment

func (l line) text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// segments cuts two short texts at the words that differ.
func segments(was, now string) (a, b []segment) {
	wa, wb := words(was, maxWords), words(now, maxWords)
	hunksA, hunksB := hunksOf(wa, wb)
	return segmentsOf(wa, hunksA), segmentsOf(wb, hunksB)
}

func segmentsOf(ws []string, hunks []span) []segment {
	var out []segment
	add := func(from, to int, changed bool) {
		if from < to {
			out = append(out, segment{strings.Join(ws[from:to], ""), changed})
		}
	}
	at := 0
	for _, h := range hunks {
		add(at, h.from, false)
		add(h.from, h.to, true)
		at = h.to
	}
	add(at, len(ws), false)
	return out
}

// wrap cuts text into lines of at most width columns, at blanks where there are some. It returns one line at least.
func wrap(segs []segment, width int) []line {
	out := []line{nil}
	used := 0
	for _, s := range segs {
		for _, word := range words(s.text, maxWords) {
			for first := true; word != ""; first = false {
				n := fitting(word, width-used)
				if used > 0 && first && widthOf(word) > width-used {
					out, used = append(out, nil), 0 // a word that fits a line of its own is not cut
					if word = strings.TrimLeft(word, " "); word == "" {
						break
					}
					n = fitting(word, width)
				}
				last := &out[len(out)-1]
				*last = append(*last, segment{word[:n], s.changed})
				used += widthOf(word[:n])
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
		if width -= columnsOf(r); width < 0 && i > 0 {
			return i
		}
	}
	return len(s)
}

func segmentsWidth(segs []segment) int {
	n := 0
	for _, s := range segs {
		n += widthOf(s.text)
	}
	return n
}

// widthOf is how many columns a terminal takes for s.
func widthOf(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// wide are the characters that take two columns: East Asian wide ones (Unicode TR 11) and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1}, {Lo: 0x1f900, Hi: 0x1faff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r), r == '\u200b', r == '\u200d':
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
