package fidelity

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxShown    = 160 // bytes of a value in a Change, about
	contextKept = 24  // bytes beside the words that differ, about
	maxWords    = 50_000
)

// diffText compares two bodies that are not both JSON: the first line that differs.
func diffText(a, b []byte) []Change {
	switch {
	case bytes.Equal(a, b):
		return nil
	case len(a) == 0:
		return []Change{{Op: Added, Now: shorten(string(b))}}
	case len(b) == 0:
		return []Change{{Op: Removed, Was: shorten(string(a))}}
	case !utf8.Valid(a) || !utf8.Valid(b):
		return []Change{diffBytes(a, b)}
	}
	c, _ := firstLine(string(a), string(b), func(x, y string) bool { return x == y })
	return []Change{c}
}

// diffBytes compares two runs of bytes that are not both text.
func diffBytes(a, b []byte) Change {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	show := func(p []byte) string { return fmt.Sprintf("%d bytes: … % x …", len(p), p[at:min(at+16, len(p))]) }
	return Change{Path: "byte " + strconv.Itoa(at), Op: Changed, Was: show(a), Now: show(b)}
}

// firstLine returns the first line in which two texts differ, and whether there is one. same compares two lines.
func firstLine(a, b string, same func(a, b string) bool) (Change, bool) {
	for n := 1; a != "" || b != ""; n++ {
		lineA, restA, moreA := strings.Cut(a, "\n")
		lineB, restB, moreB := strings.Cut(b, "\n")
		path := "line " + strconv.Itoa(n)
		switch {
		case a == "":
			return Change{Path: path, Op: Added, Now: shorten(lineB)}, true
		case b == "":
			return Change{Path: path, Op: Removed, Was: shorten(lineA)}, true
		case !same(lineA, lineB):
			was, now := shortenPair(lineA, lineB)
			return Change{Path: path, Op: Changed, Was: was, Now: now}, true
		case moreA != moreB && restA == "" && restB == "":
			return Change{Path: path, Op: Changed, Was: endOfLine(moreA), Now: endOfLine(moreB)}, true
		}
		a, b = restA, restB
	}
	return Change{}, false
}

func endOfLine(newline bool) string {
	if newline {
		return "ends with a newline"
	}
	return "ends without a newline"
}

// shortenPair returns two texts that differ as quoted JSON, shortened to the words that differ and a few beside them.
func shortenPair(a, b string) (was, now string) {
	wa, wb := words(a), words(b)
	if len(wa) > maxWords || len(wb) > maxWords {
		wa, wb = []string{a}, []string{b}
	}
	var hunksA, hunksB []span
	i, j := 0, 0
	for _, m := range append(align(wa, wb), match{len(wa), len(wb)}) {
		if m.i > i || m.j > j {
			hunksA, hunksB = append(hunksA, span{i, m.i}), append(hunksB, span{j, m.j})
		}
		i, j = m.i+1, m.j+1
	}
	return excerpt(wa, hunksA), excerpt(wb, hunksB)
}

// A span is a run of words that differs from the other text; an empty one is where the other text has more.
type span struct{ from, to int }

// words cuts a text into words, runs of blanks and single other characters. Nothing is lost.
func words(s string) []string {
	var out []string
	for len(s) > 0 {
		class := classOf(s)
		n := 0
		for n < len(s) && classOf(s[n:]) == class {
			_, size := utf8.DecodeRuneInString(s[n:])
			if n += size; class == 0 {
				break
			}
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// classOf returns 1 for a character of a word, 2 for a blank, 0 for any other.
func classOf(s string) int {
	r, _ := utf8.DecodeRuneInString(s)
	switch {
	case unicode.IsLetter(r), unicode.IsDigit(r), r == '_':
		return 1
	case unicode.IsSpace(r):
		return 2
	}
	return 0
}

// excerpt shows the runs of words that differ and some of what stands beside them.
func excerpt(ws []string, hunks []span) string {
	var out strings.Builder
	at := 0
	for _, h := range hunks {
		out.WriteString(elide(strings.Join(ws[at:h.from], ""), at > 0, true))
		out.WriteString(strings.Join(ws[h.from:h.to], ""))
		at = h.to
	}
	out.WriteString(elide(strings.Join(ws[at:], ""), true, false))
	return shorten(out.String())
}

// elide shortens a run of kept words to its start, when something before it differs, and its end, when something behind
// it does.
func elide(s string, before, behind bool) string {
	if len(s) <= 2*contextKept+len("…") {
		return s
	}
	var head, tail string
	if before {
		head = s[:cutAt(s, contextKept)]
	}
	if behind {
		tail = s[cutAt(s, len(s)-contextKept):]
	}
	return head + "…" + tail
}

// cutAt returns the last position up to n at which a character starts.
func cutAt(s string, n int) int {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

// shorten quotes a text as JSON does, cut to maxShown.
func shorten(s string) string {
	if len(s) > maxShown {
		s = s[:cutAt(s, maxShown)] + "…"
	}
	return encodeJSON(s)
}

// shortJSON encodes a value, cut to maxShown.
func shortJSON(v any) string {
	if s, ok := v.(string); ok {
		return shorten(s)
	}
	s := encodeJSON(v)
	if len(s) > maxShown {
		s = s[:cutAt(s, maxShown)] + "…"
	}
	return s
}

// encodeJSON encodes what decodeJSON gave, keys sorted, no character escaped for the sake of HTML.
func encodeJSON(v any) string {
	b, err := marshal(v)
	if err != nil {
		return fmt.Sprint(v) // not reached with decoded JSON
	}
	return string(b)
}

// joinKey appends a key to a path, quoted where it would read as something else.
func joinKey(path, key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return classOf(string(r)) != 1 && r != '-' && r != '$' }) {
		return path + "[" + encodeJSON(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
