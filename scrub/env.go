package scrub

import (
	"slices"
	"strings"
)

// A Var is one variable of a program's environment as it may be written.
type Var struct {
	Name   string
	Value  string // with placeholders in place of secrets
	Secret bool   // Value has placeholders
	// Shape tells of each secret, in order and separated by blanks, what a dummy needs to look like it: "uuid"; "pem:" and
	// the block's label, spaces as underscores; "jwt:" and the lengths of its three parts, and behind a colon the claims that most tokens have (times in seconds, the lengths of
	// texts: "exp=1999999999,sub=3"); else the prefix that all such
	// keys have (often empty), the whole length in bytes and the classes of its characters (a, A, 0 for letters and digits,
	// x for lowercase hex, s, t, n, r for white space, u for what is not ASCII, others as themselves), separated by colons.
	// Of a known value that stands in a form, the shape is that of the value.
	Shape string
}

// Env returns the variables of env (each NAME=VALUE, in its order) as they may be written. Of a name for which
// NamesSecret holds the whole value becomes one placeholder, or each secret that it is put together from (see piece); in other
// values known secrets and shapes are replaced. What is not
// NAME=VALUE is left out.
func (s *Scrubber) Env(env []string) []Var {
	vars := make([]Var, 0, len(env))
	for _, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			continue
		}
		vars = append(vars, s.variable(name, value))
	}
	return vars
}

// Arg returns an argument of a program as it may be written, with the shapes of its secrets. It has no name that could say
// so: tell the scrubber of a secret that follows a flag first (AddSecret).
func (s *Scrubber) Arg(value string) Var { return s.variable("", value) }

func (s *Scrubber) variable(name, value string) Var {
	b := []byte(value)
	spans, _ := s.index.Load().scan(text{b: b, final: true}, 0)
	spans = append(spans, s.placeSpans(name, value)...)
	sortSpans(spans)
	spans = resolve(spans)
	if s.NamesSecret(name, value) {
		own := s.pieceSpans(name, value)
		spans = append(slices.DeleteFunc(spans, func(f span) bool { return covered(own, f) }), own...)
		sortSpans(spans)
	}
	if len(spans) == 0 {
		return Var{Name: name, Value: value}
	}
	shapes := make([]string, len(spans))
	for i, f := range spans {
		shapes[i] = shapeOf(value[f.start:f.end])
		if f.known != nil {
			shapes[i] = shapeOf(f.known.value) // not that of its disguise
		}
	}
	out := s.replace(nil, b, 0, spans, nil)
	return Var{Name: name, Value: string(out), Secret: true, Shape: strings.Join(shapes, " ")}
}
