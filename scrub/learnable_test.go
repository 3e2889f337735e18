package scrub_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestLearntLooksLikeSecret: a value that a name tells is hidden where it stands, and elsewhere only where it looks like a secret: one
// ordinary word would be taken out of every text.
func TestLearntLooksLikeSecret(t *testing.T) {
	t.Parallel()
	words := []string{
		"assistant", "production", "disabled", "Disabled", "DISABLED", "authenticated", "accessToken", "AccessDenied", "swordfish",
		"access_token", "client-secret", "api.key", "read only", "not-set-yet", "application/json", "text/plain", "com.example.app", "/usr/local/bin",
		"/etc/ssl/private", "https://api.example.com/v1/keys", "undefined", "anonymous", "--------", "abababab",
	}
	secrets := []string{
		"hunter2hunter2", "hunter22", "Zx9QvT2mKw7", "correct-horse-battery-staple", "correct horse battery staple", "tr0ub4dor&3", "qzxvwkjtab", "XKCDQWRT",
		"p@ssw0rd!", "abcd efgh ijkl mnop", "https://u:pw@host.example/x", "/b3Nq+Zk9/w==", "83746152", "ätzend-süß", "0123-4567-89ab", "sixteenlettersofone",
	}
	for i, value := range append(words, secrets...) {
		looks := i >= len(words)
		for how, learn := range map[string]func(s *scrub.Scrubber){
			"body": func(s *scrub.Scrubber) {
				body := `{"password":` + quoted(value) + `}`
				_, over := s.LearnAll(s.Named("application/json", []byte(body)))
				if got := string(s.HideAt([]byte(body), over)); looks != (got == body) {
					t.Errorf("%s: in its place it became %s", value, got)
				}
			},
			"header": func(s *scrub.Scrubber) {
				if got := s.Header("X-Api-Key", value); strings.Contains(got, value) {
					t.Errorf("%s: its header became %s", value, got)
				}
			},
		} {
			s := scrub.New(testKey, nil)
			learn(s)
			if got := s.String("it is " + value + "."); looks != (got != "it is "+value+".") {
				t.Errorf("%s: %s elsewhere became %s", how, value, got)
			}
			if covered := len(s.NotCovered()) == 0; covered != looks {
				t.Errorf("%s: %s: not covered is %v", how, value, s.NotCovered())
			}
		}
	}
}

// TestGivenWords: what a variable holds was named by a person: any words of it are looked for, but for those that every text has.
func TestGivenWords(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"production": false, "assistant": false, "access_token": false, "test-api-key": false, "user.password": false, "Authorized": false,
		"swordfish": true, "purple-dishwasher": true, "correct-horse-battery-staple": true, "customer-of-monkeys": true, "k9Zp2QvT": true,
	} {
		env := []string{"API_TOKEN=" + value}
		s := scrub.New(testKey, &scrub.Options{Env: env})
		if got := s.String("it is " + value); want != (got != "it is "+value) {
			t.Errorf("%s elsewhere became %s", value, got)
		}
		if v := s.Env(env)[0]; !v.Secret || strings.Contains(v.Value, value) {
			t.Errorf("the variable of %s became %v", value, v)
		}
	}
}
