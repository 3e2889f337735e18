package scrub

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

const (
	// MaxLooked bounds, in bytes, how much of a JSON or multipart body is looked through for names.
	MaxLooked = 16 << 20
	// maxForm is the same for a form.
	maxForm = 1 << 20
)

// A Named is a value of which its name says that it is a secret.
type Named struct {
	Name, Value string
	At          Place // in what was looked at
}

// NamesSay reports whether any name says of a value that it is a secret.
func (s *Scrubber) NamesSay() bool { return s.names.general || len(s.names.exact) > 0 }

// Named returns the secrets that names in the body of a request give away, in order, of its first MaxLooked bytes.
func (s *Scrubber) Named(contentType string, body []byte) []Named {
	return s.named(&look{names: s.names}, contentType, body)
}

// NamedInAnswer is Named for the body of an answer, which says more of passwords that is none.
func (s *Scrubber) NamedInAnswer(contentType string, body []byte) []Named {
	return s.named(&look{names: s.names, answer: true}, contentType, body)
}

func (s *Scrubber) named(l *look, contentType string, body []byte) []Named {
	if !s.NamesSay() || len(body) == 0 {
		return nil
	}
	body = body[:min(len(body), MaxLooked)]
	switch kind, _ := BodyKindOf(contentType).Of(body); kind {
	case BodyParts:
		if between := between(contentType, body); len(between) > 0 {
			l.multipart(between, body)
			break
		}
		l.json(body)
	case BodyForm:
		l.flow = s.flowNames(string(body[:min(len(body), maxForm)]))
		l.form(body)
	case BodyJSON, BodyStream, BodyUnsaid:
		l.json(body)
	}
	return l.found
}

// NamedInLines is NamedInAnswer for events, lines of JSON or text with JSON in it. Piece says that more follows: a string that does not
// end is then none.
func (s *Scrubber) NamedInLines(b []byte, piece bool) []Named {
	if !s.NamesSay() {
		return nil
	}
	l := &look{names: s.names, answer: true, piece: piece}
	l.json(b)
	return l.found
}

// namedInField returns the secrets of JSON that is the value of a field.
func (s *Scrubber) namedInField(value string) []Named {
	if !s.NamesSay() || !BeginsJSON([]byte(value)) {
		return nil
	}
	l := &look{names: s.names}
	l.json([]byte(value))
	return l.found
}

// LearnAll is LearnNamed for what was found. Fresh reports whether something was not known before; over is where those stand that
// are too many to be known.
func (s *Scrubber) LearnAll(found []Named) (fresh bool, over []Place) {
	for _, v := range found {
		isFresh, full := s.LearnNamed(v.Name, v.Value)
		fresh = fresh || isFresh
		if full {
			over = append(over, v.At)
		}
	}
	return fresh, over
}

// BeginsJSON tells whether a text begins as an object or an array of JSON does.
func BeginsJSON(b []byte) bool {
	b = unguarded(b)
	return len(b) > 0 && isBracket(b[0])
}

// NamedInTool is Named for a message of MCP, or NamedInAnswer where it is an answer.
func (s *Scrubber) NamedInTool(answer bool, message []byte) []Named {
	names := *s.names
	names.tools = names.texts
	return s.named(&look{names: &names, answer: answer}, "application/json", message)
}

// A look goes through one body.
type look struct {
	names  *secretNames
	found  []Named
	answer bool     // what is looked at was answered
	piece  bool     // what follows has not come: a string that does not end is none
	from   int      // where in the body stands what is looked at
	within *Place   // that is looked at without its escapes; nil for none
	flow   []string // names of a form that are secrets as parts of an OAuth flow
	beside beside   // the name that was met last as a value
}

// member takes the value of a name, which stands from start to end of what is looked at.
func (l *look) member(name []byte, says nameSaying, value string, start, end int) {
	secrets, tool := says.within(name, value), l.names.tools && isTool(name)
	if tool && says != saysAsOrdered && isNoSecret(value) {
		return
	}
	whole := tool && !saysLittle(value)
	if len(secrets) == 0 && whole {
		secrets = []string{value}
	}
	if len(secrets) == 0 || l.answer && !whole && says.speaks(name, value) {
		return
	}
	at := Place{Start: int64(l.from + start), End: int64(l.from + end), Value: value}
	if l.within != nil {
		at = *l.within
	}
	at.Name = string(name)
	for _, secret := range secrets {
		l.found = append(l.found, Named{at.Name, secret, at})
	}
}

// json looks at each member of a text of JSON, or of several. It does not parse: a quotation mark that is not escaped ends a
// string, and one before a colon ends a name. JSON that is quoted within a string, as the arguments of a tool are, is text.
func (l *look) json(b []byte) {
	l.beside = beside{}
	l.members(b)
	l.texts(b)
}

func (l *look) members(b []byte) {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], ':')
		if i < 0 {
			return
		}
		colon := at + i
		at = colon + 1
		name, ok := nameBefore(b, colon)
		if !ok {
			l.headerLine(b, colon)
			continue
		}
		value := blanks(b, at)
		if value == len(b) || b[value] != '"' && b[value] != '[' {
			continue
		}
		if says := l.names.of(name); says != saysNothing {
			at = l.values(name, says, b, value)
		} else if l.names.texts {
			at = l.pair(name, b, value)
		}
	}
}

// nameBefore returns the name that ends before the colon at i.
func nameBefore(b []byte, i int) (name []byte, ok bool) {
	end := i - 1
	for end > 0 && chars.IsBlank(b[end]) {
		end--
	}
	if end < 1 || b[end] != '"' {
		return nil, false
	}
	for start := end - 1; start >= 0 && end-start <= maxName+1; start-- {
		switch b[start] {
		case '\\':
			return nil, false
		case '"':
			return b[start+1 : end], start == 0 || b[start-1] != '\\'
		}
	}
	return nil, false
}

// values takes the string at i, or the strings of the list there, and returns where they end.
func (l *look) values(name []byte, says nameSaying, b []byte, i int) (end int) {
	if b[i] == '"' {
		return l.value(name, says, b, i)
	}
	for i = blanks(b, i+1); i < len(b) && b[i] == '"'; i = blanks(b, i+1) {
		if i = blanks(b, l.value(name, says, b, i)); i == len(b) || b[i] != ',' {
			break
		}
	}
	return i
}

// value takes the string at i and returns where it ends; one that is too long says nothing. One that ends with the body was cut.
func (l *look) value(name []byte, says nameSaying, b []byte, i int) (end int) {
	escaped := false
	for end = i + 1; end < len(b) && end-i < maxNamed; end++ {
		switch b[end] {
		case '\\':
			escaped = true
			end++
		case '"':
			l.member(name, says, unquoted(b[i:end+1], escaped), i+1, end)
			return end + 1
		}
	}
	if end >= len(b) && !l.piece {
		l.member(name, says, unquoted(slices.Concat(bytes.TrimRight(b[i:], `\`), []byte{'"'}), escaped), i+1, len(b))
	}
	return min(end, len(b))
}

// unquoted is what a string of JSON says; "" where it is none.
func unquoted(b []byte, escaped bool) (s string) {
	if !escaped {
		return string(b[1 : len(b)-1])
	}
	_ = json.Unmarshal(b, &s) // "" says nothing
	return s
}

// form looks at each field of a form or a query, and into JSON in one.
func (l *look) form(b []byte) {
	b = b[:min(len(b), maxForm)]
	for at := 0; at < len(b); {
		part := b[at:]
		if end := bytes.IndexByte(part, '&'); end >= 0 {
			part = part[:end]
		}
		rawName, rawValue, ok := bytes.Cut(part, []byte("="))
		if ok && len(rawName) <= 3*maxName && len(rawValue) > 0 {
			l.from = at + len(rawName) + 1
			l.field(formValue(rawName), rawValue, formValue[[]byte])
		}
		at += len(part) + 1
	}
}

// field looks at one field, which begins at l.from and whose value may be JSON.
func (l *look) field(name string, raw []byte, plain func([]byte) string) {
	if slices.Contains(l.flow, name) && len(raw) <= 3*maxNamed {
		l.member([]byte(name), saysAsOrdered, plain(raw), 0, len(raw))
		return
	}
	if says := l.names.of([]byte(name)); says != saysNothing && len(raw) <= 3*maxNamed {
		l.member([]byte(name), says, plain(raw), 0, len(raw))
		return
	}
	if !BeginsJSON(raw) && !bytes.HasPrefix(raw, []byte("%7B")) && !bytes.HasPrefix(raw, []byte("%5B")) {
		return
	}
	value := plain(raw)
	if value != string(raw) { // offsets in it are none of the body's
		l.within = &Place{Start: int64(l.from), End: int64(l.from + len(raw)), Value: value}
	}
	l.json([]byte(value))
	l.within = nil
}

// formValue undoes the escapes of a form or a query, in which a blank may stand as +.
func formValue[T string | []byte](b T) string {
	if plain, err := url.QueryUnescape(string(b)); err == nil {
		return plain
	}
	return string(b)
}

// between is what stands between the parts of a body, by its Content-Type or by its first line.
func between(contentType string, body []byte) []byte {
	if _, params, err := mime.ParseMediaType(contentType); err == nil && params["boundary"] != "" {
		return []byte("--" + params["boundary"])
	}
	line, _, ok := bytes.Cut(body[:min(len(body), 100)], []byte("\n"))
	if line = bytes.TrimSpace(line); !ok || len(line) < 3 || !bytes.HasPrefix(line, []byte("--")) || bytes.ContainsAny(line, " \t") {
		return nil
	}
	return line
}

// multipart looks at each part of a body: at fields by their names, into JSON. Other files are passed by.
func (l *look) multipart(between, body []byte) {
	for at := 0; ; {
		i := bytes.Index(body[at:], between)
		if i < 0 {
			return
		}
		at += i + len(between)
		part := body[at:]
		if end := bytes.Index(part, between); end >= 0 {
			part = part[:end]
		}
		l.part(at, part)
	}
}

// part looks at what stands between two boundaries, at a place of the body.
func (l *look) part(at int, b []byte) {
	head, value, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		if head, value, ok = bytes.Cut(b, []byte("\n\n")); !ok {
			return
		}
	}
	l.from = at + len(b) - len(value)
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	l.field(partName(head), value, func(b []byte) string { return string(b) })
}

// partName is the name of a field by the head of its part; "" for a file or none.
func partName(head []byte) string {
	for line := range bytes.Lines(head[:min(len(head), 4096)]) {
		key, rest, _ := bytes.Cut(line, []byte(":"))
		if !strings.EqualFold(string(bytes.TrimSpace(key)), "Content-Disposition") {
			continue
		}
		_, params, err := mime.ParseMediaType(strings.TrimSpace(string(rest)))
		if _, file := params["filename"]; err == nil && !file {
			return params["name"]
		}
	}
	return ""
}

// blanks returns where the blanks at i end.
func blanks(b []byte, i int) int {
	for i < len(b) && chars.IsBlank(b[i]) {
		i++
	}
	return i
}
