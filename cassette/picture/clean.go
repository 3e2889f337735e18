package picture

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean returns text that is safe to show: what controls a terminal, turns the direction of text, or is not allowed in XML
// becomes U+FFFD.
func clean(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return strings.Map(cleanRune, s)
		}
	}
	return s
}

func cleanRune(c rune) rune {
	switch {
	case c < ' ', c >= 0x7F && c < 0xA0, c == 0xFFFE, c == 0xFFFF, !utf8.ValidRune(c), unicode.Is(unicode.Bidi_Control, c), c == 0x2028, c == 0x2029:
		return utf8.RuneError
	}
	return c
}

// seen returns a cell's text without what is not seen: a letter with formats behind it is the letter; a blank is "", and so
// is a soft hyphen, which has a cell and that nobody draws alike.
func seen(text string) string {
	if text == " " || text == "\u00ad" {
		return ""
	}
	if len(text) < 2 {
		return text
	}
	c, n := utf8.DecodeRuneInString(text)
	if c >= 0x1000 || n == len(text) {
		return text
	}
	for _, next := range text[n:] {
		if !unicode.Is(unicode.Cf, next) {
			return text
		}
	}
	return seen(text[:n])
}
