package mcptext

import (
	"strings"
)

// compact is a value for people in at most about max characters: keys that are plain words stand without quotes, white space
// between tokens is gone.
func compact(v value, max int) string {
	w := writer{room: max}
	w.value(v, 0)
	return clip(w.b.String(), max)
}

// A writer writes a value until its room is used up.
type writer struct {
	b    strings.Builder
	room int // bytes, about
}

// maxNested is how deep values are shown; what is deeper stands as {…}.
const maxNested = 6

func (w *writer) full() bool { return w.b.Len() > w.room }

func (w *writer) value(v value, depth int) {
	switch {
	case w.full():
	case v.is('{'):
		w.object(v, depth)
	case v.is('['):
		w.list(v, depth)
	case v.is('"'):
		w.b.WriteString(quoted(v.text(), max(w.room-w.b.Len(), 20)))
	default: // a number or a word, or what is no JSON
		w.b.WriteString(clip(string(v), max(w.room-w.b.Len(), 20)))
	}
}

func (w *writer) object(v value, depth int) {
	if depth == maxNested {
		w.b.WriteString("{…}")
		return
	}
	w.b.WriteByte('{')
	first := true
	v.members(func(name string, m value) bool {
		if !first {
			w.b.WriteString(", ")
		}
		first = false
		if !plainWord(name) {
			name = string(encoded(name))
		}
		w.b.WriteString(name + ": ")
		w.value(m, depth+1)
		return !w.full()
	})
	w.b.WriteByte('}')
}

func (w *writer) list(v value, depth int) {
	if depth == maxNested {
		w.b.WriteString("[…]")
		return
	}
	w.b.WriteByte('[')
	first, n := v.elements(w.room)
	for i, e := range first {
		if i > 0 {
			w.b.WriteString(", ")
		}
		if w.full() {
			break
		}
		w.value(e, depth+1)
	}
	if n > len(first) {
		w.b.WriteString(", …")
	}
	w.b.WriteByte(']')
}

// plainWord reports whether a key reads well without quotes.
func plainWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 60
}
