package scrub

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxFound is how many secrets a Scrubber tells the shapes of. Later ones are hidden all the same.
	maxFound = 4096
	// maxDummies is how many dummies are searched for; later ones are known by where they stand.
	maxDummies = maxLearnt + maxLeaks
	// maxMadeUp bounds in bytes the dummy of a secret that the traffic brought: a header is no longer.
	maxMadeUp = 1 << 20
)

// A Secret is one that was found in what a program sent, got or left in its files: enough to make a dummy of it for a
// replay that cannot know the value.
type Secret struct {
	Placeholder string `json:"placeholder"`
	Shape       string `json:"shape"` // see Var
}

// Found lists the first maxFound of the secrets that were found so far, by their digits: those of Options.Env and of
// AddSecret aside, whose shapes Env and Arg tell.
func (s *Scrubber) Found() []Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Secret, 0, len(s.found))
	for _, digits := range slices.Sorted(maps.Keys(s.found)) {
		out = append(out, s.found[digits])
	}
	return out
}

// noteFound notes the shape of a value that a placeholder stands for, and returns the placeholder.
func (s *Scrubber) noteFound(placeholder, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	digits := Digits(placeholder)
	if _, ok := s.found[digits]; ok || len(s.found) >= maxFound || len(value) > maxMadeUp || isPlaceholder(value) {
		return placeholder
	}
	if s.found == nil {
		s.found = make(map[string]Secret)
	}
	s.found[digits] = Secret{placeholder, shapeOf(value)}
	return placeholder
}

// Unshaped reports whether a placeholder of stored stands for a secret that s has not met: neither does it know the value,
// nor what it looks like. That of a whole file or of a compressed text is none.
func (s *Scrubber) Unshaped(stored []byte) (unshaped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	eachPlaceholder(stored, func(start, end int) {
		placeholder := string(stored[start:end])
		_, found := s.found[Digits(placeholder)]
		rule := placeholderName(placeholder)
		unshaped = unshaped || !found && s.byHex[Digits(placeholder)] == nil && rule != "file" && rule != "packed"
	})
	return unshaped
}

// standing returns what is known of a value that stands alone; nil for nothing. It is called with mu held.
func (s *Scrubber) standing(value string) *known {
	if k := s.known[value]; k != nil {
		return k
	}
	return s.aliases[value]
}

// AddDummy makes value stand for a secret that was found while recording and that the replay lacks: Reveal gives it, and
// where it stands it reads as the placeholder. A value that cannot be searched for (see AddSecret) reads so in a place of
// its own, as a short cookie was hidden in its header only. The true value, where it becomes known, goes before.
func (s *Scrubber) AddDummy(placeholder, value string) {
	if !isPlaceholder(placeholder) || value == "" {
		return
	}
	placeholder, _ = formOf(placeholder)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &known{rule: placeholderName(placeholder), value: value, placeholder: placeholder, dummy: true}
	if searchable(value) && s.dummies < maxDummies {
		s.dummies++
		s.add(k)
		return
	}
	if s.aliases == nil {
		s.aliases = make(map[string]*known)
	}
	if s.aliases[value] == nil {
		s.aliases[value] = k
	}
	if digits := Digits(placeholder); s.byHex[digits] == nil {
		s.byHex[digits] = k
	}
}

// DummyOf returns a value of the shape and length of a secret: what a replay gives the program in its place. It depends on
// the secret and on taken, which tells the values that stand for others: two secrets of one letter must stay two. ok is
// false where no such value is found.
func DummyOf(secret Secret, taken func(value string) bool) (value string, ok bool) {
	if !isPlaceholder(secret.Placeholder) || shapeLen(secret.Shape) > maxMadeUp {
		return "", false
	}
	const tries = 256
	seed := Digits(secret.Placeholder)
	for n := range tries {
		if value = dummy(seed, secret.Shape); value != "" && !taken(value) {
			return value, true
		}
		seed = Digits(secret.Placeholder) + "#" + strconv.Itoa(n)
	}
	return "", false
}

// shapeLen returns the length in bytes that a shape says, of a token the sum of its parts'; 0 where it says none.
func shapeLen(shape string) (sum int) {
	_, rest, _ := strings.Cut(shape, ":")
	for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ':' || r == '.' }) {
		if n, err := strconv.Atoi(part); err == nil && n > 0 {
			sum += min(n, maxMadeUp+1)
		}
	}
	return sum
}
