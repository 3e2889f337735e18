package scrub

import (
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

const (
	// maxSought is how many secrets are sought, for each shape of them costs a look at every text.
	maxSought = 64
	// longestEscape is how many bytes stand for one at most: \u0041 with its backslash percent-encoded.
	longestEscape = 8
)

// Seek has s know secrets again of which it has no more than placeholders of its own key, and shapes: those that a recording
// met before anything gave them away, which a replay's program may bring from anywhere. Where a text that s is given, to scrub
// it or to learn from it, has in it what such a placeholder stands for, plain or in a disguise, that value reads as the
// placeholder from then on, as one of AddAlias, in that text too. Nothing else is taken for it: the keyed digest of the value
// must be that of the placeholder.
//
// What s knows already is not sought, nor are tokens and private keys, whose shapes tell them everywhere, nor more than 64. A
// value is looked for where a word begins or ends.
func (s *Scrubber) Seek(secrets []Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &seeker{key: s.key}
	for _, secret := range secrets {
		if len(k.all) < maxSought && !s.knowsTrue(Digits(secret.Placeholder)) {
			k.add(secret)
		}
	}
	s.seeks(k)
}

// knowsTrue reports whether the value is known that the digits of a placeholder stand for, and not another in its place. It is
// called with mu held.
func (s *Scrubber) knowsTrue(digits string) bool {
	k := s.byHex[digits]
	return k != nil && s.key.mac([]byte(k.value))[:placeholders.HexLen] == digits
}

// seeks makes k what is sought. It is called with mu held.
func (s *Scrubber) seeks(k *seeker) {
	if len(k.all) == 0 {
		k = nil
	}
	s.sought.Store(k)
}

// recognise makes known what is sought and stands in b.
func (s *Scrubber) recognise(b []byte) {
	k := s.sought.Load()
	if k == nil {
		return
	}
	for _, g := range k.in(b) {
		s.AddAlias(g.Placeholder, g.Value)
		s.unseek(Digits(g.Placeholder))
	}
}

// unseek ends the search for a secret.
func (s *Scrubber) unseek(digits string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.sought.Load(); k != nil {
		s.seeks(k.without(digits))
	}
}

// recogniseNext is recognise of a stream whose last bytes were tail before more came; it returns the last bytes that are.
func (s *Scrubber) recogniseNext(tail, more []byte) []byte {
	k := s.sought.Load()
	if k == nil {
		return nil
	}
	tail = append(tail, more...)
	s.recognise(tail)
	return append(tail[:0], tail[max(0, len(tail)-k.longest*longestEscape):]...)
}

// A seeker finds values by their keyed digests. It is never changed once a Scrubber has it.
type seeker struct {
	key               Key
	all               []sought
	shortest, longest int    // bytes of one
	allowed           uint64 // classes that the characters of one have
}

// A sought is a secret by its placeholder and what is known of its characters.
type sought struct {
	placeholder, digits string

	n       int    // bytes
	prefix  string // with which it begins
	allowed uint64 // classes that its characters have
	needed  []uint64
}

// add adds a secret, unless its shape says too little, or a rule finds it wherever it stands.
func (k *seeker) add(secret Secret) {
	if !placeholders.Is(secret.Placeholder) || len(secret.Shape) > longestShape {
		return
	}
	prefix, rest, _ := strings.Cut(secret.Shape, ":")
	length, classes, _ := strings.Cut(rest, ":")
	w := sought{placeholder: secret.Placeholder, digits: Digits(secret.Placeholder), prefix: prefix}
	switch w.n, _ = strconv.Atoi(length); prefix {
	case "pem", "jwt":
		return
	case "uuid":
		w.prefix, w.n = "", chars.UUIDLen
		w.allowed, w.needed = small|capitals|numerals|classOf['-'], []uint64{classOf['-']}
	default:
		w.needed = neededOf(classes)
		for _, bits := range w.needed {
			w.allowed |= bits
		}
		for i := range len(prefix) {
			w.allowed |= classOf[prefix[i]]
		}
	}
	if w.n >= minKnown && w.n <= maxLeak {
		k.take(w)
	}
}

// take adds what is sought.
func (k *seeker) take(w sought) {
	if len(k.all) == 0 {
		k.shortest = w.n
	}
	k.all = append(k.all, w)
	k.shortest, k.longest, k.allowed = min(k.shortest, w.n), max(k.longest, w.n), k.allowed|w.allowed
}

// without is k without a secret.
func (k *seeker) without(digits string) *seeker {
	left := &seeker{key: k.key}
	for _, w := range k.all {
		if w.digits != digits {
			left.take(w)
		}
	}
	return left
}
