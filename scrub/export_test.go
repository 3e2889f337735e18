package scrub

import (
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// A Leak is a shape of gitleaks, for tests.
type Leak struct {
	ID, Re         string
	Name           string // the first of its names
	Names          []string
	Assigned, Says bool
	Behind         string
	Rule           string
	Closed, Filter bool
}

// Leaks lists the shapes of gitleaks.
func Leaks() (out []Leak) {
	for i := range leaks {
		l := &leaks[i]
		out = append(out, Leak{l.id, l.re, l.names[0], l.names, l.assigned, l.says, l.behind, placeholders.RuleName(l.id), l.closed, l.entropy > 0})
	}
	return out
}

// SaysSecret reports whether a part of a name says that it is of a secret.
func SaysSecret(part string) bool { return names.PartSays([]byte(part)) }

// MatchExpression matches expr at the beginning of b; undecided says that b is too short to tell.
func MatchExpression(expr string, b []byte, final bool) (end int, found, undecided bool) {
	groups, o := (&expression{source: expr, limit: maxLeak}).match(text{b: b, final: final}, 0)
	if o == hit {
		end = groups[1]
	}
	return end, o == hit, o == more
}

// Forget makes s forget which texts it has seen.
func Forget(s *Scrubber) {
	x := s.index.Load().seen
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.now)
}

// InParts is what Bytes does to the compressed parts of a form, which may have left bytes decompressed.
func InParts(s *Scrubber, b []byte, left int64) (out []byte, found bool) {
	return inParts(&s.memory, b, &left)
}

// Dummy is the value of Dummies.
func Dummy(v Var) string {
	value, _ := Dummies(v)
	return value
}
