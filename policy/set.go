package policy

import (
	"slices"
	"strconv"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A Set is a list of compiled rules. It is immutable; a nil *Set has no rules and allows everything.
type Set struct {
	rules  []*compiled
	once   sync.Once
	digest cas.Digest
}

// Compile makes a set of rules. What a kind needs beside a name:
//
//	deny_tool        target
//	deny_tool_param  target, key, pattern
//	require_state    key, value (no value is null)
//	regex            pattern; target and key may be "": any tool, any parameter at any depth
//	expr             pattern, or value that is a text
//	approve          target, or target, key and pattern
//
// Several rules may have one name. The error is a *RuleError.
func Compile(rules []Rule) (*Set, error) {
	s := &Set{rules: make([]*compiled, 0, min(len(rules), MaxRules))}
	for i := range rules {
		c, err := compile(&rules[i])
		if err == nil && i >= MaxRules {
			err = wrong(&rules[i], "", tooMany)
		}
		if err != nil {
			err.Index = i
			return nil, err
		}
		s.rules = append(s.rules, c)
	}
	return s, nil
}

const tooMany = "a set has at most 1024 rules: join several by an expression, or take some away"

// With returns s with r behind its rules. The error is a *RuleError.
func (s *Set) With(r Rule) (*Set, error) {
	c, err := compile(&r)
	if err == nil && s.Len() >= MaxRules {
		err = wrong(&r, "", tooMany)
	}
	if err != nil {
		return nil, err
	}
	if s == nil {
		return &Set{rules: []*compiled{c}}, nil
	}
	return &Set{rules: append(slices.Clip(s.rules), c)}, nil
}

// Without returns s without the rules of that name, and how many there were.
func (s *Set) Without(name string) (*Set, int) {
	if s == nil {
		return nil, 0
	}
	out := &Set{}
	for _, c := range s.rules {
		if c.rule.Name != name {
			out.rules = append(out.rules, c)
		}
	}
	return out, len(s.rules) - len(out.rules)
}

// Closed returns a set that denies every action, for the session of policies that is not there: what nobody can judge does not
// run. name and reason are those of the violation.
func Closed(name, reason string) *Set {
	r := Rule{Name: name, Rule: "closed", Pattern: reason}
	canonical, _ := r.appendCanonical(nil) // which fails on values alone
	return &Set{rules: []*compiled{{rule: r, canonical: canonical, judge: closed(reason)}}}
}

type closed string

func (c closed) against(*subject) string { return string(c) }

// Join returns a set of the rules of all of sets, one after another: those of the daemon, of a connection, of a session of
// policies. A name may stand in several of them, and each rule judges.
func Join(sets ...*Set) *Set {
	var only *Set
	n, several := 0, false
	for _, s := range sets {
		if k := s.Len(); k > 0 {
			several = n > 0
			n += k
			only = s
		}
	}
	if !several {
		return only
	}
	out := &Set{rules: make([]*compiled, 0, n)}
	for _, s := range sets {
		if s != nil {
			out.rules = append(out.rules, s.rules...)
		}
	}
	return out
}

// Len returns how many rules s has.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.rules)
}

// Rules returns the rules of s in their order.
func (s *Set) Rules() []Rule {
	out := make([]Rule, s.Len())
	for i := range out {
		out[i] = s.rules[i].rule
	}
	return out
}

// noRules is the digest of "[]".
var noRules = cas.Sum([]byte("[]"))

// Digest returns the BLAKE3-256 of the canonical JSON of the array of s's rules. It is computed at the first call.
func (s *Set) Digest() cas.Digest {
	if s == nil {
		return noRules
	}
	s.once.Do(func() {
		b := []byte{'['}
		for i, c := range s.rules {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, c.canonical...)
		}
		s.digest = cas.Sum(append(b, ']'))
	})
	return s.digest
}

// An Action is what a set judges.
type Action struct {
	ID         string
	Type       string // "tool_call", …
	Tool       string // "" where it is no call of a tool
	Parameters *Parameters
}

// State is what require_state and expr look into.
type State interface {
	// Lookup returns the value of key.
	Lookup(key string) (Value, bool)
	// Keys returns all keys, in any order.
	Keys() []string
}

// Check lets every rule of s judge a, which agent proposes in a state. A nil state is an empty one.
func (s *Set) Check(a *Action, state State, agent string) Verdict {
	v := Verdict{ActionID: a.ID, Type: a.Type, Tool: a.Tool, Agent: agent, parameters: a.Parameters, set: s}
	if s != nil {
		sub := subject{action: a, state: state, agent: agent}
		for _, c := range s.rules {
			if reason := c.judge.against(&sub); reason != "" {
				v.Violations = append(v.Violations, Violation{c.rule.Name, a.ID, reason, c.rule.Rule, c.param})
			}
		}
	}
	v.Allowed = len(v.Violations) == 0
	return v
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
