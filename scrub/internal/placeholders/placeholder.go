// Package placeholders is the grammar of what stands for secrets in everything that is written:
//
//	placeholder = "td_" rule "_" [ form "_" ] 12 hex digits
//
// The digits are of the value alone. The form says in which disguise the value stood; see Form.
package placeholders

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// What a placeholder is made of.
const (
	Prefix   = "td_"
	HexLen   = 12 // hex digits of a placeholder
	maxRule  = 40 // bytes of a rule's name
	Longest  = len(Prefix) + maxRule + 1 + HexLen
	shortest = len(Prefix) + 1 + 1 + HexLen
)

// RuleName makes a rule's name of the name of a variable or header: lowercase letters, digits and underscores, at most
// maxRule bytes. A name in which a placeholder would seem to end early, or that seems to end in a form, becomes "secret", so
// that a placeholder has one reading only.
func RuleName(name string) string {
	b := []byte(name[:min(len(name), maxRule)])
	for i, c := range b {
		switch {
		case chars.IsUpper(c):
			b[i] = c | 0x20
		case !chars.IsAlnum(c):
			b[i] = '_'
		}
	}
	rule := strings.Trim(string(b), "_")
	if _, ok, _ := At([]byte(Prefix+rule+"_"), 0); rule == "" || ok || hasForm(rule) {
		return "secret"
	}
	return rule
}

// At returns the end of the placeholder at i. cut says that b ends while one may stand there.
func At(b []byte, i int) (end int, ok, cut bool) {
	if rest := b[min(i, len(b)):]; len(rest) < len(Prefix) {
		return 0, false, strings.HasPrefix(Prefix, string(rest))
	} else if string(rest[:len(Prefix)]) != Prefix {
		return 0, false, false
	}
	for j := i + len(Prefix); j <= i+len(Prefix)+maxRule; j++ {
		if j == len(b) {
			return 0, false, true
		}
		c := b[j]
		if c == '_' && j > i+len(Prefix) {
			if end, ok, cut := hexTail(b, j+1); ok || cut {
				return end, ok, cut
			}
		}
		if c != '_' && !chars.IsDigit(c) && !chars.IsLower(c) {
			break
		}
	}
	return 0, false, false
}

// hexTail returns the end of the hex digits of a placeholder that begin at i.
func hexTail(b []byte, i int) (end int, ok, cut bool) {
	for end = i; end < i+HexLen; end++ {
		if end == len(b) {
			return 0, false, true
		}
		if !chars.IsLowerHex(b[end]) {
			return 0, false, false
		}
	}
	return end, true, false
}

// Is tells whether s is one placeholder and nothing else.
func Is(s string) bool {
	end, ok, _ := At([]byte(s), 0)
	return ok && end == len(s)
}

// Each calls f for each placeholder of b, from left to right.
func Each(b []byte, f func(start, end int)) {
	for i := 0; len(b)-i >= shortest; {
		next := bytes.Index(b[i:], []byte(Prefix))
		if next < 0 {
			return
		}
		i += next
		end, ok, _ := At(b, i)
		if !ok {
			i++
			continue
		}
		f(i, end)
		i = end
	}
}

// Cut returns where a placeholder may begin in b that has not come whole, after those that have; len(b) where none may.
func Cut(b []byte) int {
	for i := 0; i < len(b); {
		next := bytes.IndexByte(b[i:], Prefix[0])
		if next < 0 {
			break
		}
		i += next
		switch end, ok, cut := At(b, i); {
		case cut:
			return i
		case ok:
			i = end
		default:
			i++
		}
	}
	return len(b)
}

// Digits returns the hex digits of a placeholder: two placeholders with the same ones stand for the same value.
func Digits(placeholder string) string { return placeholder[max(0, len(placeholder)-HexLen):] }

// Rule returns the rule of a placeholder, with its form.
func Rule(placeholder string) string {
	return placeholder[len(Prefix) : len(placeholder)-HexLen-1]
}

// Replace returns b with each placeholder replaced by what with says; where that reports false it stays. It returns b itself where
// nothing is to be replaced, and never writes to b.
func Replace(b []byte, with func(placeholder string) (text string, ok bool)) []byte {
	var out []byte
	from := 0
	Each(b, func(start, end int) {
		if text, ok := with(string(b[start:end])); ok {
			out = append(append(out, b[from:start]...), text...)
			from = end
		}
	})
	if from == 0 {
		return b
	}
	return append(out, b[from:]...)
}

// Renumber replaces each placeholder of b by td_#<n>, where n counts the different secrets by their first appearance, from 1. seen are
// the numbers of the parts of the text before b, to which it adds. It returns b itself where nothing is to be replaced, and never
// writes to b.
func Renumber(b []byte, seen map[string]int) []byte {
	return Replace(b, func(placeholder string) (string, bool) {
		if seen == nil {
			seen = make(map[string]int)
		}
		n, ok := seen[Digits(placeholder)]
		if !ok {
			n = len(seen) + 1
			seen[Digits(placeholder)] = n
		}
		return Prefix + "#" + strconv.Itoa(n), true
	})
}
