package check

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/meant"
)

// fits holds n against s and adds what is wrong; path names the place in messages.
func (r *reading) fits(n *node, s *shape, path string) bool {
	before := len(r.errs)
	switch s.kind {
	case kindObject:
		r.fitsObject(n, s, path)
	case kindList:
		r.fitsList(n, s, path)
	case kindText:
		r.fitsText(n, s, path)
	case kindInt:
		r.fitsInt(n, s, path)
	case kindBool:
		if n.is != isBool {
			r.wrong(n, s, path)
		}
	case kindTrue:
		if n.is != isBool || !n.truth {
			r.wrong(n, s, path)
		}
	case kindTime:
		r.fitsTime(n, s, path)
	case kindEither:
		r.fitsEither(n, s, path)
	case kindAny:
		r.fitsAny(n, path)
	}
	return len(r.errs) == before
}

// wrong adds that n is not what s takes.
func (r *reading) wrong(n *node, s *shape, path string) {
	hint := ""
	if s.kind == kindText && (n.is == isInt || n.is == isFloat || n.is == isBool) {
		hint = "; put it in quotation marks"
	}
	if s.enum != nil && n.is == isText {
		hint = didYouMean(n.text, s.enum)
	}
	if s.format == formatMode && n.is == isText {
		hint = unknownHint(n.text, modeNames())
	}
	r.errorf(n.place, "%s: expected %s, got %s%s", path, s.describe(), n.got(), hint)
}

func (r *reading) fitsText(n *node, s *shape, path string) {
	switch {
	case n.is != isText, s.enum != nil && !slices.Contains(s.enum, n.text), s.format == formatFilled && n.text == "":
		r.wrong(n, s, path)
	case s.format == formatRegexp:
		if _, err := regexp.Compile(n.text); err != nil {
			r.errorf(n.place, "%s: expected %s, got %s: %s", path, s.describe(), quote(n.text), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	case formatPatterns[s.format] != "":
		if !pattern(formatPatterns[s.format]).MatchString(n.text) {
			r.wrong(n, s, path)
		}
	}
}

func (r *reading) fitsInt(n *node, s *shape, path string) {
	switch {
	case n.is != isInt || math.Abs(n.number) >= 1<<53:
		r.wrong(n, s, path)
	case n.number < float64(s.min):
		r.errorf(n.place, "%s: expected at least %d, got %s", path, s.min, n.text)
	case s.max > 0 && n.number > float64(s.max):
		r.errorf(n.place, "%s: expected at most %d, got %s", path, s.max, n.text)
	}
}

func (r *reading) fitsTime(n *node, s *shape, path string) {
	switch n.is {
	case isInt, isFloat:
		if n.number < 0 || n.number > maxTimeMS {
			r.errorf(n.place, "%s: expected a time from 0 to %d ms, got %s", path, maxTimeMS, n.text)
		}
	case isText:
		if !pattern(timePattern).MatchString(n.text) {
			r.wrong(n, s, path)
		}
	default:
		r.wrong(n, s, path)
	}
}

func (r *reading) fitsList(n *node, s *shape, path string) {
	if n.is != isList {
		r.wrong(n, s, path)
		return
	}
	if len(n.items) < s.min {
		r.errorf(n.place, "%s: expected at least %d, got %d", path, s.min, len(n.items))
	}
	for i, item := range n.items {
		r.fits(item, s.item, path+index(i))
	}
}

// fitsEither takes the first shape that fits. Where none does, the one that n is nearest to says why.
func (r *reading) fitsEither(n *node, s *shape, path string) {
	before := len(r.errs)
	for _, e := range s.either {
		if r.fits(n, e, path) {
			return
		}
		if e.kind == kindObject && n.is == isObject || e.kind == kindList && n.is == isList {
			return
		}
		r.errs = r.errs[:before]
	}
	r.wrong(n, s, path)
}

// fitsAny refuses what JSON has not.
func (r *reading) fitsAny(n *node, path string) {
	if (n.is == isFloat || n.is == isInt) && (math.IsInf(n.number, 0) || math.IsNaN(n.number)) {
		r.errorf(n.place, "%s: expected a number, got %s", path, n.text)
	}
	for _, f := range n.fields {
		r.fitsAny(f.value, path+"."+f.key)
	}
	for i, item := range n.items {
		r.fitsAny(item, path+index(i))
	}
}

func (r *reading) fitsObject(n *node, s *shape, path string) {
	if n.is != isObject {
		r.wrong(n, s, path)
		return
	}
	if s.values != nil {
		if len(n.fields) == 0 {
			r.errorf(n.place, "%s: expected at least one key, got none", path)
		}
		for _, f := range n.fields {
			if r.fits(&node{place: f.place, is: isText, text: f.key}, s.keys, path) {
				r.fits(f.value, s.values, path+"."+f.key)
			}
		}
		return
	}
	names, guessed := s.names(), &node{} // what unknown keys may have been meant for does not count as missing
	for _, f := range n.fields {
		if i := slices.Index(names, f.key); i >= 0 {
			r.fits(f.value, s.members[i].shape, join(path, f.key))
			continue
		}
		r.errorf(f.place, "%s: unknown key%s", join(path, f.key), unknownHint(f.key, names))
		guessed.fields = append(guessed.fields, field{key: meant.By(f.key, names), value: f.value})
	}
	for _, m := range s.members {
		if m.required && n.field(m.name) == nil && guessed.field(m.name) == nil {
			r.errorf(n.place, "%s: expected the key %s, got none", orTop(path), m.name)
		}
	}
	r.together(n, guessed, s, path)
}

func (s *shape) names() []string {
	names := make([]string, len(s.members))
	for i, m := range s.members {
		names[i] = m.name
	}
	return names
}

// together holds n against what goes together in s.
func (r *reading) together(n, meant *node, s *shape, path string) {
	for _, group := range s.one {
		if got := n.which(group); len(got)+len(meant.which(group)) != 1 {
			r.errorf(n.place, "%s: expected exactly one of %s, got %s", orTop(path), strings.Join(group, ", "), orNone(got))
		}
	}
	for _, group := range s.some {
		if len(n.which(group))+len(meant.which(group)) == 0 {
			r.errorf(n.place, "%s: expected at least one of %s, got none", orTop(path), strings.Join(group, ", "))
		}
	}
	for _, group := range s.apart {
		if got := n.which(group); len(got) > 1 {
			r.errorf(n.place, "%s: %s do not go together; leave one out", orTop(path), strings.Join(got, " and "))
		}
	}
	for _, w := range s.with {
		if n.field(w.member) != nil && len(n.which(w.others))+len(meant.which(w.others)) == 0 {
			r.errorf(n.field(w.member).place, "%s: goes only with %s, which is not there", join(path, w.member), strings.Join(w.others, " or "))
		}
	}
}

// which returns the names of group that stand in n.
func (n *node) which(group []string) (got []string) {
	for _, name := range group {
		if n.field(name) != nil {
			got = append(got, name)
		}
	}
	return got
}

// MarshalJSON writes n as JSON, which the types of a scenario are filled from.
func (n *node) MarshalJSON() ([]byte, error) {
	switch n.is {
	case isObject:
		m := make(map[string]*node, len(n.fields))
		for _, f := range n.fields {
			m[f.key] = f.value
		}
		return json.Marshal(m)
	case isList:
		if n.items == nil {
			return []byte("[]"), nil
		}
		return json.Marshal(n.items)
	case isText:
		return json.Marshal(n.text)
	case isBool:
		return json.Marshal(n.truth)
	case isInt:
		if pattern(`^-?(0|[1-9][0-9]*)$`).MatchString(n.text) {
			return []byte(n.text), nil // every digit of it
		}
		return json.Marshal(int64(n.number))
	case isFloat:
		return json.Marshal(n.number)
	}
	return []byte("null"), nil
}
