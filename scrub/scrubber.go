package scrub

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// Options are what New takes. A nil *Options is the zero Options.
type Options struct {
	// Env is the environment of the program, as NAME=VALUE. Values of names that say so (see NamesSecret) become known
	// secrets, whose rules are the names in lowercase.
	Env []string
	// Harmless reports that a value is no secret, although the name of a variable or of an argument says that it is one: the
	// path of a file. It must tell the same in a replay. nil is false for all.
	Harmless func(value string) bool
	// Rules is the version by which a recording or a tape says that its secrets were found: RulesForeign, or any other for all that
	// is known. A version that is newer than Rules is not known here: CheckRules says so, before New.
	Rules int
	// SecretNames are names of variables, headers, query values, members of JSON and fields of forms whose values are secrets, beside those
	// that are known (docs/reference/secrets.md), whatever the values look like. Separators and case do not count.
	SecretNames []string
}

const (
	// Rules is the version of what is looked for.
	Rules = 6
	// RulesForeign is that of a tape which says none: another producer wrote it. A request compares with a recorded one only where
	// nothing is hidden in it that was not hidden then. So of shapes those are looked for that tapedeck has by itself, and names in
	// bodies do not count.
	RulesForeign = 1
)

// An UnknownRulesError says that a recording was made with newer shapes than this package has. A replay with others would not
// match it, or would write what the recording hid.
type UnknownRulesError struct{ Version int }

func (e *UnknownRulesError) Error() string {
	return fmt.Sprintf("scrub: made with shapes version %d, this one knows versions up to %d: update tapedeck", e.Version, Rules)
}

// CheckRules returns an *UnknownRulesError where version is one that New does not know.
func CheckRules(version int) error {
	if version < 0 || version > Rules {
		return &UnknownRulesError{version}
	}
	return nil
}

// A Scrubber finds the secrets of one run and replaces them by placeholders. Its methods may be called by several
// goroutines at once; a value that is added is found by every call that begins after AddSecret returned.
type Scrubber struct {
	memory
	rules    int
	harmless func(value string) bool // nil for none
	names    *names.Members
}

// New returns a Scrubber that makes placeholders with key.
func New(key Key, opts *Options) *Scrubber {
	if opts == nil {
		opts = new(Options)
	}
	s, shapes := &Scrubber{rules: Rules, harmless: opts.Harmless}, allShapes
	if opts.Rules == RulesForeign {
		s.rules, shapes = RulesForeign, foreignShapes
	}
	s.names = names.NewMembers(s.rules != RulesForeign, opts.SecretNames)
	s.init(key, shapes())
	s.LearnEnv(opts.Env)
	return s
}

// The shapes of a version are made once, and never changed.
var (
	allShapes     = sync.OnceValue(func() *index { return newIndex(rulesOf(Rules)) })
	foreignShapes = sync.OnceValue(func() *index { return newIndex(rulesOf(RulesForeign)) })
)

// Bytes returns b with each secret replaced by its placeholder, and whether there was one. Where nothing was found it
// returns b itself. It never writes to b. Where b is compressed, with gzip, as zlib or as a pack of Git, and a secret lies
// inside, it returns what b decompresses to, scrubbed, behind a line with a placeholder of b; so it does with a compressed part
// of a form (multipart).
func (s *Scrubber) Bytes(b []byte) (out []byte, found bool) { return s.bytes(b, false) }

// LearnBytes is Bytes for what a program sends or gets. What a name before it told to be a secret (twitter_api_key = "…") is
// known from there on, in b and in all that is scrubbed later: without its name it would stand there in clear, and a replay
// whose answers have the placeholder would ask for something else than was recorded. A compressed b teaches nothing, nor do
// the files of a work tree, which are scrubbed in no order.
func (s *Scrubber) LearnBytes(b []byte) (out []byte, found bool) {
	return s.bytes(b, unpacker(b) == nil)
}

func (s *Scrubber) bytes(b []byte, learns bool) (out []byte, found bool) {
	s.recognise(b)
	left := int64(maxUnpacked)
	if out, found := unpacked(&s.memory, b, &left); found {
		return out, true
	}
	b, packed := inParts(&s.memory, b, &left)
	spans := s.index.Load().scanAll(b)
	if !learns || !s.teach(b, spans) {
		out, found = s.without(b, spans)
		return out, found || packed
	}
	var kept bytes.Buffer
	w := s.Writer(&kept)
	_, _ = w.Write(b) // a buffer takes all
	_ = w.Close()
	return kept.Bytes(), true
}

// String is Bytes for a string.
func (s *Scrubber) String(v string) string {
	if out, found := s.Bytes([]byte(v)); found {
		return string(out)
	}
	return v
}

// Find returns where Bytes would put placeholders, from left to right, for who masks secrets in another way. It does not look
// into what is compressed.
func (s *Scrubber) Find(b []byte) (found []Range) {
	spans := s.index.Load().scanAll(b)
	sortSpans(spans)
	for _, f := range resolve(spans) {
		found = append(found, f.at(0))
	}
	return found
}

// Finder returns a Writer that passes nothing on and cannot fail: it tells f of every secret, in order.
func (s *Scrubber) Finder(f func(Range)) *Writer {
	w := s.Writer(nil)
	w.tell = f
	return w
}

// Writer returns a Writer that scrubs what is written to it and passes it on to w. It learns: see LearnBytes.
func (s *Scrubber) Writer(w io.Writer) *Writer {
	return &Writer{m: &s.memory, w: w, learnt: make(map[*known]int64)}
}

// FileWriter is Writer for a file: it learns nothing, as Bytes does.
func (s *Scrubber) FileWriter(w io.Writer) *Writer { return &Writer{m: &s.memory, w: w} }

// Streams reports whether FileWriter makes of a file that begins with head what Bytes makes of it: it is neither compressed nor
// a form. A head of 4 KiB tells.
func (s *Scrubber) Streams(head []byte) bool {
	return unpacker(head) == nil && between("", head) == nil
}

// Rules returns the version of the shapes that s looks for.
func (s *Scrubber) Rules() int { return s.rules }

// RuleNames lists the rules by which s finds secrets by their shape, by name in order. A secret that a name tells has that for its rule.
func (s *Scrubber) RuleNames() (all []string) {
	for _, r := range rulesOf(s.rules) {
		for _, name := range r.names {
			all = append(all, placeholders.RuleName(name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// KeyedDigest returns the hex HMAC-SHA256 of b under the project's key. It stands for the bytes of a file that holds
// credentials: it tells whether the file is still the same, and nothing else to who lacks the key.
func (s *Scrubber) KeyedDigest(b []byte) string { return s.key.mac(b) }

// KeyID names the project's key (Key.ID).
func (s *Scrubber) KeyID() string { return s.key.ID() }

// KeyedHash returns what KeyedDigest is the hex sum of, for bytes that come piece by piece.
func (s *Scrubber) KeyedHash() hash.Hash { return hmac.New(sha256.New, s.key[:]) }

// NotCovered returns the sorted names of the variables and headers whose values are hidden in their own place only: too
// short or too common to be searched for elsewhere, or learnt after too many others.
func (s *Scrubber) NotCovered() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.notCovered))
}

// Counts returns how many placeholders were written so far, by rule.
func (s *Scrubber) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// rulesOf lists the rules of a version.
func rulesOf(version int) []*rule {
	if version == RulesForeign {
		return shapeRules()
	}
	return slices.Concat(shapeRules(), asRules(vendorKeys()), placedKeys, leakRules())
}

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
