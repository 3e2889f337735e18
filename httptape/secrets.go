package httptape

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// bodyNames are the members of JSON objects and forms whose values are secrets. A name as general as "key" or "token" is
// none: it would make requests equal that are not.
var bodyNames = []string{
	"access_token", "api_key", "apikey", "client_assertion", "client_secret", "id_token", "passwd", "password", "private_key",
	"refresh_token", "secret_access_key", "session_token",
}

// maxLearn bounds, in bytes, a body in which members with such names are looked for.
const maxLearn = 1 << 20

// secrets finds the secrets of one Transport, by value, shape and name.
type secrets struct {
	*scrub.Scrubber
	names map[string]bool // of SecretNames, normal
	body  map[string]bool // names and bodyNames
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
	s := &secrets{Scrubber: scrub.New(key, &scrub.Options{Env: env, Rules: rules}), names: make(map[string]bool), body: make(map[string]bool)}
	for name, value := range o.Secrets {
		s.AddSecret(name, value)
	}
	for _, name := range o.SecretNames {
		s.names[normal(name)], s.body[normal(name)] = true, true
	}
	for _, name := range bodyNames {
		s.body[normal(name)] = true
	}
	return s
}

// keyRules is the key of a tape's header that says by which version of the shapes its secrets were found; none is 1.
const keyRules = "scrub_rules"

// rulesOf returns the version that a header says. The error is of a version that is not known here.
func rulesOf(h *tape.Header) (int, error) {
	rules := 1
	if raw := valueOf(h.Extra, keyRules); raw != nil {
		if err := json.Unmarshal(raw, &rules); err != nil {
			return 0, fmt.Errorf("%s of the header: %w", keyRules, err)
		}
	}
	return rules, scrub.CheckRules(rules)
}

// normal is the form in which names are equal: API-Key, api_key and apiKey are.
func normal(name string) string { return strings.ToLower(separators.Replace(name)) }

var separators = strings.NewReplacer("-", "", "_", "")

// learn takes in what a request says of its secrets, and hides those that stand in headers and queries of SecretNames.
func (s *secrets) learn(r *exchange.Request) {
	s.learnBody(r.Header, r.Body)
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

// query hides the values of SecretNames, and makes those known that package scrub hides in their place alone: an answer may
// hold them too.
func (s *secrets) query(q string) string {
	parts := strings.Split(q, "&")
	for i, part := range parts {
		rawName, rawValue, _ := strings.Cut(part, "=")
		value, err := url.QueryUnescape(rawValue)
		name, errName := url.QueryUnescape(rawName)
		switch {
		case err != nil || errName != nil || value == "":
		case s.names[normal(name)]:
			parts[i] = rawName + "=" + s.placeholder(name, value)
		case scrub.NameSaysSecret(name) || s.body[normal(name)]:
			s.AddSecret(name, value)
		}
	}
	return strings.Join(parts, "&")
}

// learnBody makes the values known that members of a JSON or form body name.
func (s *secrets) learnBody(h http.Header, body []byte) {
	if len(body) == 0 || len(body) > maxLearn || !s.readable(h) {
		return
	}
	plain, err := exchange.Decode(h.Get("Content-Encoding"), body, maxLearn)
	if err != nil { // what cannot be scanned is not kept: see exchange
		return
	}
	if isForm(h) {
		values, _ := url.ParseQuery(string(plain)) // what it could parse
		for name, list := range values {
			for _, v := range list {
				s.member(name, v)
			}
		}
		return
	}
	var v any
	if json.Unmarshal(plain, &v) == nil {
		s.walk("", v)
	}
}

// readable reports whether a body of this header may have members.
func (s *secrets) readable(h http.Header) bool { return isForm(h) || isJSON(h) }

func isForm(h http.Header) bool {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t == "application/x-www-form-urlencoded"
}

func isJSON(h http.Header) bool {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// walk looks through a JSON value that stands under name.
func (s *secrets) walk(name string, v any) {
	switch v := v.(type) {
	case string:
		s.member(name, v)
	case []any:
		for _, elem := range v {
			s.walk(name, elem)
		}
	case map[string]any:
		for key, value := range v {
			s.walk(key, value)
		}
	}
}

func (s *secrets) member(name, value string) {
	if value != "" && s.body[normal(name)] {
		s.AddSecret(name, value)
	}
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

// learner gathers the beginning of an answer, for learnBody.
type learner struct {
	secrets *secrets
	header  http.Header
	buf     bytes.Buffer
	over    bool
}

func (s *secrets) learner(h http.Header) *learner {
	if !s.readable(h) {
		return nil
	}
	return &learner{secrets: s, header: h}
}

func (l *learner) add(b []byte) {
	if l == nil || l.over {
		return
	}
	if l.over = l.buf.Len()+len(b) > maxLearn; l.over {
		l.buf = bytes.Buffer{}
		return
	}
	l.buf.Write(b)
}

// end looks through the whole answer, or what there is of it.
func (l *learner) end() {
	if l != nil && !l.over {
		l.secrets.learnBody(l.header, l.buf.Bytes())
	}
}
