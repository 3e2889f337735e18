package scrub

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// Options are what New takes. A nil *Options is the zero Options.
type Options struct {
	// Env is the environment of the program, as NAME=VALUE. Values of names that say so (see NamesSecret) become known
	// secrets, whose rules are the names in lowercase.
	Env []string
	// Harmless reports that a value is no secret, although the name of a variable or of an argument says that it is one: the
	// path of a file. It must tell the same in a replay. nil is false for all.
	Harmless func(value string) bool
	// Rules is the version by which a recording or a tape says that its secrets were found: RulesForeign, or any other for all that
	// is known. A version that is newer than Rules is not known here: CheckRules says so, before New.
	Rules int
	// SecretNames are names of variables, headers, query values, members of JSON and fields of forms whose values are secrets, beside those
	// that are known (docs/reference/secrets.md), whatever the values look like. Separators and case do not count.
	SecretNames []string
}

const (
	// Rules is the version of what is looked for.
	Rules = 6
	// RulesForeign is that of a tape which says none: another producer wrote it. A request compares with a recorded one only where
	// nothing is hidden in it that was not hidden then. So of shapes those are looked for that tapedeck has by itself, and names in
	// bodies do not count.
	RulesForeign = 1
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
	memory
	rules    int
	harmless func(value string) bool // nil for none
	names    *names.Members
}

// New returns a Scrubber that makes placeholders with key.
func New(key Key, opts *Options) *Scrubber {
	if opts == nil {
		opts = new(Options)
	}
	s, shapes := &Scrubber{rules: Rules, harmless: opts.Harmless}, allShapes
	if opts.Rules == RulesForeign {
		s.rules, shapes = RulesForeign, foreignShapes
	}
	s.names = names.NewMembers(s.rules != RulesForeign, opts.SecretNames)
	s.init(key, shapes())
	s.LearnEnv(opts.Env)
	return s
}

// The shapes of a version are made once, and never changed.
var (
	allShapes     = sync.OnceValue(func() *index { return newIndex(rulesOf(Rules)) })
	foreignShapes = sync.OnceValue(func() *index { return newIndex(rulesOf(RulesForeign)) })
)

// Bytes returns b with each secret replaced by its placeholder, and whether there was one. Where nothing was found it
// returns b itself. It never writes to b. Where b is compressed, with gzip, as zlib or as a pack of Git, and a secret lies
// inside, it returns what b decompresses to, scrubbed, behind a line with a placeholder of b; so it does with a compressed part
// of a form (multipart).
func (s *Scrubber) Bytes(b []byte) (out []byte, found bool) {
	s.recognise(b)
	left := int64(maxUnpacked)
	if out, found := unpacked(&s.memory, b, &left); found {
		return out, true
	}
	b, packed := inParts(&s.memory, b, &left)
	out, found = s.without(b, s.index.Load().scanAll(b))
	return out, found || packed
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
	b, packed := inParts(&s.memory, b, &left)
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

// String is Bytes for a string.
func (s *Scrubber) String(v string) string {
	if out, found := s.Bytes([]byte(v)); found {
		return string(out)
	}
	return v
}

// Find returns where Bytes would put placeholders, from left to right, for who masks secrets in another way. It does not look
// into what is compressed.
func (s *Scrubber) Find(b []byte) (found []Range) {
	spans := s.index.Load().scanAll(b)
	sortSpans(spans)
	for _, f := range resolve(spans) {
		found = append(found, f.at(0))
	}
	return found
}

// Finder returns a Writer that passes nothing on and cannot fail: it tells f of every secret, in order.
func (s *Scrubber) Finder(f func(Range)) *Writer {
	w := s.Writer(nil)
	w.tell = f
	return w
}

// Writer returns a Writer that scrubs what is written to it and passes it on to w. It learns: see LearnBytes.
func (s *Scrubber) Writer(w io.Writer) *Writer {
	return &Writer{m: &s.memory, w: w, learnt: make(map[*known]int64)}
}

// FileWriter is Writer for a file: it learns nothing, as Bytes does.
func (s *Scrubber) FileWriter(w io.Writer) *Writer { return &Writer{m: &s.memory, w: w} }

// Streams reports whether FileWriter makes of a file that begins with head what Bytes makes of it: it is neither compressed nor
// a form. A head of 4 KiB tells.
func (s *Scrubber) Streams(head []byte) bool {
	return unpacker(head) == nil && between("", head) == nil
}

// Rules returns the version of the shapes that s looks for.
func (s *Scrubber) Rules() int { return s.rules }

// RuleNames lists the rules by which s finds secrets by their shape, by name in order. A secret that a name tells has that for its rule.
func (s *Scrubber) RuleNames() (all []string) {
	for _, r := range rulesOf(s.rules) {
		for _, name := range r.names {
			all = append(all, placeholders.RuleName(name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// KeyedDigest returns the hex HMAC-SHA256 of b under the project's key. It stands for the bytes of a file that holds
// credentials: it tells whether the file is still the same, and nothing else to who lacks the key.
func (s *Scrubber) KeyedDigest(b []byte) string { return s.key.mac(b) }

// KeyID names the project's key (Key.ID).
func (s *Scrubber) KeyID() string { return s.key.ID() }

// A KeyedHash is KeyedDigest of bytes that come piece by piece.
type KeyedHash struct{ h hash.Hash }

// KeyedHash returns one that has seen nothing.
func (s *Scrubber) KeyedHash() *KeyedHash { return &KeyedHash{hmac.New(sha256.New, s.key[:])} }

// Write adds b. It never fails.
func (k *KeyedHash) Write(b []byte) (int, error) { return k.h.Write(b) }

// Sum returns what KeyedDigest returns of everything written.
func (k *KeyedHash) Sum() string { return hex.EncodeToString(k.h.Sum(nil)) }

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

// rulesOf lists the rules of a version.
func rulesOf(version int) []*rule {
	if version == RulesForeign {
		return shapeRules()
	}
	return slices.Concat(shapeRules(), asRules(vendorKeys), placedKeys, leakRules())
}
