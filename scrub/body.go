package scrub

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// MaxLooked bounds, in bytes, how much of a JSON or multipart body is looked through for names.
const MaxLooked = 16 << 20

// A Named is a value of which its name says that it is a secret.
type Named struct {
	Name, Value string
	At          Place // in what was looked at
}

// A Place is where in a text a value stands that its name told to be a secret, and that is searched for nowhere, for as many
// as are were learnt before it (Scrubber.LearnAll). It is hidden there.
type Place struct {
	Start, End  int64  // bytes of the text
	Name, Value string // Value is what stands there, escapes undone
}

// A look goes through one body, whatever its kind, and collects what names in it give away.
type look struct {
	names  *names.Members
	found  []Named
	answer bool     // what is looked at was answered
	tool   bool     // it is what a tool is given, or answers: names of tools say so of any value, and count in small letters in texts
	piece  bool     // what follows has not come: a string that does not end is none
	from   int      // where in the body stands what is looked at
	within *Place   // that is looked at without its escapes; nil for none
	flow   []string // names of a form that are secrets as parts of an OAuth flow
	beside beside   // the name that was met last as a value
}

// body looks at a body by its Content-Type and its first bytes.
func (l *look) body(contentType string, b []byte) []Named {
	if !l.names.Any() || len(b) == 0 {
		return nil
	}
	b = b[:min(len(b), MaxLooked)]
	switch kind, _ := BodyKindOf(contentType).Of(b); kind {
	case BodyOther:
	case BodyForm:
		b = b[:min(len(b), maxForm)]
		l.flow = l.names.OfFlow(string(b))
		l.form(b)
	case BodyParts:
		between := between(contentType, b)
		if between == nil {
			l.text(b)
		}
		// Fields are looked at by their names, and into JSON. Other files are passed by.
		eachPart(b, between, func(head []byte, start, end int) {
			l.from = start
			l.field(partName(head), b[start:end], func(b []byte) string { return string(b) })
		})
	default:
		l.text(b)
	}
	return l.found
}

// member takes the value of a name, which stands from start to end of what is looked at.
func (l *look) member(name []byte, says names.Saying, value string, start, end int) {
	secrets, whole := says.Within(name, value), false
	if l.tool && names.IsTool(name) {
		var none bool
		if whole, none = names.OfTool(value); none && says != names.AsOrdered {
			return
		}
	}
	if len(secrets) == 0 && whole {
		secrets = []string{value}
	}
	if len(secrets) == 0 || l.answer && !whole && says.SpeaksOf(name, value) {
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

// text looks at each member of a text of JSON, or of several, and at what names in its strings say. It does not parse: a quotation mark
// that is not escaped ends a string, and one before a colon ends a name. JSON that is quoted within a string, as the arguments of a tool
// are, is text.
func (l *look) text(b []byte) {
	l.beside = beside{}
	l.members(b)
	if l.names.General() {
		l.assignments(b)
		l.flags(b)
	}
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
		if says := l.names.Of(name); says != names.Nothing {
			at = l.values(name, says, b, value)
		} else if l.names.General() {
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
	for start := end - 1; start >= 0 && end-start <= names.MaxName+1; start-- {
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
func (l *look) values(name []byte, says names.Saying, b []byte, i int) (end int) {
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
func (l *look) value(name []byte, says names.Saying, b []byte, i int) (end int) {
	escaped := false
	for end = i + 1; end < len(b) && end-i < names.MaxValue; end++ {
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

// A beside is the name of a secret that is itself a value, as lists of variables, headers and fields have them:
//
//	{"name": "API_KEY", "value": "…"}
type beside struct {
	name []byte
	says names.Saying
	end  int // of the member in the body
}

// pair looks at a member whose string stands at i: at the name of another, or at what it is the name of. It returns where to go on.
func (l *look) pair(name, b []byte, i int) (end int) {
	switch string(name) {
	case "name", "key", "Name", "Key":
		l.beside = beside{}
		text := b[i+1 : min(len(b), i+2+names.MaxName)]
		n := bytes.IndexByte(text, '"')
		if b[i] != '"' || n < 0 {
			return i
		}
		if says := l.names.Of(text[:n]); says != names.Nothing {
			l.beside = beside{text[:n], says, i + n + 2}
		}
		return i + n + 2
	case "value", "Value":
		before := l.beside
		l.beside = beside{}
		if before.says != names.Nothing && !bytes.ContainsAny(b[before.end:i], "{}[]") {
			return l.values(before.name, before.says, b, i)
		}
	}
	return i
}

// form looks at each field of a form or a query, and into JSON in one.
func (l *look) form(b []byte) {
	for at := 0; at < len(b); {
		part, _, _ := bytes.Cut(b[at:], []byte("&"))
		name, value, ok := bytes.Cut(part, []byte("="))
		if ok && len(name) <= 3*names.MaxName && len(value) > 0 {
			l.from = at + len(name) + 1
			l.field(formValue(name), value, formValue[[]byte])
		}
		at += len(part) + 1
	}
}

// field looks at one field, which begins at l.from and whose value may be JSON.
func (l *look) field(name string, raw []byte, plain func([]byte) string) {
	says := l.names.Of([]byte(name))
	if slices.Contains(l.flow, name) {
		says = names.AsOrdered
	}
	if says != names.Nothing && len(raw) <= 3*names.MaxValue {
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
	l.text([]byte(value))
	l.within = nil
}

// formValue undoes the escapes of a form or a query, in which a blank may stand as +.
func formValue[T string | []byte](b T) string {
	if plain, err := url.QueryUnescape(string(b)); err == nil {
		return plain
	}
	return string(b)
}

// between is what stands between the parts of a form, by its Content-Type or by its first line; nil where it is none.
func between(contentType string, body []byte) []byte {
	if _, params, err := mime.ParseMediaType(contentType); err == nil && params["boundary"] != "" {
		return []byte("--" + params["boundary"])
	}
	line, _, ok := bytes.Cut(body[:min(len(body), 100)], []byte("\r\n"))
	if !ok || !bytes.HasPrefix(line, []byte("--")) || bytes.ContainsAny(line, " \t") || len(bytes.Trim(line, "-")) == 0 {
		return nil
	}
	return line
}

// eachPart calls do with the head of each part of a form, and with where its content begins and ends.
func eachPart(b, between []byte, do func(head []byte, start, end int)) {
	for at := 0; len(between) > 0; {
		i := bytes.Index(b[at:], between)
		if i < 0 {
			return
		}
		at += i + len(between)
		part, _, _ := bytes.Cut(b[at:], between)
		head, content, ok := bytes.Cut(part, []byte("\r\n\r\n"))
		if !ok {
			head, content, ok = bytes.Cut(part, []byte("\n\n"))
		}
		if ok {
			start := at + len(part) - len(content)
			do(head, start, start+len(bytes.TrimSuffix(bytes.TrimSuffix(content, []byte("\n")), []byte("\r"))))
		}
	}
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

// A BodyKind says how the secrets that names in a body give away are found: by its Content-Type, and where that says little, by
// its first bytes.
type BodyKind uint8

// The kinds of body.
const (
	BodyUnsaid BodyKind = iota // its first bytes tell
	BodyJSON
	BodyStream // lines or events, or a text in which there may be JSON: of an answer, each is looked at as it comes
	BodyForm   // names and values
	BodyParts  // multipart
	BodyOther  // not looked at
)

// maxForm is MaxLooked for a form.
const maxForm = 1 << 20

const formType = "application/x-www-form-urlencoded"

// BodyKindOf is the kind of a request or an answer by its Content-Type. BodyOther is what is clearly something else than text.
func BodyKindOf(contentType string) BodyKind {
	if contentType == "" {
		return BodyUnsaid
	}
	t, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	t = strings.TrimSpace(t)
	family, name, _ := strings.Cut(t, "/")
	switch {
	case t == "text/event-stream", strings.Contains(t, "ndjson"), strings.Contains(t, "jsonl"), strings.Contains(t, "json-seq"),
		strings.Contains(t, "json-stream"), strings.Contains(t, "stream+json"):
		return BodyStream
	case t == formType:
		return BodyForm
	case strings.HasSuffix(t, "/json"), strings.HasSuffix(t, "+json"), strings.HasSuffix(t, "-json"):
		return BodyJSON
	case family == "multipart":
		return BodyParts
	case slices.Contains(otherFamilies, family), slices.Contains(otherTypes, name), strings.HasPrefix(name, "vnd.openxmlformats"),
		strings.HasPrefix(name, "grpc"):
		return BodyOther
	}
	return BodyUnsaid
}

var (
	otherFamilies = []string{"image", "video", "audio", "font", "model"}
	otherTypes    = []string{"zip", "gzip", "x-gzip", "x-tar", "pdf", "wasm", "protobuf", "x-protobuf", "vnd.google.protobuf", "msgpack",
		"x-msgpack", "cbor", "java-archive", "css"}
)

// Of is the kind of a body of a kind by its first bytes; ok is false where they are too few to tell. Programs send JSON as text
// and as forms, and forms as text.
func (k BodyKind) Of(head []byte) (kind BodyKind, ok bool) {
	text := unguarded(head)
	switch {
	case k == BodyOther || k == BodyParts:
		return k, true
	case len(text) == 0:
		return k, k != BodyUnsaid
	case k == BodyForm && !isBracket(text[0]), k == BodyJSON, k == BodyStream:
		return k, true
	case isBracket(text[0]):
		return bracketed(text)
	case bytes.HasPrefix(head, []byte("--")):
		return BodyParts, true
	case isForm(head):
		return BodyForm, true
	case isBinary(head):
		return BodyOther, true
	}
	return BodyStream, true
}

// bracketed is the kind of a text that begins with a bracket: JSON begins as an object or as a list of strings, objects or lists
// does.
func bracketed(text []byte) (kind BodyKind, ok bool) {
	second := blanks(text, 1)
	switch {
	case second == len(text):
		return BodyUnsaid, false
	case text[second] == '"', text[second] == text[0]+2, text[0] == '[' && isBracket(text[second]):
		return BodyJSON, true
	}
	return BodyStream, true
}

// guards stand before JSON that a page of another site must not be able to run, and before each text of a sequence; callback is
// what makes a call of it.
var (
	guards   = []string{"\xef\xbb\xbf", "\x1e", ")]}',", ")]}'", "for(;;);", "while(1);", "/**/"}
	callback = lazyregexp.New(`^[A-Za-z_$][A-Za-z0-9_$.]{0,63}\([ \t\r\n]*[{\[]`)
)

// unguarded is a text without what stands before its JSON.
func unguarded(b []byte) []byte {
	for again := true; again; {
		b, again = b[blanks(b, 0):], false
		for _, g := range guards {
			if rest, ok := bytes.CutPrefix(b, []byte(g)); ok {
				b, again = rest, true
			}
		}
	}
	if len(b) == 0 || isBracket(b[0]) { // most are, and a regular expression takes its time
		return b
	}
	if m := callback.FindIndex(b[:min(len(b), 100)]); m != nil {
		return b[m[1]-1:]
	}
	return b
}

func isBracket(c byte) bool { return c == '{' || c == '[' }

// isBinary tells whether a text has bytes at its beginning that no text has.
func isBinary(b []byte) bool {
	return bytes.ContainsFunc(b[:min(len(b), 64)], func(r rune) bool { return r < ' ' && !chars.IsBlank(byte(r)) && r != 0x1e && r != 0x1b && r != '\f' })
}

// isForm tells whether a text of no said type is a form: names and values, and nothing that a form escapes.
func isForm(b []byte) bool {
	name, _, ok := bytes.Cut(b[:min(len(b), 4*names.MaxName)], []byte("="))
	return ok && len(name) > 0 && len(b) <= maxForm && !bytes.ContainsAny(b, " \t\r\n\"'<>{}\\`\x00")
}

// BeginsJSON tells whether a text begins as an object or an array of JSON does.
func BeginsJSON(b []byte) bool {
	b = unguarded(b)
	return len(b) > 0 && isBracket(b[0])
}
