package masks

import (
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// A Taken is one fact that masks take out of a text, and where.
type Taken struct {
	Mask       string // its name
	Start, End int    // in the text
	At         int    // where its name stands in the masked text
	Own        bool   // by one of Options.Extra
	Width      int    // of what stands there in bytes: 0 of what goes without a trace
}

// Trace returns what Mask returns, and in order what was taken out. Nothing is counted as used. A nil Masker takes nothing out.
func (m *Masker) Trace(b []byte) (masked []byte, taken []Taken) {
	if m == nil {
		return b, nil
	}
	return m.apply(b, func(string) {})
}

// apply masks b and tells of each mask that it uses.
func (m *Masker) apply(b []byte, use func(mask string)) (masked []byte, taken []Taken) {
	taken = m.builtin(b)
	if len(taken) == 0 && len(m.extra) == 0 {
		return b, nil
	}
	t := tracing{text: b, masked: b, use: use}
	if len(taken) > 0 {
		t = t.with(taken)
	}
	for _, e := range m.extra {
		if found := t.matches(e); len(found) > 0 {
			t = t.with(found)
		}
	}
	return t.masked, t.taken
}

// A tracing is a text that was masked so far.
type tracing struct {
	text, masked []byte
	taken        []Taken
	use          func(mask string)
}

// with takes more out. Their ranges are of what is masked so far, their Width is -1 for what goes without a trace.
func (t *tracing) with(found []Taken) tracing {
	next := tracing{text: t.text, masked: make([]byte, 0, len(t.masked)), taken: make([]Taken, 0, len(found)+len(t.taken)), use: t.use}
	done, taken := 0, t.taken
	upTo := func(end int) { // what stands there stays
		for len(taken) > 0 && (taken[0].At < end || taken[0].At == end && taken[0].Width == 0) {
			k := taken[0]
			k.At += len(next.masked) - done
			next.taken, taken = append(next.taken, k), taken[1:]
		}
		next.masked = append(next.masked, t.masked[done:end]...)
		done = end
	}
	for _, k := range found {
		upTo(k.Start)
		done = k.End
		for len(taken) > 0 && taken[0].At < k.End {
			taken = taken[1:]
		}
		k.Start, k.End, k.At = t.origin(k.Start, false), t.origin(k.End, true), len(next.masked)
		if k.Width >= 0 {
			next.masked = append(append(append(next.masked, '<'), k.Mask...), '>')
		}
		k.Width = len(next.masked) - k.At
		next.taken = append(next.taken, k)
		t.use(k.Mask)
	}
	upTo(len(t.masked))
	return next
}

// matches are those of an extra mask in what is masked.
func (t *tracing) matches(e Extra) (found []Taken) {
	done := 0
	for _, at := range e.Pattern.FindAllSubmatchIndex(t.masked, -1) {
		start, end := at[0], at[1]
		if len(at) > 2 {
			start, end = at[2], at[3]
		}
		if start < done || start >= end {
			continue
		}
		k := Taken{Mask: e.Name, Start: start, End: end, Own: true}
		if e.Drop {
			k.Width = -1
		}
		found, done = append(found, k), end
	}
	return found
}

// origin returns where in the text the place at of what is masked comes from; of one within the name of a mask, where what it
// stands for begins or ends.
func (t *tracing) origin(at int, end bool) int {
	from, shift := 0, 0
	for _, k := range t.taken {
		if k.At >= at && (k.At > at || !end) {
			break
		}
		after := k.At + k.Width
		if at < after {
			if end {
				return k.End
			}
			return k.Start
		}
		from, shift = after, k.End
	}
	return shift + at - from
}

// builtin returns, in order, what the built-in masks take out of b. A nil Masker has none.
func (m *Masker) builtin(b []byte) []Taken {
	if m == nil || len(b) == 0 {
		return nil
	}
	m.begun.Do(m.begin)
	s := search{m: m, b: b}
	for i := m.filter.Seek(b, 0); i < len(b); {
		i = m.filter.Seek(b, s.at(i))
	}
	return s.taken
}

// A search is one look at a text.
type search struct {
	m     *Masker
	b     []byte
	taken []Taken
	done  int // where the last of them ends
}

// at tries the masks that may begin at i and returns where to go on.
func (s *search) at(i int) int {
	if chars.Word[s.b[i]] && !s.begins(i) {
		return i + 1
	}
	for _, k := range s.m.masks[s.b[i]] {
		if next := k.find(s, i); next > i {
			return next
		}
	}
	return i + 1
}

func (s *search) take(start, end int, mask string) {
	s.taken = append(s.taken, Taken{Mask: mask, Start: start, End: end})
	s.done = end
}

// before returns the bytes before i up to the last mask. A mask counts as the beginning of the text, so that what is
// found does not depend on whether what stands before it was masked already.
func (s *search) before(i int) []byte { return s.b[s.done:i] }

func (s *search) begins(i int) bool { return chars.Boundary(s.b[s.done:], i-s.done) }

func (s *search) ends(i int) bool { return i >= len(s.b) || !chars.Word[s.b[i]] }

// number tells whether a number can begin at i: not within a version, a name with hyphens or an address.
func (s *search) number(i int) bool {
	before := s.before(i)
	n := len(before)
	if n == 0 {
		return true
	}
	switch before[n-1] {
	case '.', '-':
		return false
	case ':':
		return n == 1 || before[n-2] != ':' && !chars.IsDigit(before[n-2])
	}
	return s.begins(i)
}

// The names of masks that more than one shape leads to, or that code refers to.
const (
	maskHome      = "home"
	maskWorkTree  = "worktree"
	maskTemp      = "temp"
	maskTempName  = "temp-name"
	maskUUID      = "uuid"
	maskTimestamp = "timestamp"
	maskDate      = "date"
	maskTime      = "time"
	maskDuration  = "duration"
	maskUnixTime  = "unix-time"
	maskCacheKey  = "cache-key"
	maskEventID   = "event-id"
	maskLinks     = "links"
	maskID        = "id"
	maskPID       = "pid"
	maskPort      = "port"
)
