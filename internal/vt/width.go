package vt

import (
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// FirstCluster is what the first cell of a text would hold, with the columns that it takes where mode 2027 is off. Of an empty text it is empty.
func FirstCluster(text string) (cluster string, width int) {
	var st grapheme.State
	for i, r := range text {
		next, boundary := grapheme.Next(st, r)
		w := grapheme.Width(r)
		if i > 0 && w > 0 && (boundary || !grapheme.JoinsCell(st, r)) {
			return text[:i], width
		}
		width = max(width, w)
		if i > 0 && flag(r) {
			width = 2
		}
		st = next
	}
	return text, width
}

// StringWidth is how many columns a text takes in one line. Control characters take none.
func StringWidth(text string) int {
	total := 0
	for text != "" {
		if c := text[0]; c >= 0x20 && c < 0x7f && (len(text) == 1 || text[1] < utf8.RuneSelf) {
			total++
			text = text[1:]
			continue
		}
		cluster, w := FirstCluster(text)
		total += w
		text = text[len(cluster):]
	}
	return total
}
