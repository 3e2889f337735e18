package scrub

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// shapeRules lists the shapes that are looked for in every text. Each is told by a literal that does not stand in
// ordinary text; what has no such literal (a bare hex digest could be a key) is left to known values.
func shapeRules() []*rule {
	rules := []*rule{placeholderRule, jwtRule, pemRule, urlRule("://"), urlRule(`:\/\/`),
		schemeRule("bearer", chars.Bearer, bearerToken), schemeRule("basic", chars.Base64, basicCredentials)}
	return append(rules, asRules(ownKeys())...)
}

// ownKeys are the keys of providers that are told by themselves, on tapes of other producers too.
func ownKeys() []prefixRule {
	return slices.Concat(
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

// vendorKeys are the keys of providers that gitleaks has no rule for, or one that asks for more than a key by itself: the name of the
// service before it, whose name for it is taken then. Each has a literal of its own; where that is short, what follows must look random too.
var vendorKeys = sync.OnceValue(func() []prefixRule {
	return slices.Concat(
		keys(prefixRule{rule: "bitbucket", min: 32, max: 32, set: chars.Alnum, alone: true, accept: random}, "ATBB"),
		keys(prefixRule{rule: "bitbucket", min: 60, max: 512, set: chars.NewSet("_-="), accept: random}, "ATCTT3"),
		keys(prefixRule{rule: "brave", min: 27, max: 29, set: chars.Token, alone: true, accept: random}, "BSA"),
		keys(prefixRule{rule: "cerebras", min: 40, max: 64, set: chars.Alnum, word: true, accept: names.HasDigit}, "csk-"),
		keys(prefixRule{rule: "docker", min: 20, max: 64, set: chars.Token, accept: names.HasDigit}, "dckr_oat_", "dckr_pat_"),
		keys(prefixRule{rule: "e2b", min: 40, max: 40, set: chars.Alnum, word: true, accept: hexDigits}, "e2b_"),
		keys(prefixRule{rule: "elevenlabs", min: 48, max: 48, set: chars.Alnum, word: true, accept: hexDigits}, "sk_"),
		keys(prefixRule{rule: "figma", min: 36, max: 64, set: chars.Token, word: true, accept: names.HasDigit}, "figd_"),
		keys(prefixRule{rule: "firecrawl", min: 32, max: 32, set: chars.Alnum, word: true, accept: hexDigits}, "fc-"),
		keys(prefixRule{rule: "fireworks", min: 20, max: 36, set: chars.Alnum, alone: true, accept: random}, "fw_"),
		keys(prefixRule{rule: "google", min: 20, max: 40, set: chars.Token, word: true}, "GOCSPX-"),
		keys(prefixRule{rule: "google", min: 20, max: 2048, set: chars.NewSet("_-."), word: true, accept: names.HasDigit}, "ya29."),
		keys(prefixRule{rule: "groq", min: 40, max: 64, set: chars.Alnum, word: true, accept: names.HasDigit}, "gsk_"),
		keys(prefixRule{rule: "jina", min: 40, max: 80, set: chars.Token, word: true, accept: jinaKey}, "jina_"),
		keys(prefixRule{rule: "langfuse", min: chars.UUIDLen, max: chars.UUIDLen, set: chars.Token, word: true,
			accept: func(b []byte) bool { return isUUID(string(b)) }}, "sk-lf-"),
		keys(prefixRule{rule: "langsmith", min: 32, max: 64, set: chars.Word, word: true, accept: names.HasDigit}, "lsv2_pt_", "lsv2_sk_"),
		keys(prefixRule{rule: "mailgun", min: 32, max: 32, set: chars.Alnum, word: true, accept: hexDigits, stays: true}, "key-"),
		keys(prefixRule{rule: "new_relic_user_api_key", min: 27, max: 27, set: chars.Alnum, word: true, accept: upperAlnum}, "NRAK-"),
		keys(prefixRule{rule: "new_relic_insert_key", min: 32, max: 32, set: chars.Token, word: true, accept: names.HasDigit}, "NRII-"),
		keys(prefixRule{rule: "notion", min: 40, max: 64, set: chars.Alnum, word: true, accept: names.HasDigit}, "ntn_"),
		keys(prefixRule{rule: "nvidia", min: 40, max: 100, set: chars.Token, word: true, accept: names.HasDigit}, "nvapi-"),
		keys(prefixRule{rule: "onepassword", min: 60, max: maxLeak, set: chars.Token, word: true, accept: names.HasDigit}, "ops_ey"),
		keys(prefixRule{rule: "pinecone", min: 40, max: 100, set: chars.Word, word: true, accept: names.HasDigit}, "pcsk_"),
		keys(prefixRule{rule: "replicate", min: 37, max: 37, set: chars.Token, alone: true, accept: random}, "r8_"),
		keys(prefixRule{rule: "sentry", min: 60, max: 1024, set: chars.NewSet("_+/="), word: true, accept: names.HasDigit}, "sntrys_"),
		keys(prefixRule{rule: "supabase", min: 20, max: 64, set: chars.Token, word: true, accept: names.HasDigit}, "sb_secret_"),
		keys(prefixRule{rule: "supabase", min: 40, max: 40, set: chars.Alnum, word: true, accept: hexDigits}, "sbp_", "sbp_oauth_"),
		keys(prefixRule{rule: "tavily", min: 20, max: 80, set: chars.Token, word: true, accept: names.HasDigit}, "tvly-"),
		keys(prefixRule{rule: "vercel", min: 24, max: 100, set: chars.Alnum, alone: true, accept: random}, "vca_", "vci_", "vck_", "vcp_", "vcr_"),
		keys(prefixRule{rule: "vercel", min: 24, max: 100, set: chars.Word, word: true, accept: random}, "vercel_blob_rw_"),
		keys(prefixRule{rule: "xai", min: 60, max: 100, set: chars.Word, word: true, accept: names.HasDigit}, "xai-"),
	)
})

// random tells what was drawn from capitals, small letters and digits, and is no name.
func random(b []byte) bool {
	const least = 3.4 // bits a byte; of twenty characters drawn from 62 there are 4
	return names.HasDigit(b) && !bytes.Equal(b, bytes.ToLower(b)) && !bytes.Equal(b, bytes.ToUpper(b)) && entropy(b) >= least
}

func hexDigits(b []byte) bool {
	return len(bytes.Trim(b, hexLetters+numerals)) == 0 && names.HasDigit(b)
}

// jinaKey tells a key from the name of a model: jina_embeddings_v2_….
func jinaKey(b []byte) bool { return names.HasDigit(b) && !bytes.ContainsAny(b[:20], "_-") }

// placedKeys are secrets that are found by what stands before them, which stays: the number of a bot of Telegram, the URL of a webhook of
// Discord, whose slashes may be escaped, and the words of a .netrc, in whatever order and on however many lines, of JSON too.
var placedKeys = []*rule{
	{starts: []string{":AA", "%3A", "%3a"}, names: []string{"telegram"}, match: (&expression{source: `(?::|%3[Aa])(AA[\w-]*)`, limit: 64}).
		finds(span{rule: "telegram", rank: shaped}, func(before, _, secret []byte) bool {
			const digits, length = 8, 35
			return len(secret) == length && len(before)-len(bytes.TrimRight(before, "0123456789")) >= digits
		})},
	{starts: []string{"hoo"}, names: []string{"discord"}, match: (&expression{
		source: `hooks(?:/|\\/|%2[Ff])[0-9]{17,20}(?:/|\\/|%2[Ff])([\w-]{60,80})(?:[^\w-]|\z)`, least: "hooks", limit: 128,
	}).finds(span{rule: "discord", rank: shaped}, func(before, _, secret []byte) bool {
		return bytes.HasSuffix(before, []byte("web")) && names.HasDigit(secret)
	})},
	{starts: []string{"mac"}, names: []string{"netrc"}, match: (&expression{
		source: `machine` + netrcBlanks + netrcWord + `(?:` + netrcBlanks + `(?:login|account|port)` + netrcBlanks + netrcWord + `)*` +
			netrcBlanks + `password` + netrcBlanks + `(` + netrcWord + `)(?:` + netrcBlanks + `|"|\\{1,9}"|\z)`,
		least: "machine", word: true, limit: maxNetrc,
	}).finds(span{rule: "netrc", context: true}, func(_, words, secret []byte) bool {
		return !isNetrcExample(string(secret)) && !isProse(words[:bytes.LastIndex(words, secret)], string(secret))
	})},
}

const (
	maxNetrc    = 1 << 10 // bytes of one machine
	netrcBlanks = `(?:[\s\v]|%20|\\{1,9}[nrt])+`
	netrcWord   = `(?:[^\s\v"\\]|\\{1,9}[^\\nrt"])+?`
)

// isProse tells whether what stands on one line before a password is a sentence: neither names a machine, nor is the password no word.
func isProse(words []byte, value string) bool {
	if hasLineEnd(words) {
		return false
	}
	all := strings.Fields(strings.NewReplacer("%20", " ", `\t`, " ").Replace(string(words)))
	host := all[min(1, len(all)-1)]
	isHost := host == "localhost" || strings.Contains(strings.Trim(host, "."), ".")
	return !isHost && names.AreWords(strings.TrimRight(value, "'`,;.:!?)"))
}

// hasLineEnd tells whether b has a line end, be it that of a string of JSON.
func hasLineEnd(b []byte) bool {
	return bytes.ContainsAny(b, "\r\n") || bytes.Contains(b, []byte(`\n`)) || bytes.Contains(b, []byte(`\r`))
}

// isNetrcExample tells a password that is none: of a document, a template or a program.
func isNetrcExample(v string) bool {
	for _, begin := range []string{"<", `\u003c`, "{", placeholders.Prefix} {
		if strings.HasPrefix(v, begin) {
			return true
		}
	}
	return names.IsExample(strings.TrimRight(v, "'`,;.)")) || strings.Contains(v, `\u00`) || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' })
}

// genuine tells whether s, which a rule found in t, is a secret, and none of the examples of documents. A README that is full
// of them holds none, and a replay needs no value for what was never hidden.
func genuine(t text, s span) bool {
	return s.protected || !isExampleKey(t.b[s.start:s.end], s) && !isShownPassword(t, s)
}

// isShownPassword tells whether s, which a rule found by its place, is a password that documents show and that is set nowhere
// but in an example: postgres://postgres:postgres@localhost/db, a common word, the Basic credentials of RFC 7617.
func isShownPassword(t text, s span) bool {
	switch s.rule {
	case urlPassword:
		user := ""
		if before, ok := bytes.CutSuffix(t.b[:s.start], []byte(":")); ok { // else a token stands in the place of the user
			user = string(before[bytes.LastIndexByte(before, '/')+1:])
		}
		return names.IsWellKnown(user, string(t.b[s.start:s.end]))
	case "basic":
		user, password, _ := names.Basic(string(t.b[s.start:s.end]))
		return names.IsWellKnown(user, password)
	}
	return false
}

// isExampleKey tells whether b, which s is the span of, is an example and no key: one that a provider's documents show, one
// that is filled up with one character, one that says so. What only its place told to be a secret (a password, a Bearer
// token) may be anything: there a word in it says nothing, and people repeat a character in a password.
func isExampleKey(b []byte, s span) bool {
	switch {
	case isDocumented(b):
		return true
	case s.rule == urlPassword:
		return false
	case names.FilledUp(b):
		return true
	case s.rule == "basic":
		password, _ := names.BasicPassword(string(b))
		return names.IsExample(password)
	case s.rule == "pem":
		return isPEMExample(b)
	case s.rank == general:
		return false
	}
	return saysExample(b)
}

// exampleWords are in no key that was drawn from letters and digits, but for one of thousands of millions.
var exampleWords = []string{"example", "placeholder", "redacted", "changeme", "your_", "your-", "yourkey", "yourtoken", "yourapi"}

// saysExample tells whether b says that it is an example, or is one that gitleaks allows.
func saysExample(b []byte) bool {
	lower := strings.ToLower(string(b))
	if slices.ContainsFunc(exampleWords, func(w string) bool { return strings.Contains(lower, w) }) {
		return true
	}
	return fitsOne(allowedKeys(), b)
}

// allowedKeys are what gitleaks allows of keys that scrub has a rule of its own for.
var allowedKeys = sync.OnceValue(func() (out []*regexp.Regexp) {
	for i := range leaks {
		if id := leaks[i].id; id == "aws-access-token" || id == "gcp-api-key" {
			out = append(out, compiled(leaks[i].allow)...)
		}
	}
	return out
})

func isDocumented(b []byte) bool {
	if slices.Contains(documentedKeys, string(b)) {
		return true
	}
	_, payload, ok := bytes.Cut(b, []byte("."))
	return ok && slices.ContainsFunc(documentedClaims, func(c string) bool { return bytes.HasPrefix(payload, []byte(c)) })
}

var (
	documentedKeys = []string{
		"sk_test_4eC39HqLyjWDarjtT1zdp7dc", "sk_test_BQokikJOvBiI2HlWgH4olfQ2", "sk_test_26PHem9AhJZvU623DfE1x4sd", // Stripe
		"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "gho_16C7e42F292c6912E7710c838347Ae178B4a", // GitHub
		"ghu_16C7e42F292c6912E7710c838347Ae178B4a", "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
		"ghr_1B4a2e77838347a7E420ce178F2E7c6912E169246c34E1ccbF66C46812d16D5B1A9Dc86A1498",
		"AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe", // Firebase
	}
	// documentedClaims begin the second part of tokens whose signature is nobody's: {"sub":"1234567890","name":"John Doe" of
	// jwt.io, by whatever algorithm, and that of RFC 7519, which Joe issued.
	documentedClaims = []string{"eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lI", "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQog"}
)

// isPEMExample tells whether a block is one of a key that is filled up, or says that it is an example.
func isPEMExample(b []byte) bool {
	_, body, _ := bytes.Cut(b[len(pemBegin):], []byte("-----"))
	body, _, _ = bytes.Cut(body, []byte(pemEnd))
	return names.FilledUp(body) || saysExample(body)
}
