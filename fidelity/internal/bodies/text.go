package bodies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/align"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// text compares two bodies that are not both JSON: line by line where they are text.
func (d *bodyDiff) text(a, b string) {
	switch {
	case a == "" && !strings.Contains(b, "\n"):
		d.add(Spot{}, &Change{Op: Added, Now: Shorten(b), NewText: clip(b)})
	case b == "" && !strings.Contains(a, "\n"):
		d.add(Spot{}, &Change{Op: Removed, Was: Shorten(a)})
	case !utf8.ValidString(a) || !utf8.ValidString(b):
		d.changes = append(d.changes, diffBytes(a, b))
	default:
		d.lines(a, b)
	}
}

// diffBytes compares two runs of bytes that are not both text.
func diffBytes(a, b string) Change {
	at := commonPrefix(a, b)
	show := func(p string) string {
		here := fmt.Sprintf("% x", p[at:min(at+16, len(p))])
		if at == len(p) {
			here = "ends here"
		}
		return fmt.Sprintf("%d bytes, here %s", len(p), here)
	}
	return Change{Path: "byte " + strconv.Itoa(at), Op: Changed, Was: show(a), Now: show(b)}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	at := 0
	for at+64 <= n && a[at:at+64] == b[at:at+64] {
		at += 64
	}
	for at < n && a[at] == b[at] {
		at++
	}
	return at
}

// commonSuffix is the length of what a and b end in, at most limit.
func commonSuffix(a, b string, limit int) int {
	n := min(len(a), len(b), limit)
	tail := 0
	for tail < n && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return tail
}

// Alike is how many bytes two bodies begin and end with alike, at most maxLikeness each.
func Alike[T string | []byte](a, b T) int {
	head := commonPrefix(string(a[:min(len(a), maxLikeness)]), string(b[:min(len(b), maxLikeness)]))
	a, b = a[head:], b[head:]
	return head + commonSuffix(string(a[max(0, len(a)-maxLikeness):]), string(b[max(0, len(b)-maxLikeness):]), maxLikeness)
}

// A textLine is a line with its end, and as it compares.
type textLine struct {
	number int // from 1
	text   string
	masked string
}

// lines compares two texts line by line.
func (d *bodyDiff) lines(a, b string) {
	head := strings.LastIndexByte(a[:commonPrefix(a, b)], '\n') + 1
	tail := commonSuffix(a[head:], b[head:], len(a))
	if nl := strings.IndexByte(a[len(a)-tail:], '\n'); nl >= 0 {
		tail -= nl + 1
	} else {
		tail = 0
	}
	first := strings.Count(a[:head], "\n") + 1
	a, b = a[head:len(a)-tail], b[head:len(b)-tail]
	la, lb := d.split(a, first), d.split(b, first)
	ms := align.ByOrder(la, lb, func(l textLine) string { return l.masked })
	i, j := 0, 0
	for _, m := range append(ms, align.Match{I: len(la), J: len(lb)}) {
		d.hunk(la[i:m.I], lb[j:m.J])
		i, j = m.I+1, m.J+1
	}
}

// split cuts a text into lines. Those that masking drops are left out.
func (d *bodyDiff) split(s string, first int) []textLine {
	var out []textLine
	for line := range strings.Lines(s) {
		l := textLine{first, line, line}
		first++
		if d.mask != nil {
			if l.masked = d.mask(line); l.masked == "" {
				continue
			}
		}
		out = append(out, l)
	}
	return out
}

// hunk lists lines that were replaced by others.
func (d *bodyDiff) hunk(a, b []textLine) {
	for n := 0; n < max(len(a), len(b)) && !d.full(); n++ {
		switch {
		case n >= len(a):
			text := strings.TrimSuffix(b[n].masked, "\n")
			d.add(lineAt(b[n].number), &Change{Op: Added, Now: Shorten(text), NewText: clip(text)})
		case n >= len(b):
			d.add(lineAt(a[n].number), &Change{Op: Removed, Was: Shorten(strings.TrimSuffix(a[n].masked, "\n"))})
		default:
			d.line(&a[n], &b[n])
		}
	}
}

func lineAt(n int) Spot { return Spot{Path: "line " + strconv.Itoa(n)} }

func (d *bodyDiff) line(a, b *textLine) {
	at := lineAt(b.number)
	if a.number != b.number {
		at.In = fmt.Sprintf("(was line %d)", a.number)
	}
	was, moreA := strings.CutSuffix(a.masked, "\n")
	now, moreB := strings.CutSuffix(b.masked, "\n")
	if was == now {
		d.add(at, &Change{Op: Changed, Was: endOfLine(moreA), Now: endOfLine(moreB)})
		return
	}
	d.add(at, PairTexts(was, now).Change())
}

func endOfLine(newline bool) string {
	if newline {
		return "ends with a newline"
	}
	return "ends without a newline"
}

// Shorten quotes a text as JSON does, cut to MaxShown.
func Shorten(s string) string {
	return Quote(Cut(s, MaxShown))
}

// shortJSON shows a value as it is written, without white space, cut to MaxShown.
func shortJSON(raw string) string {
	if raw[0] == '"' {
		return Shorten(unquote(raw))
	}
	if len(raw) <= 4*MaxShown {
		var b bytes.Buffer
		if json.Compact(&b, []byte(raw)) == nil {
			raw = b.String()
		}
	}
	if len(raw) > MaxShown {
		raw = strings.Join(strings.Fields(raw[:CutAt(raw, MaxShown)]), " ") + "…"
	}
	return raw
}

// Quote encodes a string, no character escaped for the sake of HTML. Bytes that are no text stand as \xff, which JSON has no form for.
func Quote(s string) string {
	if !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	b, _ := jsonscan.Marshal(s) // a string always has a form
	return string(b)
}

// joinKey appends a key to a path, quoted where it would read as something else.
func joinKey(path, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return classOf(r) != aWord && r != '-' && r != '$' }) {
		return path + "[" + Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

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
	// Reordered: both have the same words.
	Reordered bool
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
	p.NewText, p.Reordered = longest(wb, hunksB), slices.Equal(slices.Sorted(slices.Values(wa)), slices.Sorted(slices.Values(wb)))
	return p
}

// Change is what a pair reads as.
func (p *TextPair) Change() *Change {
	return &Change{Op: Changed, Was: Quote(p.Was), Now: Quote(p.Now), Line: p.line, NewText: p.NewText, Reordered: p.Reordered}
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
	return Cut(out.String(), MaxShown)
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

// Cut returns a text, of a longer one its first n bytes or so with a sign that there is more.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:CutAt(s, n)] + "…"
}

// CutAt returns the last position up to n at which a character starts.
func CutAt(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
