package scrub

import (
	"slices"
	"strings"
)

// A Mark is how much a Scrubber knew at one time.
type Mark struct{ known int }

// Mark returns how much s knows now.
func (s *Scrubber) Mark() Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Mark{len(s.order)}
}

// Since returns a Scrubber that looks for the values that became known after m, in all their disguises, and for nothing
// else: what was scrubbed before m was looked through for everything else, and is to be looked through for these. Its
// placeholders are those of s. What becomes known later it does not look for. It is nil where nothing became known.
func (s *Scrubber) Since(m Mark) *Scrubber {
	s.mu.Lock()
	late := slices.Clone(s.order[m.known:])
	s.mu.Unlock()
	if len(late) == 0 {
		return nil
	}
	l := New(s.key, &Options{Rules: s.rules})
	l.met = make(map[*known]bool)
	l.index.Store(newIndex([]rule{placeholderRule{}}))
	for _, k := range late {
		l.add(k)
	}
	return l
}

// Met lists the values that s, which Since returned, has replaced so far: the placeholder of each, and the shape that a
// dummy is made from. They are sorted by the placeholder.
func (s *Scrubber) Met() []Var {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Var, 0, len(s.met))
	for k := range s.met {
		out = append(out, Var{Name: k.rule, Value: k.placeholder, Secret: true, Shape: shapeOf(k.value)})
	}
	slices.SortFunc(out, func(a, b Var) int { return strings.Compare(a.Value, b.Value) })
	return out
}

// Knows reports whether s has a value for a placeholder, in whatever form.
func (s *Scrubber) Knows(placeholder string) bool {
	_, ok := s.valueOf(Digits(placeholder))
	return ok
}
