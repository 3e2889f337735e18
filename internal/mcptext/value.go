package mcptext

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A value is a JSON value as it stands; nil for none.
type value []byte

// at returns what stands under a path of keys; nil where nothing does.
func (v value) at(path ...string) value {
	for _, key := range path {
		v = v.member(key)
	}
	return v
}

// member returns the first member called key.
func (v value) member(key string) value {
	var found value
	v.members(func(name string, m value) bool {
		if name == key {
			found = m
		}
		return found == nil
	})
	return found
}

// members calls fn for every member of an object until it returns false.
func (v value) members(fn func(name string, m value) bool) {
	if !v.is('{') {
		return
	}
	var s jsonscan.Scanner
	s.Reset(v)
	for s.Begin('{'); s.More('}'); {
		name := string(s.Key())
		if raw := s.Raw(); raw == nil || !fn(name, raw) {
			return
		}
	}
}

// elements returns the first limit elements of a list, and how many it has.
func (v value) elements(limit int) (first []value, n int) {
	if !v.is('[') {
		return nil, 0
	}
	var s jsonscan.Scanner
	s.Reset(v)
	for s.Begin('['); s.More(']'); n++ {
		if raw := s.Raw(); raw != nil && len(first) < limit {
			first = append(first, raw)
		}
	}
	return first, n
}

func (v value) is(open byte) bool { return len(v) > 0 && v[0] == open }

// text returns a string decoded, and any other value as it stands; "" for none.
func (v value) text() string {
	if !v.is('"') {
		return string(v)
	}
	var s jsonscan.Scanner
	s.Reset(v)
	return s.Text()
}

// empty reports whether there is nothing in v.
func (v value) empty() bool {
	switch string(v) {
	case "", "{}", "[]", "null", `""`:
		return true
	}
	return false
}

// clip cuts s to max characters, the last of which is then an ellipsis.
func clip(s string, max int) string {
	n, cut := 0, 0
	for i := range s {
		if n == max-1 {
			cut = i
		}
		if n++; n > max {
			return s[:cut] + "…"
		}
	}
	return s
}

// quoted is a text in quotes, as JSON writes it, cut to max characters.
func quoted(s string, max int) string {
	cut := clip(s, max-2)
	more := ""
	if cut != s {
		cut, more = strings.TrimSuffix(cut, "…"), "…"
	}
	return strings.TrimSuffix(string(encoded(cut)), `"`) + more + `"`
}

// encoded is a text as JSON writes it.
func encoded(s string) []byte { return jsonscan.AppendText(nil, s) }
