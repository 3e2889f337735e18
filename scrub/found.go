package scrub

import (
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// MaxFound is how many secrets a Scrubber tells the shapes of. Later ones are hidden all the same.
const MaxFound = 4096

// A Secret is one that was found in what a program sent, got or left in its files: enough to make a dummy of it for a
// replay that cannot know the value.
type Secret struct {
	Placeholder string `json:"placeholder"`
	Shape       string `json:"shape"` // see Var
	// Late says that it stood in a recording before it was known: a replay may meet it as early, and seeks it (Seek).
	Late bool `json:"late,omitempty"`
}

// Found lists the first MaxFound of the secrets that were found so far, by their digits: those of Options.Env and of
// AddSecret aside, whose shapes Env and Arg tell. Of a Scrubber that Since returned it lists what that found.
func (s *Scrubber) Found() []Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Secret, 0, len(s.found))
	for _, digits := range slices.Sorted(maps.Keys(s.found)) {
		out = append(out, s.found[digits])
	}
	return out
}

// noteFound notes the shape of a value that a placeholder stands for, and returns the placeholder: that under which the value
// was found first.
func (s *Scrubber) noteFound(placeholder, value string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	digits := Digits(placeholder)
	if first, ok := s.first(digits); ok {
		return first
	}
	if _, ok := s.found[digits]; ok || len(s.found) >= MaxFound || len(value) > maxDummy || placeholders.Is(value) {
		return placeholder
	}
	if s.found == nil {
		s.found = make(map[string]Secret)
	}
	s.found[digits] = Secret{Placeholder: placeholder, Shape: shapeOf(value)}
	return placeholder
}

// noteLate notes a known value that a Scrubber of Since has found.
func (s *Scrubber) noteLate(k *known) {
	if !s.fixed || len(k.value) > maxDummy {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	placeholder := k.written()
	digits := Digits(placeholder)
	if _, ok := s.found[digits]; ok || len(s.found) >= MaxFound {
		return
	}
	if s.found == nil {
		s.found = make(map[string]Secret)
	}
	s.found[digits] = Secret{placeholder, shapeOf(k.value), true}
}

// first returns the placeholder that stood first for a value. A token that an answer brings has the name of its shape, and keeps
// that where a header says later what it is for: a replay knows it from its beginning, and what it writes must read the same.
// Older versions of the rules renamed it. It is called with mu held.
func (s *Scrubber) first(digits string) (placeholder string, ok bool) {
	found, ok := s.found[digits]
	return found.Placeholder, ok && s.rules >= RulesOfNames
}

// newKnown returns a value that is to be known, under a rule or that by which it was found first. It is called with mu held.
func (s *Scrubber) newKnown(rule, value string) *known {
	placeholder := s.key.placeholder(rule, []byte(value))
	if first, ok := s.first(Digits(placeholder)); ok {
		rule, placeholder = placeholders.Rule(first), first
	}
	return &known{rule: rule, value: value, placeholder: placeholder}
}

// Unshaped reports whether a placeholder of stored stands for a secret that s has not met: neither does it know the value,
// nor what it looks like. That of a whole file or of a compressed text is none.
func (s *Scrubber) Unshaped(stored []byte) (unshaped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	placeholders.Each(stored, func(start, end int) {
		placeholder := string(stored[start:end])
		_, found := s.found[Digits(placeholder)]
		rule := placeholders.Rule(placeholder)
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
