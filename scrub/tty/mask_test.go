package tty_test

import (
	"testing"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// characters are of every length in UTF-8 and every width.
var characters = []string{"a", "é", "§", "€", "字", "ｶ", "𝒜", "𠀀", "😀", "e\u0301", "e\u0301\u0323", "字\u0301", "☎\ufe0f", "1\ufe0f\u20e3",
	"👨\u200d👩\u200d👧", "🇩🇪", "👍🏽", "각", "\u1100\u1161\u11a8", "क्षि", "한", "ก็", "\u2603", "🏴\U000e0067\U000e0062\U000e007f"}

// TestMaskKeepsLengthAndColumns masks each character, alone and between others.
func TestMaskKeepsLengthAndColumns(t *testing.T) {
	for _, c := range characters {
		for _, beside := range []string{"", "x", "字", "é", "1", "👩"} {
			text := beside + c + beside
			b := []byte(text)
			tty.Mask(b, 100, []tty.Hit{{Start: 100 + int64(len(beside)), End: 100 + int64(len(beside)+len(c))}})
			if len(b) != len(text) || vt.StringWidth(string(b)) != vt.StringWidth(text) || !utf8.Valid(b) || cells(string(b)) != cells(text) {
				t.Errorf("%+q became %+q: %s, not %s", text, b, cells(string(b)), cells(text))
			}
			if string(b) == text && c != "" {
				t.Errorf("%+q stayed", text)
			}
			if string(b[:len(beside)]) != beside || string(b[len(b)-len(beside):]) != beside {
				t.Errorf("%+q became %+q", text, b)
			}
		}
	}
}

// cells are the widths of a text's cells.
func cells(text string) (widths string) {
	for text != "" {
		c, w := vt.FirstCluster(text)
		widths += string(rune('0' + w))
		text = text[len(c):]
	}
	return widths
}

// TestMaskLeavesSequences masks text alone.
func TestMaskLeavesSequences(t *testing.T) {
	b := []byte("ab\x1b[1mcd\x1b]0;title\x07e\r\n\x9c\xc2\x9b1mfg")
	tty.Mask(b, 0, []tty.Hit{{Start: 0, End: int64(len(b))}})
	if want := "**\x1b[1m**\x1b]0;title\x07*\r\n\x9c\xc2\x9b1m**"; string(b) != want {
		t.Errorf("%q, want %q", b, want)
	}
}

// TestMaskOfPart masks what of a hit lies in a piece of the stream.
func TestMaskOfPart(t *testing.T) {
	b := []byte("abcdef")
	tty.Mask(b, 10, []tty.Hit{{Start: 5, End: 12}, {Start: 15, End: 40}, {Start: 90, End: 99}})
	if string(b) != "**cde*" {
		t.Errorf("%q", b)
	}
}
