package scrub_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// What OAuth passes through a browser is hidden by its company; the same names elsewhere are not.
func TestOAuthFlow(t *testing.T) {
	const secret = "kJ8sPq2LmW4zTn6vRb9x"
	for u, hides := range map[string]bool{
		"https://a.test/authorize?response_type=code&client_id=c&state=" + secret:               true,
		"https://a.test/authorize?client_id=c&code_challenge=" + secret + "&response_type=code": true,
		"http://127.0.0.1:7/callback?code=" + secret + "&state=s":                               true,
		"http://127.0.0.1:7/callback?state=" + secret + "&error=access_denied":                  true,
		"http://127.0.0.1:7/callback?iss=https%3A%2F%2Fa.test&code=" + secret:                   true,
		"https://a.test/run?code=" + secret:                                                     false,
		"https://a.test/list?state=" + secret:                                                   false,
		"https://a.test/authorize?response_type=" + secret + "&client_id=c":                     false,
	} {
		if got := strings.Contains(scrub.New(testKey, nil).URL(u), secret); got == hides {
			t.Errorf("%s became %s", u, scrub.New(testKey, nil).URL(u))
		}
		foreign := scrub.New(testKey, &scrub.Options{Rules: scrub.RulesForeign})
		if got := foreign.URL(u); got != u {
			t.Errorf("of another producer %s became %s", u, got)
		}
	}
	const form = "application/x-www-form-urlencoded"
	for body, hides := range map[string]bool{
		"grant_type=authorization_code&code=" + secret: true,
		"grant_type=client_credentials&code=" + secret: false,
		"code=" + secret: false,
	} {
		named := scrub.New(testKey, nil).Named(form, []byte(body))
		if got := len(named) == 1 && named[0].Value == secret; got != hides {
			t.Errorf("%s names %v", body, named)
		}
	}
}
