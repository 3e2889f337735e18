// Package meant guesses which of some names somebody meant who wrote one that is not among them.
package meant

import "strings"

// longest is the length in characters of the longest words that are compared.
const longest = 64

// By returns the name that was most likely meant by word: one that takes few characters to put in, take out or change, or that begins
// the same as word, but for its last character; "" for none. Letter case does not count. Of equally near ones the first wins that
// begins as word does, else the first.
func By(word string, names []string) (best string) {
	written := []rune(strings.ToLower(word))
	least, common := 0, 0
	for _, name := range names {
		known := []rune(strings.ToLower(name))
		if name == word || len(known) > longest || len(written) > longest {
			continue
		}
		cost, begin := distance(written, known), alike(written, known)
		if cost > len(written)/3+1 && (begin < 3 || begin < len(written)-1) {
			continue
		}
		if best == "" || cost < least || cost == least && begin > 0 && common == 0 {
			best, least, common = name, cost, begin
		}
	}
	return best
}

// alike is how many characters two words have in common from their beginning.
func alike(a, b []rune) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// distance is how many characters must be put in, taken out or changed to make b of a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		corner := row[0]
		row[0] = i + 1
		for j := range b {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}
