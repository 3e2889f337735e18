package httptape

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// oldNames are the members of JSON objects and forms whose values are secrets on tapes whose rules know no names.
var oldNames = []string{
	"access_token", "api_key", "apikey", "client_assertion", "client_secret", "id_token", "passwd", "password", "private_key",
	"refresh_token", "secret_access_key", "session_token",
}

// secrets finds the secrets of one Transport, by value, shape and name.
type secrets struct {
	*scrub.Scrubber
	names  map[string]bool // of SecretNames, normal
	bodies []string        // what exchange.TapOptions take of names
}

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
	s := &secrets{Scrubber: scrub.New(key, &scrub.Options{Env: env, Rules: rules}), names: make(map[string]bool)}
	for name, value := range o.Secrets {
		s.AddSecret(name, value)
	}
	for _, name := range o.SecretNames {
		s.names[normal(name)] = true
	}
	s.bodies = o.SecretNames
	if s.Rules() < scrub.RulesOfNames { // else package exchange knows them
		s.bodies = slices.Concat(s.bodies, oldNames)
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

// normal is the form in which names are equal: API-Key, api_key and apiKey are.
func normal(name string) string { return strings.ToLower(separators.Replace(name)) }

var separators = strings.NewReplacer("-", "", "_", "")

// learnHeader makes known what a header holds, before any of it is dropped: it may stand in the URL and in bodies too.
func (s *secrets) learnHeader(h http.Header) {
	s.LearnHeader(h)
	s.hidden(h)
}

// hide hides what stands in headers and queries of SecretNames.
func (s *secrets) hide(r *exchange.Request) {
	r.Header = s.hidden(r.Header)
	if u, err := url.Parse(r.URL); err == nil && u.RawQuery != "" {
		if q := s.query(u.RawQuery); q != u.RawQuery {
			u.RawQuery = q
			r.URL = u.String()
		}
	}
}

// hidden returns h with the values of SecretNames replaced, whatever their length.
func (s *secrets) hidden(h http.Header) http.Header {
	if len(s.names) == 0 {
		return h
	}
	out := h.Clone()
	for name, values := range h {
		if !s.names[normal(name)] {
			continue
		}
		for i, value := range values {
			out[name][i] = s.placeholder(name, value)
		}
	}
	return out
}

// placeholder hides a value of any length, and makes it known.
func (s *secrets) placeholder(name, value string) string {
	return s.Header(name+"-secret", value) // a header whose name says so is hidden whole
}

// query hides the values of SecretNames, whatever their length.
func (s *secrets) query(q string) string {
	parts := strings.Split(q, "&")
	for i, part := range parts {
		rawName, rawValue, _ := strings.Cut(part, "=")
		value, err := url.QueryUnescape(rawValue)
		name, errName := url.QueryUnescape(rawName)
		if err == nil && errName == nil && value != "" && s.names[normal(name)] {
			parts[i] = rawName + "=" + s.placeholder(name, value)
		}
	}
	return strings.Join(parts, "&")
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
