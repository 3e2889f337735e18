// Package bare holds what a bare tape is written and read by: one that stands by itself, with no recording around it, as
// httptape keeps it beside tests and httptape/foreign makes it of the cassettes of others.
//
// Its secrets are placeholders that are numbered by first appearance (Numbers), so nothing on it was computed from a secret and
// nobody needs a key. Its requests compare after the masks of NewMasker: who answers from it must mask the same. Its header says
// by which version of the shapes its secrets were found (RulesOf).
//
// Concurrency: a Numbers is used by one goroutine at a time.
package bare

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The keys that a record of a bare tape has beside those of its kind.
const (
	KeyProto    = "proto"             // the protocol of the answer where it is not HTTP/1.1
	KeyTrailers = "response_trailers" // [[name,value]]
)

// foreignNames are the members of JSON objects and forms whose values are secrets on tapes of other producers too.
var foreignNames = []string{
	"access_token", "api_key", "apikey", "client_assertion", "client_secret", "id_token", "passwd", "password", "private_key",
	"refresh_token", "secret_access_key", "session_token",
}

// NewScrubber returns the scrubber of a bare tape whose secrets are, or were, found by o.Rules. It makes a key that nobody needs
// again: placeholders are numbered before they reach the tape.
func NewScrubber(o *scrub.Options) *scrub.Scrubber {
	var key scrub.Key
	rand.Read(key[:]) // never fails (crypto/rand)
	var own scrub.Options
	if o != nil {
		own = *o
	}
	if own.Rules == scrub.RulesForeign {
		own.SecretNames = slices.Concat(own.SecretNames, foreignNames)
	}
	return scrub.New(key, &own)
}

// keyRules is the key of a tape's header that says by which version of the shapes its secrets were found; none is 1.
const keyRules = "scrub_rules"

// RulesField is what the header of a tape says of the rules by which its secrets were found.
func RulesField(rules int) tape.Field {
	return tape.Field{Name: keyRules, Value: []byte(strconv.Itoa(rules))}
}

// RulesOf returns the version that a header says. The error is of a version that is not known here.
func RulesOf(h *tape.Header) (int, error) {
	rules := 1
	if raw := tape.FieldValue(h.Extra, keyRules); raw != nil {
		if err := json.Unmarshal(raw, &rules); err != nil {
			return 0, fmt.Errorf("%s of the header: %w", keyRules, err)
		}
	}
	return rules, scrub.CheckRules(rules)
}

// NewMasker returns what masks the requests of a bare tape before they are compared: o (nil is what package scrub knows) with the
// directories filled in that it leaves empty. The error is of a mask of o that cannot be.
func NewMasker(o *masks.Options) (*masks.Masker, error) {
	var all masks.Options
	if o != nil {
		all = *o
	}
	if err := all.Check(); err != nil {
		return nil, err
	}
	fillRoots(&all)
	return masks.New(&all), nil
}

// fillRoots names the directories whose paths differ from one developer to the next.
func fillRoots(m *masks.Options) {
	if m.Home == "" {
		m.Home, _ = os.UserHomeDir() // none is masked where there is none
	}
	if m.Temp == "" {
		m.Temp = os.TempDir()
	}
	if m.WorkTree == "" {
		m.WorkTree = workTree()
	}
}

// workTree is the nearest directory above the working directory that holds .git, else go.mod; "" for none.
func workTree() string {
	wd, err := os.Getwd()
	if err != nil {
		return ""
	}
	for _, mark := range []string{".git", "go.mod"} {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}

// URL is the absolute URL as a tape has it: without a user and a fragment, scheme and host in lower case, and without the port
// of the scheme.
func URL(of *url.URL) string {
	u := *of
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if host, port, err := net.SplitHostPort(u.Host); err == nil && port == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		u.Host = host
		if strings.Contains(host, ":") {
			u.Host = "[" + host + "]"
		}
	}
	if u.Path == "" && u.Opaque == "" {
		u.Path = "/"
	}
	return u.String()
}

// ProtoField says in which protocol an answer came that did not come in HTTP/1.1.
func ProtoField(proto string) tape.Field { return TextField(KeyProto, proto) }

// TrailersField says the trailers of an answer, scrubbed and sorted by name.
func TrailersField(s *scrub.Scrubber, h http.Header) tape.Field {
	fields := [][2]string{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			text, _ := tape.SafeString(s.Header(name, value))
			fields = append(fields, [2]string{name, text})
		}
	}
	return tape.Field{Name: KeyTrailers, Value: asJSON(fields)}
}

// TextField is a further key of a record, with a text.
func TextField(name, text string) tape.Field { return tape.Field{Name: name, Value: asJSON(text)} }

// asJSON returns v, made of strings and slices, with < > and & as they are.
func asJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("bare: %T has no JSON form: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
