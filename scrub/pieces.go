package scrub

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// A piece is a secret in the value of a variable whose name says that it holds one: all of it but the blanks and quotation
// marks around it, what stands behind the name of a scheme, one of a list, or the value of a member of JSON. What is around
// the pieces stays, so that a dummy of the variable can be taken apart as the value was.
type piece struct {
	start, end int
	value      string // without its escapes
	at         string // which of the pieces it is: the same for that of another value
}

// pieces returns the secrets of a variable's value, in order; none where it is blank.
func pieces(name, value string) []piece {
	core := trimQuotes(value)
	if core == "" {
		return nil
	}
	start := strings.Index(value, core)
	found := []piece{{start: 0, end: len(core), value: core}}
	if members, ok := jsonPieces(core); ok {
		found = members
	} else if n := schemeLen(core); n > 0 {
		found = []piece{{start: n, end: len(core), value: core[n:]}}
	} else if parts, ok := listPieces(name, core); ok {
		found = parts
	}
	for i := range found {
		found[i].start += start
		found[i].end += start
	}
	return found
}

// schemes are names of HTTP authentication schemes that people put into variables with the secret.
var schemes = []string{"bearer", "token", "basic", "apikey", "api-key", "bot"}

// schemeLen returns how long the name of the scheme and the blanks behind it are with which v begins; 0 for none.
func schemeLen(v string) int {
	scheme, rest, ok := strings.Cut(v, " ")
	if rest = strings.TrimLeft(rest, " "); !ok || rest == "" || strings.ContainsAny(rest, " \t\r\n") || !slices.Contains(schemes, strings.ToLower(scheme)) {
		return 0
	}
	return len(v) - len(rest)
}

// listPieces returns the parts of a list. A name in the plural says that it may be one; under another each part must be as long
// as keys are and look made by a machine, for a password may have a comma in it, and more so a blank.
func listPieces(name, v string) (found []piece, ok bool) {
	words := wordsOf(name)
	plural := len(words) > 0 && slices.Contains(manyWords, words[len(words)-1])
	signs, start, made := ",;", 0, true
	if plural {
		signs = ",; \t\r\n"
	}
	const least = 16 // bytes
	add := func(end int) {
		if part := v[start:end]; part != "" {
			found = append(found, piece{start: start, end: end, value: part, at: strconv.Itoa(len(found))})
			made = made && len(part) >= least && looksMade(part)
		}
		start = end + 1
	}
	for i := range len(v) {
		if strings.IndexByte(signs, v[i]) >= 0 {
			add(i)
		}
	}
	add(len(v))
	return found, len(found) > 1 && (plural || made) && !strings.Contains(v, pemBegin)
}

// jsonPieces returns the strings of an object or a list of JSON that are secrets; ok is false where there is none, and where
// another value than a string has a name that says so: then all of it is one secret.
func jsonPieces(v string) (found []piece, ok bool) {
	if v[0] != '{' && v[0] != '[' || !json.Valid([]byte(v)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(v))
	d.UseNumber()
	var at jsonPath
	for {
		from := int(d.InputOffset())
		t, err := d.Token()
		if err != nil {
			return found, len(found) > 0
		}
		end := int(d.InputOffset())
		name, isValue := at.next(t)
		text, isString := t.(string)
		switch {
		case !isValue:
		case isString && memberOpens(name, text):
			start := from + bytes.IndexByte([]byte(v[from:end]), '"') + 1
			found = append(found, piece{start: start, end: end - 1, value: text, at: at.String()})
		case !isString && NameSaysSecret(name):
			if _, isBool := t.(bool); !isBool && t != nil {
				return nil, false
			}
		}
	}
}

// memberOpens tells whether a string in the JSON of a secret variable is one. The variable's name speaks for all of them, so
// it is any but what says whom, what or where the secret is for.
func memberOpens(name, value string) bool {
	words := wordsOf(name)
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	isSecret := slices.ContainsFunc(words, func(w string) bool { return w == "SECRET" || w == "PASSWORD" || w == "PASSPHRASE" })
	switch {
	case value == "", strings.Contains(value, "://"):
		return false
	case slices.Contains(descriptions, last):
		return isSecret
	}
	return nameSays(name) != sayNothing || last == "PW" || last == "PWD" || !identifier.MatchString(value)
}

// descriptions are last words of the names of members that open nothing.
var descriptions = []string{"ID", "NAME", "USER", "USERNAME", "LOGIN", "EMAIL", "TYPE", "HOST", "HOSTNAME", "PORT", "URL", "URI", "ENDPOINT",
	"ADDRESS", "DOMAIN", "REGION", "DATABASE", "DB", "DBNAME", "ENGINE", "PROJECT", "TENANT", "SCOPE", "SCOPES", "VERSION", "ARN", "ACCOUNT",
	"EXPIRY", "EXPIRES", "EXPIRATION", "DATE", "PATH", "FILE"}

// A jsonPath says where in a text of JSON a token stands.
type jsonPath []jsonLevel

type jsonLevel struct {
	object, named bool // named: the name of a member was read, its value comes
	name          string
	n             int
}

// next takes a token and returns the name of the member whose value it is or stands in; isValue is false for a name.
func (p *jsonPath) next(t json.Token) (name string, isValue bool) {
	top := func() *jsonLevel {
		if len(*p) == 0 {
			return &jsonLevel{}
		}
		return &(*p)[len(*p)-1]
	}
	if d, ok := t.(json.Delim); ok && (d == '}' || d == ']') {
		*p = (*p)[:len(*p)-1]
		return "", false
	}
	l := top()
	if text, ok := t.(string); ok && l.object && !l.named {
		l.named, l.name = true, text
		return "", false
	}
	l.named = false
	l.n++
	name = l.name
	if d, ok := t.(json.Delim); ok {
		*p = append(*p, jsonLevel{object: d == '{', name: name})
		return name, false
	}
	return name, true
}

func (p jsonPath) String() string {
	var b strings.Builder
	for _, l := range p {
		if b.WriteString("/" + l.name); !l.object {
			b.WriteString("#" + strconv.Itoa(l.n))
		}
	}
	return b.String()
}

// piecesOf is pieces by the rules of s: one, of all that is in the value, before RulesOfNames.
func (s *Scrubber) piecesOf(name, value string) []piece {
	if s.rules < RulesOfNames {
		return []piece{{end: len(value), value: value}}
	}
	if core := trimQuotes(value); s.isKnown(core) { // as a whole: on replay it stands for what was one secret
		start := strings.Index(value, core)
		return []piece{{start: start, end: start + len(core), value: core}}
	}
	return pieces(name, value)
}

// learnPieces makes known what a variable holds whose name says that it is a secret.
func (s *Scrubber) learnPieces(name, value string) {
	for _, p := range s.piecesOf(name, value) {
		s.addNamed(name, p.value)
		if password, ok := decodeBasic(p.value); ok && s.rules >= RulesOfNames && strings.HasPrefix(strings.ToLower(value), "basic ") {
			s.addNamed(name, password)
		}
	}
}

// AddPieces is AddSecret for an argument whose name says that it is a secret. Of one that is put together, as the value of a
// variable may be, each secret becomes known, unless one of them could not be searched for: then all of it does.
func (s *Scrubber) AddPieces(name, value string) {
	found := s.piecesOf(name, value)
	if slices.ContainsFunc(found, func(p piece) bool { return !searchable(p.value) }) {
		s.addNamed(name, value)
		return
	}
	for _, p := range found {
		s.addNamed(name, p.value)
	}
}

// pieceSpans returns the spans of the pieces of value.
func (s *Scrubber) pieceSpans(name, value string) (spans []span) {
	rule := placeholders.RuleName(name)
	for _, p := range s.piecesOf(name, value) {
		placeholder := s.addNamed(name, p.value)
		f := span{start: p.start, end: p.end, rule: rule, known: &known{rule: rule, value: p.value, placeholder: placeholder}}
		if raw := value[p.start:p.end]; raw != p.value {
			for _, in := range s.index.Load().scanAll([]byte(raw)) {
				if in.known != nil && in.known.value == p.value && in.end-in.start == len(raw) {
					f.form = in.form
				}
			}
		}
		spans = append(spans, f)
	}
	return spans
}

// covered tells whether a part of f is in one of spans.
func covered(spans []span, f span) bool {
	return slices.ContainsFunc(spans, func(o span) bool { return f.start < o.end && o.start < f.end })
}

// learnLines makes the lines of a private key known, one by one: programs print and send them so.
func (s *Scrubber) learnLines(name, value string) {
	const most, shortest = 128, 32 // lines, and bytes of one
	if _, ok := pemLabelOf(strings.TrimSpace(value)); !ok {
		return
	}
	n := 0
	for line := range strings.FieldsFuncSeq(strings.ReplaceAll(value, `\n`, "\n"), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(line) >= shortest && !strings.Contains(line, "-----") && n < most {
			s.addNamed(name, line)
			n++
		}
	}
}

// Paired is Align for a variable whose name says that it is a secret, and whose value differs from the stored one in more than
// its secrets: it pairs members of JSON by their names, parts of a list by their order. A secret of real that stored has not
// is given with no placeholder. ok is false where none of them fit.
func Paired(name, stored, real string) (given []Given, ok bool) {
	was := make(map[string]string)
	for _, p := range pieces(name, stored) {
		if placeholders.Is(p.value) {
			was[p.at], _ = placeholders.Split(p.value)
		}
	}
	for _, p := range pieces(name, real) {
		ok = ok || was[p.at] != ""
		given = append(given, Given{was[p.at], p.value})
	}
	return given, ok
}
