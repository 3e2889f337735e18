package bodies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
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
	ms := align.Align(masked(la), masked(lb))
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

func masked(ls []textLine) []string {
	out := make([]string, len(ls))
	for i := range ls {
		out[i] = ls[i].masked
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
	p := PairTexts(was, now)
	d.add(at, &Change{Op: Changed, Was: Quote(p.Was), Now: Quote(p.Now), NewText: p.NewText})
}

func endOfLine(newline bool) string {
	if newline {
		return "ends with a newline"
	}
	return "ends without a newline"
}

// Shorten quotes a text as JSON does, cut to MaxShown.
func Shorten(s string) string {
	if len(s) > MaxShown {
		s = s[:CutAt(s, MaxShown)] + "…"
	}
	return Quote(s)
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
