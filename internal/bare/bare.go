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
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
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
	return tape.Field{Name: KeyTrailers, Value: jsonscan.MustMarshal(fields)}
}

// TextField is a further key of a record, with a text.
func TextField(name, text string) tape.Field {
	return tape.Field{Name: name, Value: jsonscan.MustMarshal(text)}
}

// placeholderShape is package scrub's placeholder: td_<rule>_<12 hex>. Of several readings the shortest rule is the one.
var placeholderShape = lazyregexp.New(`td_([0-9a-z_]{1,40}?)_([0-9a-f]{12})`)

// maxPlaceholder is the length in bytes of the longest placeholder.
const maxPlaceholder = len("td_") + 40 + len("_") + 12

// Numbers gives the placeholders of one recording numbers in place of their hex digits, counted by the first appearance of
// each secret: td_authorization_000000000001. So a tape holds nothing that was computed from a secret, and two developers
// with different secrets write the same tape. A number is as long as what it stands for.
type Numbers struct {
	rules map[string]int  // those that this recording made; others came with the traffic and are left as they are
	given map[string]int  // by hex digits
	count int             // numbers given
	stay  map[string]bool // numbers that stay as they stand; nil for none
	again bool            // every number stays
}

// NewNumbers returns the numbers of a recording whose scrubber counted these rules (scrub.Scrubber.Counts).
func NewNumbers(rules map[string]int) *Numbers {
	return &Numbers{rules: rules, given: make(map[string]int)}
}

// Twice has what was numbered stay as it is when it comes again. With all, so does what is numbered and was not by n, and counts as
// if it had been: a program that is answered from a tape says again what it holds.
func (n *Numbers) Twice(all bool) { n.stay, n.again = make(map[string]bool), all }

// Knows says what the scrubber has counted since.
func (n *Numbers) Knows(rules map[string]int) { n.rules = rules }

// Record numbers everything in r, whose payloads are read from store; those that change are put there too.
func (n *Numbers) Record(r *tape.Record, store cas.Store) error {
	ex := tape.ExchangeOf(r.Kind)
	ex.URL = n.text(ex.URL)
	for i := range ex.RequestHeaders {
		ex.RequestHeaders[i].Value = n.text(ex.RequestHeaders[i].Value)
	}
	if err := n.payload(ex.RequestPayload, store); err != nil {
		return err
	}
	for i := range ex.ResponseHeaders {
		ex.ResponseHeaders[i].Value = n.text(ex.ResponseHeaders[i].Value)
	}
	if err := n.payload(ex.Response, store); err != nil {
		return err
	}
	ex.Error = n.text(ex.Error)
	extra := *tape.Extras(r.Kind)
	for i := range extra {
		extra[i].Value = []byte(n.text(string(extra[i].Value)))
	}
	for i := range r.Raw {
		r.Raw[i].Bytes = []byte(n.text(string(r.Raw[i].Bytes)))
	}
	return nil
}

// Bytes returns b with its placeholders numbered; b itself where it holds none. It never writes to b.
func (n *Numbers) Bytes(b []byte) []byte {
	if !bytes.Contains(b, []byte("td_")) {
		return b
	}
	out := bytes.Clone(b)
	if n.replace(out, len(out)) == 0 {
		return b
	}
	return out
}

func (n *Numbers) text(s string) string {
	b := []byte(s)
	if n.replace(b, len(b)) == 0 {
		return s
	}
	return string(b)
}

func (n *Numbers) payload(p *tape.Payload, store cas.Store) error {
	switch {
	case p == nil:
		return nil
	case p.Inline:
		p.Text = n.text(p.Text)
		p.Hash = cas.Sum([]byte(p.Text))
		return nil
	}
	r, err := store.Open(p.Hash)
	if err != nil {
		return err
	}
	defer r.Close()
	d, _, err := store.PutReader(&numbered{Numbers: n, r: r})
	p.Hash = d
	return err
}

// replace numbers the placeholders of b that begin before limit, in place, and returns where the last one ends.
func (n *Numbers) replace(b []byte, limit int) (end int) {
	for _, m := range placeholderShape.FindAllSubmatchIndex(b, -1) {
		if m[0] >= limit {
			break
		}
		digits := b[m[4]:m[5]]
		if n.stays(digits) {
			end = m[1]
			continue
		}
		if !n.made(string(b[m[2]:m[3]])) {
			continue
		}
		number := n.given[string(digits)]
		if number == 0 {
			n.count++
			number = n.count
			n.given[string(digits)] = number
		}
		copy(digits, fmt.Sprintf("%012d", number))
		if n.stay != nil {
			n.stay[string(digits)] = true
		}
		end = m[1]
	}
	return end
}

// stays reports whether the digits of a placeholder are a number already. Six digits hold every number; those of a digest do not
// begin with six zeros.
func (n *Numbers) stays(digits []byte) bool {
	switch {
	case n.stay == nil || !strings.HasPrefix(string(digits), "000000") || strings.Trim(string(digits), "0123456789") != "":
		return false
	case n.stay[string(digits)]:
		return true
	}
	if n.again {
		n.stay[string(digits)] = true
		n.count++
	}
	return n.again
}

// made reports whether this recording made a placeholder of that rule. Behind the rule, which may then be cut short, may stand
// the form in which the secret stood: an underscore, a z, and no further underscore.
func (n *Numbers) made(rule string) bool {
	if n.rules[rule] > 0 {
		return true
	}
	i := strings.LastIndexByte(rule, '_')
	if i < 1 || !strings.HasPrefix(rule[i:], "_z") {
		return false
	}
	for whole := range n.rules {
		if strings.HasPrefix(whole, rule[:i]) {
			return true
		}
	}
	return false
}

// numbered reads a stream with its placeholders numbered.
type numbered struct {
	*Numbers
	r     io.Reader
	buf   []byte
	ready int // bytes of buf that may be given out
	err   error
}

func (s *numbered) Read(p []byte) (int, error) {
	for s.ready == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.buf[:s.ready])
	s.buf, s.ready = s.buf[n:], s.ready-n
	return n, nil
}

// fill reads on. What could be the beginning of a placeholder waits for what follows it.
func (s *numbered) fill() {
	next := make([]byte, len(s.buf)+32<<10)
	n, err := io.ReadFull(s.r, next[copy(next, s.buf):])
	s.buf = next[:len(s.buf)+n]
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	s.err = err
	limit := len(s.buf)
	if err == nil {
		limit -= maxPlaceholder
	}
	s.ready = max(s.replace(s.buf, limit), limit)
}
