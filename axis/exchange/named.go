package exchange

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

const (
	// maxLooked bounds, in bytes, how much of a JSON or multipart body is looked through for names.
	maxLooked = 16 << 20
	// maxForm is the same for a form.
	maxForm = 1 << 20
)

// A named is a value of which its name says that it is a secret.
type named struct {
	name, value string
	at          scrub.Place // in what was looked at
}

// learn makes the secrets known that names in a body give away. clean is the body without those that are too many to be known,
// and hidden reports whether there was one.
func (n *secretNames) learn(s *scrub.Scrubber, contentType string, body []byte) (found []named, clean []byte, hidden bool) {
	if n.none() || len(body) == 0 {
		return nil, body, false
	}
	found = n.find(contentType, body)
	_, over := learnAll(s, found)
	return found, s.HideAt(body, over), len(over) > 0
}

// learnQuery is learn for the query of a URL.
func (n *secretNames) learnQuery(s *scrub.Scrubber, u string) (clean string) {
	head, query, ok := strings.Cut(u, "?")
	if !ok || n.none() {
		return u
	}
	l := &look{names: n}
	query, fragment, _ := strings.Cut(query, "#")
	l.form([]byte(query))
	_, over := learnAll(s, l.found)
	if len(over) == 0 {
		return u
	}
	return head + "?" + string(s.HideAt([]byte(query), over)) + u[len(u)-len(fragment)-min(1, len(u)-len(head)-1-len(query)):]
}

// learnAll makes what was found known. fresh reports whether something was not known before; over is where those stand that
// are too many to be known.
func learnAll(s *scrub.Scrubber, found []named) (fresh bool, over []scrub.Place) {
	for _, v := range found {
		isFresh, full := s.LearnNamed(v.name, v.value)
		fresh = fresh || isFresh
		if full {
			over = append(over, v.at)
		}
	}
	return fresh, over
}

// find returns the secrets that names in a body give away, in order.
func (n *secretNames) find(contentType string, body []byte) []named {
	return (&look{names: n}).body(contentType, body)
}

// body is find for a look that knows more of the body.
func (l *look) body(contentType string, body []byte) []named {
	body = body[:min(len(body), maxLooked)]
	switch kind, _ := kindOf(contentType).of(body); kind {
	case parts:
		if between := boundary(contentType, body); len(between) > 0 {
			l.multipart(between, body)
			break
		}
		l.json(body)
	case form:
		l.form(body)
	case document, stream, unsaid:
		l.json(body)
	}
	return l.found
}

// beginsJSON tells whether a text begins as an object or an array of JSON does.
func beginsJSON(b []byte) bool {
	b = unguarded(b)
	return len(b) > 0 && isBracket(b[0])
}

// A look goes through one body.
type look struct {
	names  *secretNames
	found  []named
	answer bool         // what is looked at was answered
	piece  bool         // what follows has not come: a string that does not end is none
	from   int          // where in the body stands what is looked at
	within *scrub.Place // that is looked at without its escapes; nil for none
}

// member takes the value of a name, which stands from start to end of what is looked at.
func (l *look) member(name []byte, says saying, value string, start, end int) {
	if !says.isSecret(value) || l.answer && says.speaks(name, value) {
		return
	}
	at := scrub.Place{Start: int64(l.from + start), End: int64(l.from + end), Value: value}
	if l.within != nil {
		at = *l.within
	}
	at.Name = string(name)
	l.found = append(l.found, named{at.Name, value, at})
}

// json looks at each member of a text of JSON, or of several. It does not parse: a quotation mark that is not escaped ends a
// string, and one before a colon ends a name. JSON that is quoted within a string, as the arguments of a tool are, is text.
func (l *look) json(b []byte) {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], ':')
		if i < 0 {
			return
		}
		colon := at + i
		at = colon + 1
		name, ok := nameBefore(b, colon)
		if !ok {
			continue
		}
		value := blanks(b, at)
		if value == len(b) || b[value] != '"' && b[value] != '[' {
			continue
		}
		if says := l.names.of(name); says != saysNothing {
			at = l.values(name, says, b, value)
		}
	}
}

// nameBefore returns the name that ends before the colon at i.
func nameBefore(b []byte, i int) (name []byte, ok bool) {
	end := i - 1
	for end > 0 && isBlank(b[end]) {
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
func (l *look) values(name []byte, says saying, b []byte, i int) (end int) {
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
func (l *look) value(name []byte, says saying, b []byte, i int) (end int) {
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
			l.field(unescaped(rawName), rawValue, unescaped)
		}
		at += len(part) + 1
	}
}

// field looks at one field, which begins at l.from and whose value may be JSON.
func (l *look) field(name string, raw []byte, plain func([]byte) string) {
	if says := l.names.of([]byte(name)); says != saysNothing && len(raw) <= 3*maxNamed {
		l.member([]byte(name), says, plain(raw), 0, len(raw))
		return
	}
	if !beginsJSON(raw) && !bytes.HasPrefix(raw, []byte("%7B")) && !bytes.HasPrefix(raw, []byte("%5B")) {
		return
	}
	value := plain(raw)
	if value != string(raw) { // offsets in it are none of the body's
		l.within = &scrub.Place{Start: int64(l.from), End: int64(l.from + len(raw)), Value: value}
	}
	l.json([]byte(value))
	l.within = nil
}

func unescaped(b []byte) string {
	if plain, err := url.QueryUnescape(string(b)); err == nil {
		return plain
	}
	return string(b)
}

// boundary is what stands between the parts of a body, by its Content-Type or by its first line.
func boundary(contentType string, body []byte) []byte {
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

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// blanks returns where the blanks at i end.
func blanks(b []byte, i int) int {
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	return i
}
