package scrub

import "slices"

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
// placeholders are those of s. It learns nothing more: neither what becomes known to s later, nor by AddSecret, nor from what it
// scrubs, whose secrets are hidden in their own place alone. It is nil where nothing became known.
func (s *Scrubber) Since(m Mark) *Scrubber {
	s.mu.Lock()
	late := slices.Clone(s.order[m.known:])
	s.mu.Unlock()
	if len(late) == 0 {
		return nil
	}
	l := New(s.key, &Options{Rules: s.rules})
	l.names = s.names
	l.index.Store(newIndex([]rule{placeholderRule{}}))
	l.add(late...)
	l.fixed = true
	return l
}
