// Package boundedregexp compiles regular expressions that others wrote, and bounds what they cost.
//
// RE2, which package regexp is, matches in time in proportion to the text times the length of the pattern, but that length is
// what the pattern's repeats come to when they are written out, of which a few bytes make millions. Here a pattern has a number
// of steps, which is estimated before anything is made of it; one with too many is refused, and a match that would take more
// than a bound is an error and no match. Neither ever waits.
//
// Not goals: other syntaxes. What RE2 does not have (looking ahead or behind, references) is refused.
package boundedregexp

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Limits of a pattern and of a match.
const (
	MaxPattern = 16 << 10 // bytes of a pattern
	MaxSteps   = 5000     // of a pattern whose repeats are written out
	MaxWork    = 32 << 20 // steps times bytes of a text: half a second at the very worst, usually a hundredth
)

// A Regexp is a pattern of bounded cost. It may be used by several goroutines at once.
type Regexp struct {
	re    *regexp.Regexp
	steps int
}

// Compile reads a pattern in the syntax of RE2.
func Compile(pattern string) (*Regexp, error) {
	if len(pattern) > MaxPattern {
		return nil, fmt.Errorf("a regular expression of %d bytes, more than %d: shorten it", len(pattern), MaxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("expected a regular expression of RE2: %w", err)
	}
	n := steps(tree)
	if n > MaxSteps {
		return nil, fmt.Errorf("a regular expression of more than %d steps when its repeats are written out: repeat less", MaxSteps)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("expected a regular expression of RE2: %w", err)
	}
	return &Regexp{re, n}, nil
}

// steps estimates how long the program of a pattern is. A class of many ranges is counted by them.
func steps(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n = 1 + len(re.Rune)/64
	case syntax.OpConcat, syntax.OpRepeat:
		n = 0 // what they are of, and nothing else
	}
	for _, sub := range re.Sub {
		n = min(n+steps(sub), MaxSteps+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(max(n, 1), MaxSteps+1)
}

// String returns the pattern.
func (r *Regexp) String() string { return r.re.String() }

// Steps returns the estimate, from 1.
func (r *Regexp) Steps() int { return r.steps }

// Longest returns how many bytes of a text are matched.
func (r *Regexp) Longest() int { return MaxWork / r.steps }

// Match reports whether text has a match. The error says that the text is too long for the pattern.
func (r *Regexp) Match(text string) (bool, error) {
	if len(text) > r.Longest() {
		return false, fmt.Errorf("a text of %d bytes is too long for the pattern, which is matched with at most %d", len(text), r.Longest())
	}
	return r.re.MatchString(text), nil
}
