package scrub

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

const (
	// minKnown is the length in bytes from which a known value is searched for where its name does not stand.
	minKnown = 8
	// maxLearnt is how many values are learnt from headers and URLs, so that a program that makes up a new one for every request
	// does not slow the scan down. Later ones are hidden in their own place only.
	maxLearnt = 512
	// maxNamedLearnt is the same for values that names in bodies told: a site that sets a cookie with each answer takes no
	// password's place.
	maxNamedLearnt = 512
	// maxLeaks is the same for values that a name and a sign before them told.
	maxLeaks = 256
)

// Options are what New takes. A nil *Options is the zero Options.
type Options struct {
	// Env is the environment of the program, as NAME=VALUE. Values of names that say so (see NamesSecret) become known
	// secrets, whose rules are the names in lowercase.
	Env []string
	// Harmless reports that a value is no secret, although the name of a variable or of an argument says that it is one: the
	// path of a file. It must tell the same in a replay. nil is false for all.
	Harmless func(value string) bool
	// Rules says which shapes are looked for: those of a version up to Rules, the newest where it is 0. A request compares
	// with a recorded one only where both were scrubbed by the same rules, so a replay uses those of its recording. A version
	// that is newer than Rules is not known here: CheckRules says so, before New.
	Rules int
	// SecretNames are names of headers, query values, members of JSON and fields of forms whose values are secrets, beside those
	// that are known (docs/secrets.md), whatever the values look like. Separators and case do not count.
	SecretNames []string
}

// Rules is the newest version of the shapes: 1 has tapedeck's own, 2 those of gitleaks too. 3 takes the examples of documents
// for none, and finds tokens in the place of the user of a URL, credentials of proxy variables without a scheme, what is
// compressed in a part of a form, and more files of credentials. With RulesOfNames names in bodies count beside the shapes. 5 knows
// what OAuth passes through a browser. 6 finds what names in the strings of JSON give away, and headers that are members of it.
const Rules = rulesTexts

const (
	rulesGitleaks = 2
	rulesGenuine  = 3
	// RulesOfNames is the version from which names in bodies count, and what NamesSecret takes for none is none.
	RulesOfNames = 4
	rulesOAuth   = 5
	rulesTexts   = 6
)

// An UnknownRulesError says that a recording was made with newer shapes than this package has. A replay with others would not
// match it, or would write what the recording hid.
type UnknownRulesError struct{ Version int }

func (e *UnknownRulesError) Error() string {
	return fmt.Sprintf("scrub: made with shapes version %d, this one knows versions up to %d: update tapedeck", e.Version, Rules)
}

// CheckRules returns an *UnknownRulesError where version is one that New does not know.
func CheckRules(version int) error {
	if version < 0 || version > Rules {
		return &UnknownRulesError{version}
	}
	return nil
}

// A Scrubber finds the secrets of one run and replaces them by placeholders. Its methods may be called by several
// goroutines at once; a value that is added is found by every call that begins after AddSecret returned.
type Scrubber struct {
	key      Key
	rules    int
	harmless func(value string) bool // nil for none
	names    *secretNames
	index    atomic.Pointer[index]
	sought   atomic.Pointer[seeker] // nil for nothing: see Seek
	fixed    bool                   // knows what it knows: see Since

	mu         sync.Mutex        // guards what follows, and is held to replace index
	known      map[string]*known // by value
	order      []*known          // the same, as they became known
	byHex      map[string]*known // by the digits of the placeholder
	aliases    map[string]*known // by value: dummies that are not searched for; nil for none
	found      map[string]Secret // by the digits of the placeholder; nil for none
	dummies    int               // that are searched for
	learnt     int               // values of learn
	bodyNamed  int               // values of LearnNamed
	leaks      int               // values of learnLeak
	notCovered map[string]bool
	counts     map[string]int
}

// New returns a Scrubber that makes placeholders with key.
func New(key Key, opts *Options) *Scrubber {
	s := &Scrubber{
		key:        key,
		known:      make(map[string]*known),
		byHex:      make(map[string]*known),
		notCovered: make(map[string]bool),
		counts:     make(map[string]int),
	}
	if opts == nil {
		opts = new(Options)
	}
	s.rules = Rules
	if opts.Rules > 0 && opts.Rules < Rules {
		s.rules = opts.Rules
	}
	s.harmless = opts.Harmless
	s.names = newSecretNames(s.rules, opts.SecretNames)
	s.index.Store(indexOf[s.rules]())
	s.LearnEnv(opts.Env)
	return s
}

// LearnEnv makes the secrets of an environment known, whose variables are NAME=VALUE: what is known already stays as it is. New
// does this for Options.Env.
func (s *Scrubber) LearnEnv(env []string) {
	// Sorted, so that which of two names for one value gives the rule does not depend on the order.
	for _, v := range slices.Sorted(slices.Values(env)) {
		if name, value, ok := strings.Cut(v, "="); ok && s.NamesSecret(name, value) {
			s.learnPieces(name, value)
		}
	}
	for _, v := range env {
		if name, value, ok := strings.Cut(v, "="); ok {
			s.LearnVar(name, value)
		}
	}
}

// indexOf has the index of the shapes of each version. They are made once, and never changed.
var indexOf = func() (out [Rules + 1]func() *index) {
	for version := range out {
		out[version] = sync.OnceValue(func() *index {
			x := newIndex(rulesOf(version))
			x.genuine, x.wellKnown = version >= rulesGenuine, version >= RulesOfNames
			return x
		})
	}
	return out
}()

// AddSecret makes value known: from now on it is replaced wherever it stands, plain or percent-encoded, JSON-escaped, as
// base64 or hex. The rule names it in placeholders; what is not a letter, a digit or an underscore becomes one. White
// space around the value does not count. A value of fewer than 8 bytes and a word are not searched for: rule is
// then listed by NotCovered. A value that is known already keeps its first rule.
func (s *Scrubber) AddSecret(rule, value string) { s.addNamed(rule, value) }

// AddAlias makes value known under a placeholder that was made before: on replay, a dummy stands for the secret of the
// recording and must read the same. It reports false, and does nothing, where placeholder is none or value could not be
// searched for (see AddSecret).
func (s *Scrubber) AddAlias(placeholder, value string) bool {
	value = strings.TrimSpace(value)
	if !placeholders.Is(placeholder) || !searchable(value) {
		return false
	}
	placeholder, _ = placeholders.Split(placeholder)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &known{rule: placeholders.Rule(placeholder), value: value, placeholder: placeholder}
	k.adopted.Store(&placeholder)
	s.add(k)
	return true
}

// Adopt makes a value that is known read as a placeholder of the recording from now on, and Reveal put it there: the program
// of a replay names another secret in the place of that one. It does nothing where the value, or the placeholder, is another's
// already; a dummy that was made up for the placeholder gives way.
func (s *Scrubber) Adopt(placeholder, value string) {
	if !placeholders.Is(placeholder) {
		return
	}
	placeholder, _ = placeholders.Split(placeholder)
	s.mu.Lock()
	defer s.mu.Unlock()
	k, digits := s.known[strings.TrimSpace(value)], Digits(placeholder)
	if other := s.byHex[digits]; k == nil || k.dummy || k.adopted.Load() != nil || other != nil && !other.dummy {
		return
	}
	k.adopted.Store(&placeholder)
	s.byHex[digits] = k
}

// addNamed makes value known and returns its placeholder.
func (s *Scrubber) addNamed(name, value string) (placeholder string) {
	value = strings.TrimSpace(value)
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.standing(value); k != nil {
		return k.written()
	}
	k := s.newKnown(placeholders.RuleName(name), value)
	switch {
	case placeholders.Is(value):
		return value
	case value == "", s.fixed:
	case searchable(value):
		s.add(k)
	default:
		s.notCovered[name] = true
	}
	return k.placeholder
}

// add makes values known, and is called with mu held.
func (s *Scrubber) add(all ...*known) {
	var fresh []*known
	for _, k := range all {
		if digits := Digits(k.placeholder); s.byHex[digits] == nil || s.byHex[digits].dummy && !k.dummy {
			s.byHex[digits] = k
		}
		if s.known[k.value] == nil {
			s.known[k.value] = k
			fresh = append(fresh, k)
		}
	}
	if len(fresh) > 0 {
		s.order = append(s.order, fresh...)
		s.index.Store(s.index.Load().with(fresh))
	}
}

// learn is addNamed for a value that came with the traffic.
func (s *Scrubber) learn(name, value string) (placeholder string) {
	if !s.admits(name, value, &s.learnt, maxLearnt) {
		return s.concealOnly(name, value)
	}
	return s.noteFound(s.addNamed(name, value), value)
}

// admits reports whether value may be learnt: it looks like a secret, and there are not most of them yet. It counts to n.
func (s *Scrubber) admits(name, value string, n *int, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[value] != nil || placeholders.Is(value) {
		return true
	}
	if !learnable(value) || *n >= most {
		s.notCovered[name] = true
		return false
	}
	*n++
	return true
}

// LearnNamed is AddSecret for a value that a name in a body told. fresh reports whether the value was not known before and is
// now. One that does not look like a secret (see learnable), and those after 512, are not searched for: here is true, NotCovered lists the
// name, and HideAt hides the value where it stands.
func (s *Scrubber) LearnNamed(name, value string) (fresh, here bool) {
	value = strings.TrimSpace(value)
	if value == "" || placeholders.Is(value) || s.isKnown(value) {
		return false, false
	}
	if s.isAlias(value) || !s.admits(name, value, &s.bodyNamed, maxNamedLearnt) {
		return false, true
	}
	s.noteFound(s.addNamed(name, value), value)
	return s.isKnown(value), false
}

// isAlias reports whether a value is a dummy that is not searched for.
func (s *Scrubber) isAlias(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aliases[value] != nil
}

func (s *Scrubber) isKnown(value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[value] != nil
}

// concealOnly is conceal for a value that stands elsewhere in its own right: NotCovered lists its name.
func (s *Scrubber) concealOnly(name, value string) string {
	s.mu.Lock()
	if s.known[value] == nil {
		s.notCovered[name] = true
	}
	s.mu.Unlock()
	return s.conceal(name, value)
}

// conceal returns the placeholder of value without making it known.
func (s *Scrubber) conceal(name, value string) string {
	value = strings.TrimSpace(value)
	s.mu.Lock()
	k := s.standing(value)
	s.mu.Unlock()
	switch {
	case k != nil:
		return k.written()
	case placeholders.Is(value):
		return value
	}
	return s.noteFound(s.key.placeholder(placeholders.RuleName(name), []byte(value)), value)
}

// mark returns the placeholder of a value that its shape told.
func (s *Scrubber) mark(rule, value string) string {
	s.mu.Lock()
	k := s.aliases[value]
	s.mu.Unlock()
	if k != nil {
		return k.written()
	}
	return s.noteFound(s.key.placeholder(rule, []byte(value)), value)
}

// Bytes returns b with each secret replaced by its placeholder, and whether there was one. Where nothing was found it
// returns b itself. It never writes to b. Where b is compressed, with gzip, as zlib or as a pack of Git, and a secret lies
// inside, it returns what b decompresses to, scrubbed, behind a line with a placeholder of b; so it does with a compressed part
// of a form (multipart).
func (s *Scrubber) Bytes(b []byte) (out []byte, found bool) {
	s.recognise(b)
	left := int64(maxUnpacked)
	if out, found := s.unpacked(b, &left); found {
		return out, true
	}
	b, packed := s.inParts(b, &left)
	out, found = s.without(b, s.index.Load().scanAll(b))
	return out, found || packed
}

// without returns b without the secrets that spans are, and whether there was one.
func (s *Scrubber) without(b []byte, spans []span) (out []byte, found bool) {
	if len(spans) == 0 { // as of most texts
		return b, false
	}
	sortSpans(spans)
	if spans = resolve(spans); len(spans) == 0 {
		return b, false
	}
	return s.replace(make([]byte, 0, len(b)+len(spans)*placeholders.Longest), b, 0, spans, nil), true
}

// LearnBytes is Bytes for what a program sends or gets. What a name before it told to be a secret (twitter_api_key = "…") is
// known from there on, in b and in all that is scrubbed later: without its name it would stand there in clear, and a replay
// whose answers have the placeholder would ask for something else than was recorded. A compressed b teaches nothing, nor do
// the files of a work tree, which are scrubbed in no order.
func (s *Scrubber) LearnBytes(b []byte) (out []byte, found bool) {
	if unpacker(b) != nil {
		return s.Bytes(b)
	}
	s.recognise(b)
	left := int64(maxUnpacked)
	b, packed := s.inParts(b, &left)
	spans := s.index.Load().scanAll(b)
	if !s.teach(b, spans) {
		out, found = s.without(b, spans)
		return out, found || packed
	}
	var kept bytes.Buffer
	w := s.Writer(&kept)
	_, _ = w.Write(b) // a buffer takes all
	_ = w.Close()
	return kept.Bytes(), true
}

// teach tells whether the spans of b hold a secret that would be learnt.
func (s *Scrubber) teach(b []byte, spans []span) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaks < maxLeaks && slices.ContainsFunc(spans, func(f span) bool {
		return f.context && s.known[string(b[f.start:f.end])] == nil
	})
}

// learnLeak makes a value known that its context told, and returns it; nil where it is known, or cannot be searched for.
func (s *Scrubber) learnLeak(rule, value string) *known {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fixed || s.leaks >= maxLeaks || s.known[value] != nil || !learnable(value) {
		return nil
	}
	s.leaks++
	k := s.newKnown(rule, value)
	s.add(k)
	return k
}

// replace appends b from from to dst, with placeholders for the spans, which do not overlap.
func (s *Scrubber) replace(dst, b []byte, from int, spans []span, note func(start, end, length int)) []byte {
	for _, f := range spans {
		dst = append(dst, b[from:f.start]...)
		at := len(dst)
		switch {
		case f.blank:
		case f.known != nil:
			dst = append(dst, placeholders.With(f.known.written(), f.form)...)
			s.noteLate(f.known)
		default:
			dst = append(dst, s.mark(f.rule, string(b[f.start:f.end]))...)
		}
		if note != nil {
			note(f.start, f.end, len(dst)-at)
		}
		from = f.end
	}
	if len(spans) > 0 {
		s.count(spans)
	}
	return append(dst, b[from:]...)
}

func (s *Scrubber) count(spans []span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range spans {
		if !f.blank {
			s.counts[f.rule]++
		}
	}
}

// String is Bytes for a string.
func (s *Scrubber) String(v string) string {
	if out, found := s.Bytes([]byte(v)); found {
		return string(out)
	}
	return v
}

// Rules returns the version of the shapes that s looks for.
func (s *Scrubber) Rules() int { return s.rules }

// KeyedDigest returns the hex HMAC-SHA256 of b under the project's key. It stands for the bytes of a file that holds
// credentials: it tells whether the file is still the same, and nothing else to who lacks the key.
func (s *Scrubber) KeyedDigest(b []byte) string { return s.key.mac(b) }

// KeyID names the project's key (Key.ID).
func (s *Scrubber) KeyID() string { return s.key.ID() }

// NotCovered returns the sorted names of the variables and headers whose values are hidden in their own place only: too
// short or too common to be searched for elsewhere, or learnt after too many others.
func (s *Scrubber) NotCovered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.notCovered))
}

// Counts returns how many placeholders were written so far, by rule.
func (s *Scrubber) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}
