package fidelity

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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

// merged is l with neighbours of one kind in one piece, as they are coloured: wrap cuts them at words.
func (l line) merged() line {
	var out line
	for _, s := range l {
		if n := len(out) - 1; n >= 0 && out[n].changed == s.changed {
			out[n].text += s.text
		} else {
			out = append(out, s)
		}
	}
	return out
}

// segments cuts two short texts at the words that differ.
func segments(was, now string) (a, b []segment) {
	wa, wb := tokens(was), tokens(now)
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

// tokens cuts a text as it is shown into words, an escape of JSON or of package visible in one piece.
func tokens(s string) []string {
	var out []string
	for s != "" {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			return append(out, words(s, maxWords)...)
		}
		out = append(out, words(s[:at], maxWords)...)
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
	return cutAt(s, min(n, len(s)))
}

// window cuts two lines that differ to room columns each, around their first difference: both lose as much at their start.
func window(was, now []segment, room int) (a, b []segment) {
	if segmentsWidth(was) <= room && segmentsWidth(now) <= room {
		return was, now
	}
	skip := 0
	if len(was) > 0 && len(now) > 0 && !was[0].changed && !now[0].changed {
		lead, changed := widthOf(was[0].text), 0
		for _, l := range [][]segment{was, now} {
			if len(l) > 1 {
				changed = max(changed, widthOf(l[1].text))
			}
		}
		if lead+changed > room-1 {
			skip = max(0, lead-room/3)
		}
	}
	return cutLine(was, skip, room), cutLine(now, skip, room)
}

// cutLine leaves out the first skip columns of a line, or a few less, and what is beyond room.
func cutLine(l []segment, skip, room int) []segment {
	out := l
	if skip > 0 {
		head := tokens(l[0].text)
		for len(head) > 0 && skip > 0 {
			if w := widthOf(head[0]); w <= skip {
				head, skip = head[1:], skip-w
				continue
			}
			if head[0][0] != '\\' {
				head[0] = head[0][fitting(head[0], skip):]
			}
			break
		}
		out = append([]segment{{text: "…" + strings.Join(head, "")}}, l[1:]...)
	}
	if segmentsWidth(out) > room {
		out = wrap(out, room-1)[0]
		out = append(out, segment{text: "…"})
	}
	return out
}

// wrap cuts text into lines of at most width columns, at blanks where there are some. It returns one line at least. A closing
// quote never stands on a line of its own.
func wrap(segs []segment, width int) []line {
	out := []line{nil}
	used := 0
	for _, s := range segs {
		for _, word := range tokens(s.text) {
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
	return withQuote(out)
}

// withQuote puts the end of the line before it in front of a closing quote that stands alone on the last line.
func withQuote(lines []line) []line {
	n := len(lines) - 1
	if n == 0 || lines[n].text() != `"` || len(lines[n-1]) == 0 {
		return lines
	}
	before := lines[n-1]
	last := before[len(before)-1]
	before = slices.Clone(before[:len(before)-1])
	if len(before) == 0 { // one long word
		_, size := utf8.DecodeLastRuneInString(last.text)
		if size == len(last.text) {
			return lines
		}
		before = line{{last.text[:len(last.text)-size], last.changed}}
		last.text = last.text[len(last.text)-size:]
	}
	lines[n-1], lines[n] = before, slices.Insert(lines[n], 0, last)
	return lines
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
