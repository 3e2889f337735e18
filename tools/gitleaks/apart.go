package main

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// A shape is one rule, or one alternative of a rule, as scrub looks for it. Its fields are those of scrub's leak.
type shape struct {
	ID       string
	Names    []string
	Fold     bool
	Assigned bool
	Says     bool // assigned to a name that says that it is a secret; else an ordinary id would do
	Word     bool
	Alone    bool
	Closed   bool
	Re       string
	Behind   string
	Entropy  float64
	Allow    []string // nil for those of the rule
	NoAllow  bool     // not those of the rule either
}

// What gitleaks puts around names and secrets in all rules of a service: its frame.
const (
	someWord   = `[\w.-]{0,50}?`
	assignment = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}(`
	foldBegin  = `(?i)` + someWord + `(?:`
	foldMiddle = `)(?:[ \t\w.-]{0,20})[\s'"]{0,3}` + assignment
	caseBegin  = someWord + `(?i:` + someWord + `(?:`
	caseMiddle = `)(?:[ \t\w.-]{0,20})[\s'"]{0,3})` + assignment
	closing    = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"
)

var errApart = errors.New("its regex is not of a form that is known here")

// takeApart returns the shapes of a regex.
func takeApart(re string) ([]*shape, error) {
	for _, f := range []struct{ begin, middle, flags string }{{foldBegin, foldMiddle, "(?i)"}, {caseBegin, caseMiddle, ""}} {
		rest, ok := strings.CutPrefix(re, f.begin)
		if !ok {
			continue
		}
		names, secret, ok := strings.Cut(rest, f.middle)
		if !ok {
			return nil, errApart
		}
		if secret, ok = strings.CutSuffix(secret, ")"+closing); !ok {
			return nil, errApart
		}
		s, err := assigned(names, f.flags+secret)
		return []*shape{s}, err
	}
	s, err := literal(re)
	return []*shape{s}, err
}

// assigned is the shape of a secret that is assigned to a name.
func assigned(names, secret string) (*shape, error) {
	s := &shape{Assigned: true, Fold: true, Closed: true, Re: secret}
	re, err := syntax.Parse("(?i)"+names, syntax.Perl)
	if err != nil {
		return nil, err
	}
	whole := true
	s.Names, whole, _ = heads(re, fewNames)
	if !whole {
		return nil, fmt.Errorf("its names %s are not a short list", names)
	}
	s.Names = shortest(lower(s.Names))
	return s, nil
}

// literal is the shape of a key that begins with a literal of its own.
func literal(re string) (*shape, error) {
	s := new(shape)
	flags := ""
	if rest, ok := strings.CutPrefix(re, "(?i)"); ok {
		re, flags = rest, "(?i)"
	}
	re, s.Word = strings.CutPrefix(re, `\b`)
	for _, end := range []string{closing, strings.TrimSuffix(closing, ")") + `|\b)`, `(?:[^\w-]|\z)`, `(?:[^a-zA-Z0-9+/]|\z)`, `\b`} {
		if rest, ok := strings.CutSuffix(re, end); ok {
			re, s.Closed = rest, true
			break
		}
	}
	s.Re = flags + unwrap(re)
	parsed, err := syntax.Parse(s.Re, syntax.Perl)
	if err != nil {
		return nil, err
	}
	s.Names, _, s.Fold = heads(parsed, fewHeads)
	if s.Fold {
		s.Names = lower(s.Names)
	}
	s.Names = shortest(s.Names)
	return s, nil
}

// unwrap takes off the group that is the whole expression.
func unwrap(re string) string {
	for strings.HasPrefix(re, "(") && strings.HasSuffix(re, ")") && closesAtEnd(re) {
		inner := strings.TrimPrefix(re[1:len(re)-1], "?:")
		if strings.HasPrefix(inner, "?") {
			return re
		}
		re = inner
	}
	return re
}

// closesAtEnd reports whether the group that re begins with ends where re ends. The expressions have no parentheses in
// classes.
func closesAtEnd(re string) bool {
	depth := 0
	for i := 0; i < len(re); i++ {
		switch re[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i == len(re)-1
			}
		}
	}
	return false
}

func lower(names []string) []string {
	for i := range names {
		names[i] = strings.ToLower(names[i])
	}
	return names
}

// shortest sorts names and leaves those out that begin with another one: where they stand that one is found.
func shortest(names []string) (out []string) {
	slices.Sort(names)
	for _, n := range names {
		if len(out) == 0 || !strings.HasPrefix(n, out[len(out)-1]) {
			out = append(out, n)
		}
	}
	return out
}

// beginsLikeNoID reports whether whatever expr matches begins with a literal.
func beginsLikeNoID(expr string) (bool, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return false, err
	}
	texts, _, _ := heads(re, fewHeads+1) // with those of one more class
	return longEnough(texts), nil
}

// check says what keeps scrub from looking for s.
func (s *shape) check() error {
	re, err := syntax.Parse(s.Re, syntax.Perl)
	if err != nil {
		return err
	}
	if emptyWidth(re) {
		return fmt.Errorf("%s looks beside what it matches", s.Re)
	}
	if len(s.Names) == 0 {
		return errors.New("nothing literal begins it")
	}
	for _, n := range s.Names {
		if len(n) < 2 {
			return fmt.Errorf("%q is too short to look for", n)
		}
	}
	return nil
}

func emptyWidth(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	}
	return slices.ContainsFunc(re.Sub, emptyWidth)
}

// Bounds of what a list of texts is.
const (
	fewNames = 256 // of services, where all must be known
	fewHeads = 64  // of keys
	enough   = 3   // bytes from which the head of a key needs no more
)

// heads returns the texts that re can begin with, at most most of them; whole says that they are all that re matches, fold
// that their case does not matter.
func heads(re *syntax.Regexp, most int) (texts []string, whole, fold bool) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []string{""}, true, false
	case syntax.OpLiteral:
		return []string{string(re.Rune)}, true, re.Flags&syntax.FoldCase != 0
	case syntax.OpCharClass:
		return classHeads(re, most)
	case syntax.OpCapture:
		return heads(re.Sub[0], most)
	case syntax.OpConcat:
		return concatHeads(re, most)
	case syntax.OpAlternate:
		whole = true
		for _, sub := range re.Sub {
			t, w, f := heads(sub, most)
			texts, whole, fold = append(texts, t...), whole && w, fold || f
		}
		return texts, whole, fold
	case syntax.OpQuest:
		t, w, f := heads(re.Sub[0], most)
		return append(t, ""), w, f
	case syntax.OpRepeat, syntax.OpPlus:
		if re.Op == syntax.OpPlus || re.Min > 0 {
			t, _, f := heads(re.Sub[0], most)
			return t, false, f
		}
	}
	return []string{""}, false, false
}

func classHeads(re *syntax.Regexp, most int) (texts []string, whole, fold bool) {
	for i := 0; i < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1] && r < 0x80; r++ {
			texts = append(texts, string(r))
		}
		if len(texts) > most {
			return []string{""}, false, false
		}
	}
	return texts, true, false
}

func concatHeads(re *syntax.Regexp, most int) (texts []string, whole, fold bool) {
	texts, whole = []string{""}, true
	for _, sub := range re.Sub {
		if most == fewHeads && !isText(sub) && longEnough(texts) {
			return texts, false, fold
		}
		t, w, f := heads(sub, most)
		if len(texts)*len(t) >= most {
			return texts, false, fold
		}
		var next []string
		for _, a := range texts {
			for _, b := range t {
				next = append(next, a+b)
			}
		}
		if texts, whole, fold = next, whole && w, fold || f; !whole {
			return texts, false, fold
		}
	}
	return texts, whole, fold
}

// isText reports whether re is made of literals, and not of classes.
func isText(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpCharClass, syntax.OpRepeat, syntax.OpPlus:
		return false
	}
	return true
}

func longEnough(texts []string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return len(s) < enough })
}
