package scrub

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// jwtRule finds JSON Web Tokens: two parts of base64url that decode to objects, and a signature.
var jwtRule = &rule{starts: []string{"eyJ"}, names: []string{"jwt"}, match: func(t text, i int) (span, outcome) {
	if !chars.Boundary(t.b, i) {
		return span{}, miss
	}
	end := i
	for part := range 3 {
		if part > 0 {
			if o := t.literal(end, "."); o != hit {
				return span{}, o
			}
			end++
		}
		if part < 2 {
			if o := t.literal(end, "eyJ"); o != hit {
				return span{}, o
			}
		}
		start := end
		var o outcome
		if end, o = t.run(start, chars.Token, maxShape/4); o != hit {
			return span{}, o
		}
		if part < 2 && end-start < 10 {
			return span{}, miss
		}
	}
	return span{start: i, end: end, rank: shaped, rule: "jwt"}, hit
}}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemLabel = "PRIVATE KEY"
)

// pemRule finds blocks of private keys, whole or cut off, with real line ends, JSON's or those of a form.
var pemRule = &rule{starts: []string{"---"}, names: []string{"pem"}, match: func(t text, i int) (span, outcome) {
	start, o := pemLine(t, i, pemBegin)
	if o != hit {
		return span{}, o
	}
	end, o := pemBody(t, i, start)
	if o == hit && end == start {
		o = miss
	}
	return span{start: i, end: end, rank: shaped, rule: "pem"}, o
}}

// pemLine returns the end of a line like "-----BEGIN RSA PRIVATE KEY-----".
func pemLine(t text, i int, begin string) (end int, o outcome) {
	begin = strings.TrimSuffix(begin, " ")
	if o := t.literal(i, begin); o != hit {
		return 0, o
	}
	const maxLabel = 64
	start, o := formBlank(t, i+len(begin))
	if o != hit {
		return 0, o
	}
	for end = start; end < start+maxLabel; end++ {
		if end == len(t.b) {
			return 0, t.ended()
		}
		if c := t.b[end]; c == '-' {
			if !strings.Contains(formBlanks.Replace(string(t.b[start:end])), pemLabel) {
				return 0, miss
			}
			o := t.literal(end, "-----")
			return end + 5, o
		} else if c != ' ' && c != '+' && c != '%' && !chars.IsAlnum(c) {
			return 0, miss
		}
	}
	return 0, miss
}

// formBlanks undoes the blanks of a form and of a URL.
var formBlanks = strings.NewReplacer("+", " ", "%20", " ")

// pemBody returns the end of the block that began at first and whose lines begin at i: after its last line, or where the
// lines end that look like a key's. A line of a key has 20 digits of base64 or more, but for its last.
func pemBody(t text, first, i int) (end int, o outcome) {
	const (
		minLine  = 20
		maxBlock = maxShape - 256
	)
	headers := true
	for end = i; ; {
		if i = pemSpace(t, i); i-first > maxBlock {
			return end, hit
		}
		if left := len(t.b) - i; !t.final && (left == 0 || left == 1 && t.b[i] == '\\' || left < 3 && t.b[i] == '%') {
			return 0, more
		}
		if after, o := pemLine(t, i, pemEnd); o != miss {
			return after, o
		}
		if headers {
			next, o := pemHeader(t, i)
			if o == more {
				return 0, more
			}
			if headers = o == hit; headers {
				i = next
				continue
			}
		}
		after, o := pemDigits(t, i, first+maxBlock)
		if o == more {
			return 0, more
		}
		last := after > i && (t.b[after-1] == '=' || bytes.EqualFold(t.b[max(i, after-3):after], []byte("%3D")) || pemEndsAt(t, after))
		if after-i < minLine && !last {
			return end, hit
		}
		i, end = after, after
	}
}

// pemDigits returns the end of the digits of base64 at i, those that a form escapes among them, or a place behind limit.
func pemDigits(t text, i, limit int) (end int, o outcome) {
	for end = i; end <= limit; {
		if end, o = t.run(end, chars.Base64, max(0, limit-end)); o != hit || end == len(t.b) || t.b[end] != '%' {
			break
		}
		if end+2 >= len(t.b) {
			return end, t.endedOr(hit)
		}
		switch c := string(t.b[end+1 : end+3]); strings.ToUpper(c) {
		case "2B", "2F", "3D":
			end += len("%2B")
		default:
			return end, hit
		}
	}
	return end, o
}

// pemEndsAt tells whether the last line of a block follows at i, as far as the text has come.
func pemEndsAt(t text, i int) bool {
	i = pemSpace(t, i)
	return t.literal(i, pemEnd) != miss
}

// pemSpace skips white space and JSON's escapes for line ends.
func pemSpace(t text, i int) int {
	for i < len(t.b) {
		switch c := t.b[i]; {
		case c == ' ', c == '\t', c == '\r', c == '\n':
			i++
		case c == '\\' && i+1 < len(t.b) && strings.IndexByte(`nrt\`, t.b[i+1]) >= 0:
			i += 2
		case c == '%' && i+2 < len(t.b) && t.b[i+1] == '0' && strings.IndexByte("AaDd", t.b[i+2]) >= 0:
			i += 3
		default:
			return i
		}
	}
	return i
}

// pemHeader returns the end of a line like "Proc-Type: 4,ENCRYPTED".
func pemHeader(t text, i int) (end int, o outcome) {
	const maxHeader = 128
	colon := false
	for end = i; end < i+maxHeader; end++ {
		if end == len(t.b) {
			return 0, t.ended()
		}
		switch c := t.b[end]; {
		case c == ':':
			colon = true
		case c == '\n' || c == '\r' || c == '\\':
			if colon {
				return end, hit
			}
			return 0, miss
		case !colon && c != '-' && !chars.IsAlnum(c):
			return 0, miss
		}
	}
	return 0, miss
}

var userinfoChars = chars.NewSet("-._~!$&*+=:%@")

// urlRule finds the password of scheme://user:password@host, or a token in the place of the user.
func urlRule(slashes string) *rule {
	const maxUserinfo = 512
	return &rule{[]string{slashes[:3]}, []string{urlPassword}, func(t text, i int) (span, outcome) {
		if i == 0 || !chars.Alnum[t.b[i-1]] {
			return span{}, miss
		}
		if o := t.literal(i, slashes); o != hit {
			return span{}, o
		}
		start := i + len(slashes)
		end, o := t.run(start, userinfoChars, maxUserinfo)
		if o != hit {
			return span{}, o
		}
		from, to, ok := names.InUserinfo(string(t.b[start:end]))
		if !ok {
			return span{}, miss
		}
		return span{start: start + from, end: start + to, rule: urlPassword}, hit
	}}
}
