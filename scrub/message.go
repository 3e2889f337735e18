package scrub

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// What names say in the parts of a message and of a command line, and what a replay puts back.

// NamesSecret reports whether value is a secret because name, that of a variable or of an argument, says so (names.OfVariable), or
// because it is one of Options.SecretNames. What Options.Harmless knows is none, whatever a name says that nobody ordered.
func (s *Scrubber) NamesSecret(name, value string) bool {
	return s.names.Ordered(name) || names.OfVariable(name, value) && (s.harmless == nil || !s.harmless(value))
}

// CredentialFile reports whether the file at a path with slashes holds credentials by its place or name (names.IsCredentialFile).
func (s *Scrubber) CredentialFile(path string) bool { return names.IsCredentialFile(path) }

// NamesSay reports whether any name says of a value in a body that it is a secret.
func (s *Scrubber) NamesSay() bool { return s.names.Any() }

// Named returns the secrets that names in the body of a request give away, in order, of its first MaxLooked bytes.
func (s *Scrubber) Named(contentType string, body []byte) []Named {
	return (&look{names: s.names}).body(contentType, body)
}

// NamedInAnswer is Named for the body of an answer, which says more of passwords that is none.
func (s *Scrubber) NamedInAnswer(contentType string, body []byte) []Named {
	return (&look{names: s.names, answer: true}).body(contentType, body)
}

// NamedInTool is Named for a message of MCP, or NamedInAnswer where it is an answer.
func (s *Scrubber) NamedInTool(answer bool, message []byte) []Named {
	return (&look{names: s.names, answer: answer, tool: s.names.General()}).body("application/json", message)
}

// NamedInLines is NamedInAnswer for events, lines of JSON or text with JSON in it. Piece says that more follows: a string that does not
// end is then none.
func (s *Scrubber) NamedInLines(b []byte, piece bool) []Named {
	l := &look{names: s.names, answer: true, piece: piece}
	if s.names.Any() {
		l.text(b)
	}
	return l.found
}

// NamedInURL returns what the query of a URL gives away as part of an OAuth flow, in order: what a program makes up for it is another
// on a replay.
func (s *Scrubber) NamedInURL(u string) (found []Named) {
	u, _, _ = strings.Cut(u, "#")
	_, query, _ := strings.Cut(u, "?")
	flow := s.names.OfFlow(query)
	if flow == nil {
		return nil
	}
	for part := range strings.SplitSeq(query, "&") {
		if name, value, ok := strings.Cut(part, "="); ok && value != "" && slices.Contains(flow, name) {
			found = append(found, Named{Name: name, Value: formValue(value)})
		}
	}
	return found
}

// FindNamed returns the secrets that names give away in lines for people, which are neither JSON nor a form: NAME=VALUE and
// NAME: VALUE of settings, of an environment, of a listed header, with quotation marks or without. Of a Cookie, each of its
// values. A value must look made by a machine, or the name must be that of a variable, in capitals, or end in api key, secret, token
// or password: lines speak of passwords more often than they have one. Of a member of JSON under a name of tools any string is a secret.
func (s *Scrubber) FindNamed(b []byte) []Range {
	return findNamed(b, func(name, value string) bool { return s.NamesSecret(name, value) && s.names.OfLine(name, value) })
}

// Header returns the value of an HTTP header as it may be written. Where the name says that it holds a secret
// (Authorization, Cookie, API keys, Options.SecretNames, every name for which names.SaySecret holds), its secret part becomes a
// placeholder and is known from then on, and what tells how it is used stays: "Bearer", the names of cookies. Where the name
// says that it holds a URL, it is scrubbed as one. Other headers are scrubbed as any text.
func (s *Scrubber) Header(name, value string) string { return hider{s: s}.header(name, value) }

// LearnHeader makes the secrets of a whole header known. It comes before anything of the message that the header belongs to
// is scrubbed: the same value may stand in the URL, in the body, or in a header whose name does not say so.
func (s *Scrubber) LearnHeader(h map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(h)) { // the first name of a value gives the rule
		for _, value := range h[name] {
			hider{s: s, learns: true}.header(name, value)
		}
	}
}

// URL returns a URL as it may be written: the password of its userinfo and the query values whose names say so become
// placeholders and are known from then on, and known values and shapes are replaced everywhere. Nothing else changes, not
// even where u is no URL.
func (s *Scrubber) URL(u string) string { return hider{s: s}.url(u) }

// LearnURL makes the secrets of a URL known. It comes before anything of the message that the URL belongs to is scrubbed, as
// LearnHeader does.
func (s *Scrubber) LearnURL(u string) {
	s.recognise([]byte(u))
	hider{s: s, learns: true}.url(u)
}

// A Var is one variable of a program's environment as it may be written.
type Var struct {
	Name   string
	Value  string // with placeholders in place of secrets
	Secret bool   // Value has placeholders
	// Shape tells of each secret, in order and separated by blanks, what a dummy needs to look like it: "uuid"; "pem:" and
	// the block's label, spaces as underscores; "jwt:" and the lengths of its three parts, and behind a colon the claims that most
	// tokens have (times in seconds, the lengths of texts: "exp=1999999999,sub=3"); else the prefix that all such
	// keys have (often empty), the whole length in bytes and the classes of its characters (a, A, 0 for letters and digits,
	// x for lowercase hex, s, t, n, r for white space, u for what is not ASCII, others as themselves), separated by colons.
	// Of a known value that stands in a form, the shape is that of the value.
	Shape string
}

// Env returns the variables of env (each NAME=VALUE, in its order) as they may be written. Of a name for which
// NamesSecret holds the whole value becomes one placeholder, or each secret that it is put together from (see piece); in other
// values known secrets and shapes are replaced. What is not NAME=VALUE is left out.
func (s *Scrubber) Env(env []string) []Var {
	vars := make([]Var, 0, len(env))
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			vars = append(vars, s.variable(name, value))
		}
	}
	return vars
}

// Arg returns an argument of a program as it may be written, with the shapes of its secrets. It has no name that could say
// so: tell the scrubber of a secret that follows a flag first (AddSecret).
func (s *Scrubber) Arg(value string) Var { return s.variable("", value) }

func (s *Scrubber) variable(name, value string) Var {
	b := []byte(value)
	spans, _ := s.index.Load().scan(text{b: b, final: true}, 0)
	spans = slices.Concat(spans, proxySpans(name, value), settingSpans(value))
	sortSpans(spans)
	spans = resolve(spans)
	if s.NamesSecret(name, value) {
		own := s.pieceSpans(name, value)
		isCovered := func(f span) bool {
			return slices.ContainsFunc(own, func(o span) bool { return f.start < o.end && o.start < f.end })
		}
		spans = append(slices.DeleteFunc(spans, isCovered), own...)
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

// pieces are the secrets of a variable's value; of one that is known it is one as a whole, for on replay it stands for what was one.
func (s *Scrubber) pieces(name, value string) []piece {
	if core := trimQuotes(value); s.isKnown(core) {
		start := strings.Index(value, core)
		return []piece{{start: start, end: start + len(core), value: core}}
	}
	return piecesOf(name, value)
}

// pieceSpans returns the spans of the pieces of value, which become known.
func (s *Scrubber) pieceSpans(name, value string) (spans []span) {
	rule := placeholders.RuleName(name)
	for _, p := range s.pieces(name, value) {
		placeholder := s.addNamed(name, p.value)
		f := span{start: p.start, end: p.end, rule: rule, known: &known{rule: rule, value: p.value, placeholder: placeholder}}
		if raw := value[p.start:p.end]; raw != p.value {
			f.form = formOn(f.known, []byte(raw))
		}
		spans = append(spans, f)
	}
	return spans
}

// HideAt returns b with a placeholder in each of places, which lie in b. It never writes to b.
func (s *Scrubber) HideAt(b []byte, places []Place) []byte {
	spans := make([]span, 0, len(places))
	for _, p := range places {
		spans = append(spans, s.spanOf(p, b[p.Start:p.End], int(p.Start)))
	}
	out, _ := s.without(b, spans)
	return out
}

// Reveal is Fill with the values that s knows: what a program gets of a recorded answer.
func (s *Scrubber) Reveal(b []byte) []byte { return Fill(b, s.valueOf) }

// Revealing returns a reader of what Reveal makes of r as a whole, wherever r's reads end.
func (s *Scrubber) Revealing(r io.Reader) io.Reader { return &revealing{fill: s.Reveal, r: r} }

// Unshaped reports whether a placeholder of stored stands for a secret that s has not met: neither does it know the value,
// nor what it looks like. That of a whole file or of a compressed text is none.
func (s *Scrubber) Unshaped(stored []byte) (unshaped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	placeholders.Each(stored, func(start, end int) {
		placeholder := string(stored[start:end])
		_, found := s.found[Digits(placeholder)]
		rule := placeholders.Rule(placeholder)
		unshaped = unshaped || !found && s.byHex[Digits(placeholder)] == nil && rule != "file" && rule != "packed"
	})
	return unshaped
}
