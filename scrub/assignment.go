package scrub

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// Bounds of an assignment, from gitleaks.
const (
	maxFiller  = 20 // bytes of more words after the name: twitter_api_key
	maxQuotes  = 3  // quotes and blanks before the sign
	maxOpening = 5  // the same after it
)

var fillerChars = chars.NewSet("_ \t.-")

// valueEnds tells whether an assigned value can end at i.
func valueEnds(t text, i int) outcome {
	if i >= len(t.b) {
		return t.endedOr(hit)
	}
	if strings.IndexByte(" \t\r\n\v\f'\"`;\\&,)]}<>+/:=%|#?@", t.b[i]) >= 0 {
		return hit
	}
	if t.b[i] == '.' {
		return stops(t, i)
	}
	return miss
}

// assignment returns the end of the sign by which something is assigned to a name that ends at i. That may be a digest: it
// is none where the last word before the sign says so.
func assignment(t text, i int) (end int, o outcome) {
	filler := filler(t, i)
	if saysDigest(filler) {
		return 0, miss
	}
	i += len(filler)
	for range maxQuotes {
		n, o := quote(t, i)
		if o == more {
			return 0, more
		}
		if o == miss {
			break
		}
		i += n
	}
	return sign(t, i)
}

// filler returns the words that follow a name that ends at i.
func filler(t text, i int) []byte {
	end := i
	for end < len(t.b) && end-i < maxFiller && fillerChars[t.b[end]] {
		end++
	}
	return t.b[i:end]
}

// sign returns the end of the sign of an assignment at i: one of = > : := ::= :::= || => ?= and the comma.
func sign(t text, i int) (end int, o outcome) {
	if i >= len(t.b) {
		return 0, t.ended()
	}
	second := byte(0)
	if i+1 < len(t.b) {
		second = t.b[i+1]
	} else if t.b[i] != '>' && t.b[i] != ',' {
		return 0, t.ended()
	}
	switch c := t.b[i]; {
	case c == '>' || c == ',':
		return i + 1, hit
	case c == '=' && second == '>', c == '|' && second == '|', c == '?' && second == '=':
		return i + 2, hit
	case c == '=':
		return i + 1, hit
	case c == ':':
		return colons(t, i)
	}
	return 0, miss
}

func colons(t text, i int) (end int, o outcome) {
	const most = 3
	for end = i; end < i+most; end++ {
		if end >= len(t.b) {
			return 0, t.ended()
		}
		if t.b[end] != ':' {
			break
		}
	}
	if end >= len(t.b) {
		return 0, t.ended()
	}
	if t.b[end] == '=' {
		return end + 1, hit
	}
	return i + 1, hit
}

// quote returns the length of the quotation mark or white space at i, which may be escaped as in JSON, a form or a URL.
func quote(t text, i int) (n int, o outcome) {
	if i >= len(t.b) {
		return 0, t.ended()
	}
	switch t.b[i] {
	case ' ', '\t', '\r', '\n', '\v', '\f', '\'', '"', '`':
		return 1, hit
	case '%':
		end, o := t.oneOf(i, "%20", "%22", "%27")
		return max(0, end-i), o
	case '\\':
		n, _ = t.slashes(i, 0)
		if i+n >= len(t.b) {
			return 0, t.ended()
		}
		if strings.IndexByte(`"'nrt`, t.b[i+n]) >= 0 {
			return n + 1, hit
		}
	}
	return 0, miss
}

// digestWords are what the value after them is, and no secret. "h1" is that of go.sum.
var digestWords = []string{"h1", "sha1", "sha224", "sha256", "sha384", "sha512", "md5", "blake3", "digest", "checksum",
	"integrity", "commit", "rev", "revision", "hash", "etag", "sum"}

// saysDigest tells whether the last word of filler says that a digest follows.
func saysDigest(filler []byte) bool {
	last := bytes.TrimRight(filler, " \t")
	last = last[bytes.LastIndexAny(last, " \t._-")+1:]
	for _, w := range digestWords {
		if len(w) == len(last) && strings.EqualFold(w, string(last)) {
			return true
		}
	}
	return false
}

// alone tells whether no digit of base64 stands before i. A slash of a path and a blank of a form, as +, are none: a word stands
// before them.
func alone(b []byte, i int) bool {
	before := b[max(0, i-chars.LookBehind):i]
	if len(before) == 0 || !chars.Base64[b[i-1]] || b[i-1] == '=' || chars.AfterEscape(before) {
		return true
	}
	if chars.IsAlnum(b[i-1]) {
		return false
	}
	word := before[:len(before)-1]
	end := len(word)
	for len(word) > 0 && chars.IsAlnum(word[len(word)-1]) {
		word = word[:len(word)-1]
	}
	return (len(word) > 0 || i < chars.LookBehind) && isPlain(before[len(word):end])
}

// isPlain tells a word, which may be numbered, from a piece of base64.
func isPlain(word []byte) bool {
	const most = 12
	letters := bytes.TrimRight(word, "0123456789")
	return len(word) <= most && !bytes.ContainsFunc(letters, func(r rune) bool { return r < 'a' || r > 'z' })
}

// keyEnds tells whether a key that begins at start can end at i: what follows is no more of a word, of base64, or of a call. Where the key
// itself may be base64, what follows a plus sign or a slash tells.
func keyEnds(t text, start, i int) outcome {
	if i >= len(t.b) {
		return t.endedOr(hit)
	}
	switch c := t.b[i]; {
	case chars.Word[c] || strings.IndexByte("-([", c) >= 0:
		return miss
	case chars.Base64[c]:
		if bytes.ContainsAny(t.b[start:i], "_-.~") {
			return hit
		}
		return plainAt(t, i+1, c)
	}
	return stops(t, i)
}

// plainAt tells whether a word follows at i, behind c, and no base64.
func plainAt(t text, i int, c byte) outcome {
	end := i
	for end < len(t.b) && chars.IsAlnum(t.b[end]) && end-i < chars.LookBehind {
		end++
	}
	switch {
	case end == len(t.b) && !t.final:
		return more
	case end == i && c == '=' || !isPlain(t.b[i:end]): // what ends in = is base64
		return miss
	}
	return hit
}
