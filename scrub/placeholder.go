package scrub

import (
	"bytes"
	"strconv"
	"strings"
)

const (
	prefix   = "td_"
	hexLen   = 12 // hex digits of a placeholder
	maxRule  = 40 // bytes of a rule's name
	longest  = len(prefix) + maxRule + 1 + hexLen
	shortest = len(prefix) + 1 + 1 + hexLen
)

// ruleName makes a rule's name of the name of a variable or header: lowercase letters, digits and underscores, at most
// maxRule bytes. A name in which a placeholder would seem to end early, or that seems to end in a form, becomes "secret", so
// that a placeholder has one reading only.
func ruleName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name) && b.Len() < maxRule; i++ {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			b.WriteByte(c | 0x20)
		case isAlnum(c):
			b.WriteByte(c)
		default:
			b.WriteByte('_')
		}
	}
	rule := strings.Trim(b.String(), "_")
	if end, o := wholeText(prefix + rule + "_").placeholder(0); rule == "" || o == hit && end > 0 || hasForm(rule) {
		return "secret"
	}
	return rule
}

// placeholder returns the end of the placeholder at i.
func (t text) placeholder(i int) (end int, o outcome) {
	if o := t.literal(i, prefix); o != hit {
		return 0, o
	}
	for j := i + len(prefix); j <= i+len(prefix)+maxRule; j++ {
		if j == len(t.b) {
			return 0, t.ended()
		}
		c := t.b[j]
		if c == '_' && j > i+len(prefix) {
			if end, o := t.hexTail(j + 1); o != miss {
				return end, o
			}
		}
		if c != '_' && !isDigit(c) && (c < 'a' || c > 'z') {
			return 0, miss
		}
	}
	return 0, miss
}

// hexTail returns the end of the hex digits of a placeholder that begin at i.
func (t text) hexTail(i int) (end int, o outcome) {
	for end = i; end < i+hexLen; end++ {
		if end == len(t.b) {
			return 0, t.ended()
		}
		if !isLowerHex(t.b[end]) {
			return 0, miss
		}
	}
	return end, hit
}

// isPlaceholder tells whether s is one placeholder and nothing else.
func isPlaceholder(s string) bool {
	end, o := wholeText(s).placeholder(0)
	return o == hit && end == len(s)
}

// eachPlaceholder calls f for each placeholder of b, from left to right.
func eachPlaceholder(b []byte, f func(start, end int)) {
	t := text{b: b, final: true}
	for i := 0; len(b)-i >= shortest; {
		next := bytes.Index(b[i:], []byte(prefix))
		if next < 0 {
			return
		}
		i += next
		end, o := t.placeholder(i)
		if o != hit {
			i++
			continue
		}
		f(i, end)
		i = end
	}
}

// Renumber replaces each placeholder of b by td_#<n>, where n counts the different secrets by their first appearance in b,
// from 1. So neither the project's key, nor the secret, nor the rule that found it first matters to a digest of what it
// returns, while which places held the same secret still does. It returns b itself where nothing is to be replaced, and
// never writes to b.
func Renumber(b []byte) []byte { return renumber(b, nil) }

// renumber is Renumber of a part of a text; seen are the numbers of the parts before, to which it adds. With nil it is the only
// part.
func renumber(b []byte, seen map[string]int) []byte {
	var (
		out  []byte
		from int
	)
	eachPlaceholder(b, func(start, end int) {
		if seen == nil {
			seen = make(map[string]int)
		}
		if out == nil {
			out = make([]byte, 0, len(b))
		}
		secret := string(b[end-hexLen : end])
		n, ok := seen[secret]
		if !ok {
			n = len(seen) + 1
			seen[secret] = n
		}
		out = append(append(out, b[from:start]...), prefix...)
		out = strconv.AppendInt(append(out, '#'), int64(n), 10)
		from = end
	})
	if out == nil {
		return b
	}
	return append(out, b[from:]...)
}

// placeholderName returns the rule of a placeholder.
func placeholderName(placeholder string) string {
	return placeholder[len(prefix) : len(placeholder)-hexLen-1]
}
