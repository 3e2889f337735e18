package scrub

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// quotes is a quotation mark or a blank, which may be escaped as in JSON, a form or a URL.
const quotes = `[\s\v'"` + "`" + `]|%2[027]|\\{1,9}["'nrt]`

// assignment is what stands between a name and what is assigned to it, as gitleaks bounds it: more words of the name (twitter_api_key), its
// first group, quotation marks and a sign.
var assignment = &expression{source: `([\w \t.-]{0,20})(?:` + quotes + `){0,3}(?:=>?|>|,|:{1,3}=|:|\|\||\?=)`, limit: maxLeak}

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
	if t.b[i] != '.' {
		return hit
	}
	switch { // a dot with more behind it
	case i+1 == len(t.b):
		return t.endedOr(hit)
	case chars.Word[t.b[i+1]]:
		return miss
	}
	return hit
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
