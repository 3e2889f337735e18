package check

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/meant"
)

// fits holds n against s and adds what is wrong; path names the place in messages.
func (r *reading) fits(n *node, s *shape, path string) bool {
	before := len(r.errs)
	switch s = s.real(); {
	case s.AnyOf != nil:
		r.fitsEither(n, s, path)
	case s.Type == "object":
		r.fitsObject(n, s, path)
	case s.Type == "array":
		r.fitsList(n, s, path)
	case s.Type == "string" || s.Enum != nil:
		r.fitsText(n, s, path)
	case s.Type == "integer" || s.Type == "number":
		r.fitsNumber(n, s, path)
	case s.Type == "boolean" && n.is != isBool, s.Const && (n.is != isBool || !n.truth):
		r.wrong(n, s, path)
	default:
		r.fitsAny(n, path)
	}
	return len(r.errs) == before
}

// wrong adds that n is not what s takes.
func (r *reading) wrong(n *node, s *shape, path string) {
	hint := ""
	switch words := s.words(); {
	case s.Type == "string" && (n.is == isInt || n.is == isFloat || n.is == isBool):
		hint = "; put it in quotation marks"
	case n.is != isText || len(words) == 0:
	case s.Title != "": // which does not list them
		hint = unknownHint(n.text, words)
	default:
		hint = didYouMean(n.text, words)
	}
	r.errorf(n.place, "%s: expected %s, got %s%s", path, s.describe(), n.got(), hint)
}

func (r *reading) fitsText(n *node, s *shape, path string) {
	switch {
	case n.is != isText, s.Enum != nil && !slices.Contains(s.Enum, n.text), len(n.text) < s.Filled,
		s.Pattern != "" && !pattern(s.Pattern).MatchString(n.text):
		r.wrong(n, s, path)
	case s.Format == "regex":
		if _, err := regexp.Compile(n.text); err != nil {
			why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
			r.errorf(n.place, "%s: expected %s, got %s: %s", path, s.describe(), quote(n.text), why)
		}
	}
}

func (r *reading) fitsNumber(n *node, s *shape, path string) {
	switch {
	case n.is != isInt && (s.Type == "integer" || n.is != isFloat), s.Type == "integer" && math.Abs(n.number) >= 1<<53:
		r.wrong(n, s, path)
	case n.number < s.Min:
		r.errorf(n.place, "%s: expected at least %.0f, got %s", path, s.Min, n.text)
	case s.Max > 0 && n.number > s.Max:
		r.errorf(n.place, "%s: expected at most %.0f, got %s", path, s.Max, n.text)
	}
}

func (r *reading) fitsList(n *node, s *shape, path string) {
	if n.is != isList {
		r.wrong(n, s, path)
		return
	}
	if len(n.items) < s.MinItems {
		r.errorf(n.place, "%s: expected at least %d, got %d", path, s.MinItems, len(n.items))
	}
	for i, item := range n.items {
		r.fits(item, s.Items, path+index(i))
	}
}

// fitsEither takes the first shape that fits. Where none does, the one that n is nearest to says why.
func (r *reading) fitsEither(n *node, s *shape, path string) {
	before := len(r.errs)
	for _, e := range s.AnyOf {
		if r.fits(n, e, path) {
			return
		}
		if kind := e.real().Type; kind == "object" && n.is == isObject || kind == "array" && n.is == isList {
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
	if s.Values.shape != nil {
		if len(n.fields) == 0 {
			r.errorf(n.place, "%s: expected at least one key, got none", path)
		}
		for _, f := range n.fields {
			if r.fits(&node{place: f.place, is: isText, text: f.key}, s.Names, path) {
				r.fits(f.value, s.Values.shape, path+"."+f.key)
			}
		}
		return
	}
	names := slices.Sorted(maps.Keys(s.Members))
	guessed := &node{} // what unknown keys may have been meant for does not count as missing
	for _, f := range n.fields {
		if m := s.Members[f.key]; m != nil {
			r.fits(f.value, m, join(path, f.key))
			continue
		}
		r.errorf(f.place, "%s: unknown key%s", join(path, f.key), unknownHint(f.key, names))
		guessed.fields = append(guessed.fields, field{key: meant.By(f.key, names), value: f.value})
	}
	for _, name := range s.Required {
		if n.field(name) == nil && guessed.field(name) == nil {
			r.errorf(n.place, "%s: expected the key %s, got none", orTop(path), name)
		}
	}
	for _, rule := range s.AllOf {
		r.together(n, guessed, rule, path)
	}
}

// together holds n against a rule of what goes together.
func (r *reading) together(n, guessed *node, rule *shape, path string) {
	one, some := required(rule.OneOf), required(rule.AnyOf)
	switch got := n.which(one); {
	case one != nil && len(got)+len(guessed.which(one)) != 1:
		r.errorf(n.place, "%s: expected exactly one of %s, got %s", orTop(path), strings.Join(one, ", "), orNone(got))
	case some != nil && len(n.which(some))+len(guessed.which(some)) == 0:
		r.errorf(n.place, "%s: expected at least one of %s, got none", orTop(path), strings.Join(some, ", "))
	}
	if rule.Not != nil && len(n.which(rule.Not.Required)) == len(rule.Not.Required) {
		r.errorf(n.place, "%s: %s do not go together; leave one out", orTop(path), strings.Join(rule.Not.Required, " and "))
	}
	if rule.If == nil {
		return
	}
	member, others := rule.If.Required[0], required(rule.Then.AnyOf)
	if at := n.field(member); at != nil && len(n.which(others))+len(guessed.which(others)) == 0 {
		r.errorf(at.place, "%s: goes only with %s, which is not there", join(path, member), strings.Join(others, " or "))
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
