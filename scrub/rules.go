package scrub

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// A rule finds secrets by their shape.
type rule struct {
	starts []string // the three bytes with which the evidence can begin: match is called where one of them stands
	names  []string // what it calls the secrets that it finds
	// match looks for a secret whose evidence begins at i. The span may begin later. The outcome may be more only while
	// fewer than maxShape bytes follow i.
	match func(t text, i int) (span, outcome)
}

// maxShape is the length in bytes of the longest secret that is found by its shape. A Writer never holds back more than
// this, or than the escaped form of the longest known value.
const maxShape = 16 << 10

// rulesOf lists the rules of a version.
func rulesOf(version int) []*rule {
	rules := shapeRules()
	if version == RulesForeign {
		return rules
	}
	for i := range vendorKeys {
		rules = append(rules, vendorKeys[i].asRule())
	}
	return append(append(rules, telegramRule, webhookRule, netrcRule), leakRules()...)
}

// shapeRules lists the shapes that are looked for in every text. Each is told by a literal that does not stand in
// ordinary text; what has no such literal (a bare hex digest could be a key) is left to known values.
func shapeRules() []*rule {
	rules := []*rule{placeholderRule, jwtRule, pemRule, urlRule("://"), urlRule(`:\/\/`),
		schemeRule("bearer", chars.Bearer, bearerToken), schemeRule("basic", chars.Base64, basicCredentials)}
	add := func(key prefixRule, prefixes ...string) {
		for _, p := range prefixes {
			one := key
			one.prefix = p
			rules = append(rules, one.asRule())
		}
	}
	add(prefixRule{rule: "anthropic", min: 12, max: 512, set: chars.Token}, "sk-ant-")
	add(prefixRule{rule: "openai", min: 20, max: 512, set: chars.Token, word: true, accept: openaiKey}, "sk-")
	add(prefixRule{rule: "google", min: 30, max: 64, set: chars.Token, word: true}, "AIza")
	add(prefixRule{rule: "github", min: 22, max: 255, set: chars.Word}, "github_pat_")
	add(prefixRule{rule: "github", min: 36, max: 255, set: chars.Alnum}, "ghp_", "gho_", "ghu_", "ghs_", "ghr_")
	add(prefixRule{rule: "npm", min: 36, max: 64, set: chars.Alnum, word: true}, "npm_")
	add(prefixRule{rule: "huggingface", min: 30, max: 64, set: chars.Alnum, word: true}, "hf_")
	add(prefixRule{rule: "aws", min: 16, max: 16, set: chars.Alnum, word: true, accept: upperAlnum}, "AKIA", "ASIA")
	add(prefixRule{rule: "slack", min: 10, max: 255, set: chars.Token, word: true, accept: names.HasDigit},
		"xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-")
	add(prefixRule{rule: "stripe", min: 10, max: 255, set: chars.Alnum}, "sk_live_", "sk_test_", "rk_live_", "rk_test_")
	return rules
}

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

func (r *prefixRule) asRule() *rule {
	start := r.prefix[:3]
	if r.stays {
		start = r.prefix[len(r.prefix)-3:]
	}
	return &rule{[]string{start}, []string{r.rule}, r.match}
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

// formBlank returns the end of the blank at i, which a form or a URL may have escaped.
func formBlank(t text, i int) (end int, o outcome) {
	for _, s := range []string{" ", "+", "%20"} {
		if o := t.literal(i, s); o != miss {
			return i + len(s), o
		}
	}
	return 0, miss
}

// bearerToken tells a token from a word of prose.
func bearerToken(b []byte) bool { return len(b) >= 16 && names.HasDigit(b) }

// basicCredentials tells base64 of user:password from a word of prose.
func basicCredentials(b []byte) bool {
	_, _, ok := names.Basic(string(b))
	return ok
}
