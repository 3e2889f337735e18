package bodies

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/align"
)

// Bounds of what is shown of two texts, and compared word by word.
const (
	MaxShown    = 160     // bytes of a value in a Change, about
	contextKept = 24      // bytes beside the words that differ, about
	maxPaired   = 1 << 20 // bytes of two texts that are compared word by word
	maxNewText  = 400     // bytes of new text that a cause is traced by
)

// A TextPair shows how two texts differ.
type TextPair struct {
	Was, Now string // shortened to the words that differ and a few beside them
	line     int    // of the first difference, in texts of several lines; else 0
	NewText  string // the longest run of words that only the new text has
}

// PairTexts compares two texts word by word. Of long ones all that lies between their common start and end differs.
func PairTexts(a, b string) *TextPair {
	p := &TextPair{}
	head, tail := commonEnds(a, b)
	if strings.Contains(strings.TrimSuffix(a, "\n"), "\n") || strings.Contains(strings.TrimSuffix(b, "\n"), "\n") {
		p.line = strings.Count(b[:head], "\n") + 1
	}
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	wa, wb := []string{midA}, []string{midB}
	if len(midA)+len(midB) <= maxPaired {
		wa, wb = Words(midA), Words(midB)
	}
	hunksA, hunksB := Hunks(wa, wb)
	before, after := elide(a[:head], false, true), elide(a[len(a)-tail:], true, false)
	p.Was, p.Now = excerpt(before, wa, hunksA, after), excerpt(before, wb, hunksB, after)
	p.NewText = longest(wb, hunksB)
	return p
}

// ShortenPair returns two texts that differ as quoted JSON, shortened to the words that differ and a few beside them.
func ShortenPair(a, b string) (was, now string) {
	p := PairTexts(a, b)
	return Quote(p.Was), Quote(p.Now)
}

// commonEnds returns how many bytes at the start and at the end two texts share, whole words where these are not long.
func commonEnds(a, b string) (head, tail int) {
	head = wordStart(a, b, commonPrefix(a, b))
	tail = commonSuffix(a[head:], b[head:], len(a))
	for n := 0; tail > 0 && (n < MaxShown && inWord(a, len(a)-tail, b, len(b)-tail) || !utf8.RuneStart(a[len(a)-tail])); n++ {
		tail--
	}
	return head, tail
}

// wordStart goes back from n to where a word starts in both texts, which are equal up to there.
func wordStart(a, b string, n int) int {
	for back := 0; n > 0; back++ {
		split := n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])
		if !split && (back >= MaxShown || !inWord(a, n, b, n)) {
			break
		}
		n--
	}
	return n
}

// inWord reports whether position i of a or j of b lies inside a word or a run of blanks.
func inWord(a string, i int, b string, j int) bool { return InsideWord(a, i) || InsideWord(b, j) }

// InsideWord reports whether position i of s lies inside a word or a run of blanks.
func InsideWord(s string, i int) bool {
	if i == 0 || i == len(s) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	class := classOf(after)
	return class != aSign && classOf(before) == class
}

// Hunks returns the runs of words that differ, on each side. Runs that only one blank parts are one.
func Hunks(wa, wb []string) (hunksA, hunksB []align.Span) {
	ms := align.Align(wa, wb)
	i, j := 0, 0
	for _, m := range append(ms, align.Match{I: len(wa), J: len(wb)}) {
		if m.I > i || m.J > j {
			if n := len(hunksA) - 1; n >= 0 && i == hunksA[n].To+1 && strings.TrimSpace(wa[i-1]) == "" {
				hunksA[n].To, hunksB[n].To = m.I, m.J
			} else {
				hunksA, hunksB = append(hunksA, align.Span{From: i, To: m.I}), append(hunksB, align.Span{From: j, To: m.J})
			}
		}
		i, j = m.I+1, m.J+1
	}
	return hunksA, hunksB
}

// Classes of characters.
const (
	aSign  = iota // stands by itself
	aWord         // letters, digits and _
	aBlank        // white space
)

func classOf(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_':
			return aWord
		case r == ' ', '\t' <= r && r <= '\r':
			return aBlank
		}
		return aSign
	case unicode.IsLetter(r), unicode.IsDigit(r):
		return aWord
	case unicode.IsSpace(r):
		return aBlank
	}
	return aSign
}

// Words cuts a text into words, runs of blanks and single other characters. Nothing is lost.
func Words(s string) []string {
	var out []string
	from, class := 0, -1
	for i, r := range s {
		if c := classOf(r); c != class || c == aSign {
			if i > from {
				out = append(out, s[from:i])
			}
			from, class = i, c
		}
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

// excerpt shows the runs of words that differ and some of what stands beside them.
func excerpt(before string, ws []string, hunks []align.Span, after string) string {
	var out strings.Builder
	out.WriteString(before)
	at := 0
	for n, h := range hunks {
		out.WriteString(elide(strings.Join(ws[at:h.From], ""), n > 0, true))
		out.WriteString(strings.Join(ws[h.From:h.To], ""))
		at = h.To
		if out.Len() > 4*MaxShown {
			break
		}
	}
	if out.Len() <= 4*MaxShown {
		out.WriteString(elide(strings.Join(ws[at:], ""), true, false))
		out.WriteString(after)
	}
	s := out.String()
	if len(s) > MaxShown {
		s = s[:CutAt(s, MaxShown)] + "…"
	}
	return s
}

// longest returns the longest run of words that differs, without the blanks beside it.
func longest(ws []string, hunks []align.Span) string {
	var best string
	for _, h := range hunks {
		if s := strings.TrimSpace(strings.Join(ws[h.From:h.To], "")); len(s) > len(best) {
			best = s
		}
	}
	return clip(best)
}

// clip cuts new text to what is traced.
func clip(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxNewText {
		s = s[:CutAt(s, maxNewText)]
	}
	return s
}

// elide shortens a run of kept words to its start, when something before it differs, and its end, when something behind
// it does.
func elide(s string, before, behind bool) string {
	if len(s) <= 2*contextKept+len("…") {
		return s
	}
	var head, tail string
	if before {
		head = s[:CutAt(s, contextKept)]
	}
	if behind {
		tail = s[CutAt(s, len(s)-contextKept):]
	}
	return head + "…" + tail
}

// CutAt returns the last position up to n at which a character starts.
func CutAt(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
