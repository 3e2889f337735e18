package scrub

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

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
