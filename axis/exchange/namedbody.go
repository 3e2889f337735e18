package exchange

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxHeld bounds, in bytes, how much of an answer waits until the names in it have been looked at.
const maxHeld = 1 << 20

// A learner looks at the names in one answer.
type learner struct {
	tap         *Tap
	contentType string
	kind        answerKind
}

// answerKind says how the secrets that names in an answer give away are found.
type answerKind uint8

const (
	unsaid   answerKind = iota // its first bytes tell whether it is JSON
	document                   // JSON or a form, that is looked at as a whole
	stream                     // lines or events, each of which is looked at as it comes
	other                      // not at all
)

// learner returns what looks at an answer of a type; nil where nothing is to be looked for.
func (t *Tap) learner(contentType string) *learner {
	if kind := kindOf(contentType); kind != other && !t.names.none() {
		return &learner{tap: t, contentType: contentType, kind: kind}
	}
	return nil
}

// kindOf is the kind of an answer by its Content-Type.
func kindOf(contentType string) answerKind {
	t, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	switch t = strings.TrimSpace(t); {
	case t == "text/event-stream", strings.Contains(t, "ndjson"), strings.Contains(t, "jsonl"), strings.Contains(t, "json-seq"),
		strings.Contains(t, "json-stream"), strings.Contains(t, "stream+json"):
		return stream
	case t == formType, strings.HasSuffix(t, "/json"), strings.HasSuffix(t, "+json"), strings.HasSuffix(t, "-json"):
		return document
	case t == "", t == "text/plain", t == "text/html", strings.HasSuffix(t, "/octet-stream"), strings.HasSuffix(t, "javascript"):
		return unsaid
	}
	return other
}

// reads reports whether an answer that begins with head is looked at. One of whose type nothing is said is JSON where it begins
// as an object or as a list of strings, objects or lists does.
func (l *learner) reads(head []byte) bool {
	if l == nil || l.kind != unsaid {
		return l != nil && l.kind != other
	}
	return l.decide(head) && l.kind != other
}

// decide settles the kind by the first bytes of an answer; false where they are too few.
func (l *learner) decide(head []byte) bool {
	if l.kind != unsaid {
		return true
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(head) == 0 {
		return false
	}
	second := blanks(head, 1)
	switch {
	case head[0] != '{' && head[0] != '[':
		l.kind = other
	case second == len(head):
		return false
	case head[second] == '"', head[second] == head[0]+2, head[0] == '[' && strings.IndexByte(`{[`, head[second]) >= 0:
		l.kind = document
	default:
		l.kind = other
	}
	return true
}

// whole takes a whole answer, or what was held of one. It reports whether something became known that was not, and where those
// values stand that are too many to be known.
func (l *learner) whole(b []byte) (fresh bool, over []scrub.Place) {
	if l.kind == stream {
		return l.lines(b, false)
	}
	return learnAll(l.tap.scrubber, l.tap.names.find(l.contentType, b))
}

// lines is whole for events or lines of JSON, or for a piece of them.
func (l *learner) lines(b []byte, piece bool) (fresh bool, over []scrub.Place) {
	look := &look{names: l.tap.names, piece: piece}
	look.json(b)
	return learnAll(l.tap.scrubber, look.found)
}

// namedBody is a plainBody whose names are looked at before it is scrubbed: a document waits in memory, up to maxHeld, so that a
// value is hidden that stands before its name too; of a stream, each chunk is looked at for itself. The program has its bytes
// at once in either case.
type namedBody struct {
	*plainBody
	learn  *learner
	held   []byte
	heldAt chunkMap
}

func (b *namedBody) chunk(c tape.Chunk, p []byte) error {
	switch b.learn.kind {
	case stream:
		_, over := b.learn.lines(p, true)
		b.hide(over)
		return b.plainBody.chunk(c, p)
	case other:
		return b.plainBody.chunk(c, p)
	}
	next := b.learn.kind == document && endsLine(b.held) && beginsJSON(p) // lines of JSON that are not said to be
	b.heldAt.add(c, len(p))
	b.held = append(b.held, p...)
	b.learn.decide(b.held)
	switch {
	case next, len(b.held) > maxHeld:
		return b.release(stream)
	case b.learn.kind == other:
		return b.release(other)
	}
	return nil
}

// endsLine tells whether a text is lines of JSON so far.
func endsLine(b []byte) bool {
	return bytes.HasSuffix(b, []byte("}\n")) || bytes.HasSuffix(b, []byte("}\r\n"))
}

// release passes on what waits; what comes after it is of a kind.
func (b *namedBody) release(kind answerKind) error {
	if b.learn.kind == document {
		_, over := b.learn.whole(b.held)
		b.hide(over)
	}
	b.learn.kind = kind
	held, chunks := b.held, b.heldAt.chunks
	b.held, b.heldAt = nil, chunkMap{}
	for _, c := range chunks {
		if err := b.plainBody.chunk(c, held[c.Offset:c.Offset+c.Length]); err != nil {
			return err
		}
	}
	return nil
}

// hide hides places of what is passed on next.
func (b *namedBody) hide(places []scrub.Place) {
	for i := range places {
		places[i].Start += b.at.total
		places[i].End += b.at.total
	}
	b.clean.HideAt(places)
}

func (b *namedBody) finish(cut bool) (answer, error) {
	if err := b.release(other); err != nil {
		return answer{lost: err.Error()}, err
	}
	return b.plainBody.finish(cut)
}
