package scrub

import (
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

const (
	// maxDummies is how many dummies are searched for; later ones are known by where they stand.
	maxDummies = maxLearnt + maxNamedLearnt + maxLeaks
	// maxMadeUp bounds in bytes all dummies of one replay, those that are taken too: a recorder finds fewer and shorter secrets.
	maxMadeUp = 16 << 20
	// leastMade is for how many bytes a dummy counts at least: as long takes the seed of the shortest.
	leastMade    = 64
	dummyTries   = 256
	longestShape = 1 << 10 // bytes
)

// AddDummies makes values stand for secrets that were found while recording and that the replay lacks: Reveal gives them, and
// where one stands it reads as its placeholder. A value that cannot be searched for (see AddSecret) reads so in a place of
// its own, as a short cookie was hidden in its header only. The true value, where it becomes known, goes before.
func (s *Scrubber) AddDummies(dummies []Given) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*known
	for _, d := range dummies {
		if !placeholders.Is(d.Placeholder) || d.Value == "" {
			continue
		}
		placeholder, _ := placeholders.Split(d.Placeholder)
		k := &known{rule: placeholders.Rule(placeholder), value: d.Value, placeholder: placeholder, dummy: true}
		if searchable(d.Value) && s.dummies < maxDummies {
			s.dummies++
			all = append(all, k)
			continue
		}
		s.alias(k)
	}
	s.add(all...)
}

// alias makes k known where it stands alone. It is called with mu held.
func (s *Scrubber) alias(k *known) {
	if s.aliases == nil {
		s.aliases = make(map[string]*known)
	}
	if s.aliases[k.value] == nil {
		s.aliases[k.value] = k
	}
	if digits := Digits(k.placeholder); s.byHex[digits] == nil {
		s.byHex[digits] = k
	}
}

// DummiesOf returns for each of secrets a value of its shape and length: what a replay gives the program in its place. They
// depend on secrets and on taken, which tells the values that stand for others: two secrets of one letter must stay two.
// One for which no such value is found is left out, as is what would be more than 16 MiB in all.
func DummiesOf(secrets []Secret, taken func(value string) bool) []Given {
	m := maker{taken: taken, made: make(map[string]bool), left: maxMadeUp}
	var out []Given
	for _, s := range secrets {
		if value, ok := m.dummyOf(s); ok {
			out = append(out, Given{s.Placeholder, value})
		}
	}
	return out
}

// A maker makes dummies that are not taken.
type maker struct {
	taken func(value string) bool
	made  map[string]bool
	left  int // bytes that may be made
}

func (m *maker) dummyOf(s Secret) (value string, ok bool) {
	if !placeholders.Is(s.Placeholder) || len(s.Shape) > longestShape {
		return "", false
	}
	size := ShapeLen(s.Shape)
	if size > maxDummy {
		return "", false
	}
	seed := Digits(s.Placeholder)
	for n := 0; n < dummyTries && size <= m.left; n++ {
		value = dummy(seed, s.Shape)
		m.left -= max(len(value), leastMade)
		if value != "" && !m.made[value] && !m.taken(value) {
			m.made[value] = true
			return value, true
		}
		seed = Digits(s.Placeholder) + "#" + strconv.Itoa(n)
	}
	return "", false
}

// ShapeLen returns how many bytes the secrets of a shape have, of several shapes (see Var) and of a token's parts the sum; 0
// where it says nothing. A length that no secret has counts for as much as is not made any more.
func ShapeLen(shape string) (sum int) {
	for one := range strings.FieldsSeq(shape) {
		_, rest, _ := strings.Cut(one, ":")
		for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ':' || r == '.' }) {
			if n, err := strconv.Atoi(part); err == nil && n > 0 {
				sum += min(n, maxDummy+1)
			}
		}
	}
	return sum
}
