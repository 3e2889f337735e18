package mcptext

import (
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A value is a JSON value as it stands; nil for none. Of one that was cut it is what there is: what ends too early ends with it, but for a
// key, a number or a word, which may go on and is left out.
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
		if m := v.next(&s); m == nil || !fn(name, m) {
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
		m := v.next(&s)
		if m == nil {
			break
		}
		if len(first) < limit {
			first = append(first, m)
		}
	}
	return first, n
}

// next reads the value that comes next in v; nil where none does.
func (v value) next(s *jsonscan.Scanner) value {
	if s.Peek(); s.Err() != nil {
		return nil
	}
	from := s.Offset()
	m := value(s.Raw())
	if m == nil {
		m = v[from:]
	}
	if m.is('{') || m.is('[') || m.is('"') || !v.endsWith(m) {
		return m
	}
	return nil
}

// endsWith reports whether m is the end of v, whose last bracket is then missing.
func (v value) endsWith(m value) bool { return len(m) == 0 || &m[len(m)-1] == &v[len(v)-1] }

func (v value) is(open byte) bool { return len(v) > 0 && v[0] == open }

// text returns a string decoded, and any other value as it stands; "" for none.
func (v value) text() string {
	if !v.is('"') {
		return string(v)
	}
	var s jsonscan.Scanner
	s.Reset(v)
	if text := s.Text(); s.Err() == nil {
		return text
	}
	const longest = len(`\u00e`) // of an escape that was cut
	b := TrimCut(v)
	for n := 0; n <= longest && n < len(b); n++ {
		s.Reset(append(b[:len(b)-n:len(b)-n], '"'))
		if text := s.Text(); s.Err() == nil {
			return text
		}
	}
	return ""
}

// empty reports whether there is nothing in v.
func (v value) empty() bool {
	switch {
	case v.is('{'):
		some := false
		v.members(func(string, value) bool {
			some = true
			return false
		})
		return !some
	case v.is('['):
		_, n := v.elements(0)
		return n == 0
	}
	return string(v) == "null" || v.text() == ""
}

// TrimCut is b without a character that was cut at its end.
func TrimCut(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
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
