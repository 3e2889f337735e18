package team

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// The bounds of what is searched of a run: of one text, which is cut into pieces, and of all, in bytes.
const (
	maxPiece = 64 << 10
	maxTexts = 8 << 20
)

// A text is what can be found in a run.
type text struct{ what, body string }

// textsOf are the texts of a recording; more says that there are others, beyond maxTexts.
func textsOf(rec *recording.Recording) (out []text, more bool, err error) {
	left := maxTexts
	err = account.Texts(rec, func(what, body string) bool {
		for _, piece := range pieces(clean(body)) {
			if left -= len(piece); left < 0 {
				more = true
				return false
			}
			out = append(out, text{what, piece})
		}
		return true
	})
	return out, more, err
}

// pieces cuts a text where a word ends, if one does.
func pieces(s string) (out []string) {
	for len(s) > maxPiece {
		at := maxPiece
		for !utf8.RuneStart(s[at]) {
			at--
		}
		if i := strings.LastIndexFunc(s[:at], func(r rune) bool { return !isWord(r) }); i > 0 {
			at = i
		}
		out, s = append(out, s[:at]), s[at:]
	}
	if strings.ContainsFunc(s, isWord) {
		out = append(out, s)
	}
	return out
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// words are those of a text, in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !isWord(r) })
}

// The excerpt of a text that a hit has: so many bytes before its first word, and behind it.
const before, behind = 60, 140

// excerpt is where the first of some words stands in a text, on one line.
func excerpt(body string, want []string) string {
	from, within := 0, false
	for i, r := range body {
		if !within && isWord(r) && hasWord(body[i:], want) {
			from = i
			break
		}
		within = isWord(r)
	}
	begin, end := max(0, from-before), min(len(body), from+behind)
	for begin > 0 && !utf8.RuneStart(body[begin]) {
		begin--
	}
	for end < len(body) && !utf8.RuneStart(body[end]) {
		end++
	}
	out := strings.Join(strings.Fields(body[begin:end]), " ")
	if begin > 0 {
		out = "…" + out
	}
	if end < len(body) {
		out += "…"
	}
	return out
}

// hasWord reports whether a text begins with one of some words.
func hasWord(s string, want []string) bool {
	end := strings.IndexFunc(s, func(r rune) bool { return !isWord(r) })
	if end < 0 {
		end = len(s)
	}
	for _, w := range want {
		if strings.ToLower(s[:end]) == w {
			return true
		}
	}
	return false
}
