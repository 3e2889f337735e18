package httptape

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// oldNames are the members of JSON objects and forms whose values are secrets on tapes whose rules know no names.
var oldNames = []string{
	"access_token", "api_key", "apikey", "client_assertion", "client_secret", "id_token", "passwd", "password", "private_key",
	"refresh_token", "secret_access_key", "session_token",
}

// namesKnown is the version of the rules from which package scrub knows oldNames itself.
const namesKnown = 4

// secrets finds the secrets of one Transport, by value, shape and name.
type secrets struct{ *scrub.Scrubber }

// newSecrets makes a key for this Transport alone: placeholders are numbered before they reach the tape (see numbers), so
// nobody needs it again.
//
// Rules are those of the tape that answers, 0 for the newest: see scrub.Options.
func newSecrets(o *Options, rules int) *secrets {
	var key scrub.Key
	rand.Read(key[:]) // never fails (crypto/rand)
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	names := o.SecretNames
	if rules > 0 && rules < namesKnown {
		names = slices.Concat(names, oldNames)
	}
	s := &secrets{scrub.New(key, &scrub.Options{Env: env, Rules: rules, SecretNames: names})}
	for name, value := range o.Secrets {
		s.AddSecret(name, value)
	}
	return s
}

// keyRules is the key of a tape's header that says by which version of the shapes its secrets were found; none is 1.
const keyRules = "scrub_rules"

// rulesOf returns the version that a header says. The error is of a version that is not known here.
func rulesOf(h *tape.Header) (int, error) {
	rules := 1
	if raw := tape.FieldValue(h.Extra, keyRules); raw != nil {
		if err := json.Unmarshal(raw, &rules); err != nil {
			return 0, fmt.Errorf("%s of the header: %w", keyRules, err)
		}
	}
	return rules, scrub.CheckRules(rules)
}

// Secret returns the value of an environment variable, and makes it a secret that never reaches the tape. Where the
// variable is not set it returns a dummy that reads the same, so a test whose requests hold a key in their URL or body needs
// none to replay; a request that would be sent and recorded then fails, and Close keeps nothing.
func (t *Transport) Secret(name string) string {
	value := os.Getenv(name)
	if value == "" {
		sum := sha256.Sum256([]byte(name))
		value = "dummy-" + hex.EncodeToString(sum[:16])
		t.mu.Lock()
		t.unset = name
		t.mu.Unlock()
	}
	if t.secrets != nil {
		t.secrets.AddSecret(name, value)
	}
	return value
}

// withoutNames returns h without the headers of names, which are canonical.
func withoutNames(h http.Header, names []string) http.Header {
	if !slices.ContainsFunc(names, func(name string) bool { return len(h[name]) > 0 }) {
		return h
	}
	h = h.Clone()
	for _, name := range names {
		h.Del(name)
	}
	return h
}
