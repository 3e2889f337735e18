package scrub

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// Bounds of an assignment, from gitleaks.
const (
	maxFiller  = 20 // bytes of more words after the name: twitter_api_key
	maxQuotes  = 3  // quotes and blanks before the sign
	maxOpening = 5  // the same after it
)

var fillerChars = chars.NewSet("_ \t.-")

// assignedAt looks for a secret that is assigned to a name that ends at i.
func (r *leakRule) assignedAt(t text, i int) (span, outcome) {
	at, o := assignment(t, i)
	if o != hit {
		return span{}, o
	}
	says := r.says || names.PartSays(filler(t, i))
	for range maxOpening + 1 {
		if at >= len(t.b) {
			return span{}, t.ended()
		}
		if s, o := r.valueAt(t, at, says); o != miss {
			return s, o
		}
		n, o := quote(t, at)
		if o == miss && t.b[at] == '=' {
			n, o = 1, hit
		}
		if o != hit {
			return span{}, o
		}
		at += n
	}
	return span{}, miss
}

// valueAt looks for a secret at i that something was assigned to. says tells whether the name says that it is one.
func (r *leakRule) valueAt(t text, i int, says bool) (span, outcome) {
	if c := t.b[i]; !chars.Bearer[c] {
		return span{}, miss
	}
	for _, l := range r.assigned {
		if l.says && !says {
			continue
		}
		l.compile()
		end, o := l.prog.match(t, i, maxLeak)
		if o == hit {
			o = valueEnds(t, end)
		}
		if o == more {
			return span{}, more
		}
		if o == hit && l.secret(t.b[i:end]) {
			return span{start: i, end: end, rank: shaped, rule: l.rule, context: true}, hit
		}
	}
	return span{}, miss
}

// valueEnds tells whether an assigned value can end at i.
func valueEnds(t text, i int) outcome {
	if i >= len(t.b) {
		return atEnd(t)
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

// quote returns the length of the quotation mark or white space at i, which may be escaped as in JSON.
func quote(t text, i int) (n int, o outcome) {
	if i >= len(t.b) {
		return 0, t.ended()
	}
	switch t.b[i] {
	case ' ', '\t', '\r', '\n', '\v', '\f', '\'', '"', '`':
		return 1, hit
	case '%':
		return escapedQuote(t, i)
	case '\\':
		n = t.slashes(i)
		if i+n >= len(t.b) {
			return 0, t.ended()
		}
		if strings.IndexByte(`"'nrt`, t.b[i+n]) >= 0 {
			return n + 1, hit
		}
	}
	return 0, miss
}

// escapedQuote is quote for one of a form or a URL.
func escapedQuote(t text, i int) (n int, o outcome) {
	for _, s := range []string{"%20", "%22", "%27"} {
		if o := t.literal(i, s); o != miss {
			return len(s), o
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
