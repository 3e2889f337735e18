package scrub

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

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
