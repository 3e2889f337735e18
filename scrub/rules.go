package scrub

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// shapeRules lists the shapes that are looked for in every text. Each is told by a literal that does not stand in
// ordinary text; what has no such literal (a bare hex digest could be a key) is left to known values.
func shapeRules() []*rule {
	rules := []*rule{placeholderRule, jwtRule, pemRule, urlRule("://"), urlRule(`:\/\/`),
		schemeRule("bearer", chars.Bearer, bearerToken), schemeRule("basic", chars.Base64, basicCredentials)}
	return append(rules, asRules(ownKeys)...)
}

// ownKeys are the keys of providers that are told by themselves, on tapes of other producers too.
var ownKeys = slices.Concat(
	keys(prefixRule{rule: "anthropic", min: 12, max: 512, set: chars.Token}, "sk-ant-"),
	keys(prefixRule{rule: "openai", min: 20, max: 512, set: chars.Token, word: true, accept: openaiKey}, "sk-"),
	keys(prefixRule{rule: "google", min: 30, max: 64, set: chars.Token, word: true}, "AIza"),
	keys(prefixRule{rule: "github", min: 22, max: 255, set: chars.Word}, "github_pat_"),
	keys(prefixRule{rule: "github", min: 36, max: 255, set: chars.Alnum}, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	keys(prefixRule{rule: "npm", min: 36, max: 64, set: chars.Alnum, word: true}, "npm_"),
	keys(prefixRule{rule: "huggingface", min: 30, max: 64, set: chars.Alnum, word: true}, "hf_"),
	keys(prefixRule{rule: "aws", min: 16, max: 16, set: chars.Alnum, word: true, accept: upperAlnum}, "AKIA", "ASIA"),
	keys(prefixRule{rule: "slack", min: 10, max: 255, set: chars.Token, word: true, accept: names.HasDigit},
		"xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
	keys(prefixRule{rule: "stripe", min: 10, max: 255, set: chars.Alnum}, "sk_live_", "sk_test_", "rk_live_", "rk_test_"),
)

// placeholderRule protects what was scrubbed before.
var placeholderRule = &rule{starts: []string{placeholders.Prefix}, match: func(t text, i int) (span, outcome) {
	end, ok, cut := placeholders.At(t.b, i)
	switch {
	case ok:
		return span{start: i, end: end, protected: true}, hit
	case cut:
		return span{}, t.ended()
	}
	return span{}, miss
}}

// A prefixRule finds keys that begin with a literal.
type prefixRule struct {
	rule, prefix string
	min, max     int // bytes after the prefix; a longer run is not a key
	set          *chars.Set
	word         bool // the prefix must begin a word
	alone        bool // it is short: no digit of base64, of either alphabet, may stand on its two sides
	accept       func(rest []byte) bool
	stays        bool // the prefix is a word of many texts: it is looked for by its end, and is no part of the secret
}

// keys returns a rule for each of some prefixes.
func keys(key prefixRule, prefixes ...string) (all []prefixRule) {
	for _, key.prefix = range prefixes {
		all = append(all, key)
	}
	return all
}

func asRules(keys []prefixRule) (rules []*rule) {
	for i := range keys {
		r := &keys[i]
		start := r.prefix[:3]
		if r.stays {
			start = r.prefix[len(r.prefix)-3:]
		}
		rules = append(rules, &rule{[]string{start}, []string{r.rule}, r.match})
	}
	return rules
}

func (r *prefixRule) match(t text, i int) (span, outcome) {
	if r.stays {
		if i -= len(r.prefix) - 3; i < 0 {
			return span{}, miss
		}
	}
	o := t.literal(i, r.prefix)
	if o == miss || r.word && !chars.Boundary(t.b, i) || r.alone && (!alone(t.b, i) || i > 0 && t.b[i-1] == '-') {
		return span{}, miss
	}
	if o == more {
		return span{}, more
	}
	start := i + len(r.prefix)
	end, o := t.run(start, r.set, r.max)
	if o == hit && r.alone {
		o = keyEnds(t, i, end)
	}
	if o == hit && (end-start < r.min || r.accept != nil && !r.accept(t.b[start:end])) {
		o = miss
	}
	if !r.stays {
		start = i
	}
	return span{start: start, end: end, rank: shaped, rule: r.rule}, o
}

// openaiKey tells a key from a hyphenated word that happens to begin with "sk-": digits, and letters and digits in a row
// that no word has.
func openaiKey(rest []byte) bool {
	for _, p := range []string{"proj-", "svcacct-", "admin-"} {
		if bytes.HasPrefix(rest, []byte(p)) {
			return names.HasDigit(rest)
		}
	}
	digits, row, longestRow := 0, 0, 0
	for _, c := range rest {
		if chars.IsDigit(c) {
			digits++
		}
		if row++; c == '-' || c == '_' {
			row = 0
		}
		longestRow = max(longestRow, row)
	}
	return digits >= 3 && longestRow >= 16
}

func upperAlnum(b []byte) bool { return bytes.Equal(b, bytes.ToUpper(b)) }

// schemeRule finds the credentials after the name of an HTTP authentication scheme, in any text.
func schemeRule(scheme string, set *chars.Set, accept func(credentials []byte) bool) *rule {
	return &rule{anyCase(scheme[:3]), []string{scheme}, func(t text, i int) (span, outcome) {
		o := t.literalFold(i, scheme)
		if o == miss || !chars.Boundary(t.b, i) {
			return span{}, miss
		}
		if o == more {
			return span{}, more
		}
		start, o := formBlank(t, i+len(scheme))
		if o != hit {
			return span{}, o
		}
		end, o := t.run(start, set, maxShape-len(scheme)-len("%20"))
		if o == hit && !accept(t.b[start:end]) {
			o = miss
		}
		return span{start: start, end: end, rule: scheme}, o
	}}
}

// anyCase lists the ways to write a text in small letters and capitals.
func anyCase(lower string) []string {
	all := []string{""}
	for k := range len(lower) {
		var next []string
		for _, s := range all {
			next = append(next, s+lower[k:k+1])
			if chars.IsLower(lower[k]) {
				next = append(next, s+strings.ToUpper(lower[k:k+1]))
			}
		}
		all = next
	}
	return all
}

// bearerToken tells a token from a word of prose.
func bearerToken(b []byte) bool { return len(b) >= 16 && names.HasDigit(b) }

// basicCredentials tells base64 of user:password from a word of prose.
func basicCredentials(b []byte) bool {
	_, _, ok := names.Basic(string(b))
	return ok
}

func isUUID(v string) bool {
	end, ok := chars.UUIDAt([]byte(v), 0)
	return ok && end == len(v)
}

// jwtRule finds JSON Web Tokens: two parts of base64url that decode to objects, and a signature.
var jwtRule = &rule{starts: []string{"eyJ"}, names: []string{"jwt"}, match: (&expression{
	source: `(eyJ[\w-]{7,}\.eyJ[\w-]{7,}\.[\w-]*)`, word: true, limit: maxShape - 256,
}).finds(span{rule: "jwt", rank: shaped}, nil)}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemLabel = "PRIVATE KEY"
)

// What a block of a private key is made of, as it stands, in JSON and in a form.
const (
	pemSpace  = `(?: |\+|%20)`
	pemBlanks = `(?:[ \t\r\n]|\\[nrt\\]|%0[AaDd])*`
	pemWords  = `(?:[A-Za-z0-9]|` + pemSpace + `){0,40}`
	pemEnds   = pemSpace + pemWords + `PRIVATE` + pemSpace + `KEY` + pemWords + `-----`
	pemHeader = `[A-Za-z0-9-]{0,64}:[^\n\r\\]{0,128}(?:[\n\r]|\\[nr\\])` + pemBlanks
	pemDigit  = `(?:[A-Za-z0-9+/=]|%2[BbFf]|%3[Dd])`
	pemLine   = `(?:` + pemDigit + `{20,}|` + pemDigit + `*(?:=|%3[Dd]))`
)

// pemRule finds blocks of private keys, whole or cut off: headers (Proc-Type: 4,ENCRYPTED), lines of 20 digits of base64 or more, but for
// the last one, and the line of the end. A block that ends in dots is one of which a document shows no more than the beginning: it is
// about how the key was made.
var pemRule = &rule{starts: []string{"---"}, names: []string{"pem"}, match: (&expression{
	source: `(-----BEGIN` + pemEnds + pemBlanks + `(?:` + pemHeader + `)*(?:` +
		`(?:` + pemLine + pemBlanks + `)*` + pemDigit + `*` + pemBlanks + `-----END` + pemEnds + `|` +
		pemLine + `(?:` + pemBlanks + pemLine + `)*))(?:` + pemBlanks + `(?:\.\.\.|\x{e2}\x{80}\x{a6}))?`,
	least: "-----BEGIN", limit: maxShape - 256, cuts: true,
}).finds(span{rule: "pem", rank: shaped}, func(_, all, secret []byte) bool {
	const mostShown = 100 // bytes of a block that ends in dots
	_, body, _ := bytes.Cut(secret[len(pemBegin):], []byte("-----"))
	return len(all) == len(secret) || len(body) > mostShown
})}

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
