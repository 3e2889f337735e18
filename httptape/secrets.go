package httptape

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// newSecrets makes a scrubber for this Transport alone. Rules are those of the tape that answers, 0 for the newest: see scrub.Options.
func newSecrets(o *Options, rules int) *scrub.Scrubber {
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	s := bare.NewScrubber(&scrub.Options{Env: env, Rules: rules, SecretNames: o.SecretNames})
	for name, value := range o.Secrets {
		s.AddSecret(name, value)
	}
	return s
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
