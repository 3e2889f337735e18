package policy

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Limits of regular expressions. Matching takes time in proportion to the text times the steps of the pattern.
const (
	maxSteps = 5000      // of one pattern, repeats written out
	maxWork  = 100 << 20 // steps times bytes of one text; about a second
)

type denyRegex struct {
	target, key string
	pattern     *matcher
	reason      string
}

func compileRegex(r *Rule) (judge, *RuleError) {
	if err := need(r, "pattern"); err != nil {
		return nil, err
	}
	m, err := newMatcher(r.Pattern)
	if err != nil {
		return nil, wrong(r, "pattern", "%v", err)
	}
	what := "a param"
	if r.Key != "" {
		what = fmt.Sprintf("param '%s'", shorten(r.Key))
	}
	return &denyRegex{r.Target, r.Key, m, fmt.Sprintf("%s matches '%s'", what, shorten(r.Pattern))}, nil
}

func (d *denyRegex) against(s *subject) string {
	if s.action.Tool == "" || d.target != "" && s.action.Tool != d.target || s.action.Parameters == nil {
		return ""
	}
	v := &s.action.Parameters.tree
	if d.key != "" {
		var ok bool
		if v, ok = s.action.Parameters.get(d.key); !ok {
			return ""
		}
	}
	for text := range texts(v) {
		if yes, err := d.pattern.match(text); err != nil {
			return "it cannot be judged, which denies: " + err.Error()
		} else if yes {
			return d.reason
		}
	}
	return ""
}

// A matcher is a pattern that is known to be bounded.
type matcher struct {
	re    *regexp.Regexp
	steps int
}

func newMatcher(pattern string) (*matcher, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("expected a regular expression of RE2: %w", err)
	}
	steps := regexSteps(tree)
	if steps > maxSteps {
		return nil, fmt.Errorf("a pattern of more than %d steps when its repeats are written out: repeat less", maxSteps)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("expected a regular expression of RE2: %w", err)
	}
	return &matcher{re, max(steps, 1)}, nil
}

// longest is how many bytes of a text are judged.
func (m *matcher) longest() int { return maxWork / m.steps }

func (m *matcher) match(text string) (bool, error) {
	if len(text) > m.longest() {
		return false, fmt.Errorf("a text of %d bytes is too long for the pattern, which judges at most %d", len(text), m.longest())
	}
	return m.re.MatchString(text), nil
}

// regexSteps estimates, before it is made, how long the program of a pattern is: a class of many ranges is counted by them.
func regexSteps(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n = 1 + len(re.Rune)/64
	}
	for _, sub := range re.Sub {
		n = min(n+regexSteps(sub), maxSteps+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxSteps+1)
}
