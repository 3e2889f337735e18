package exchange

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxHeld bounds, in bytes, how much of an answer waits until the names in it have been looked at.
const maxHeld = 1 << 20

// A learner looks at the names in one answer.
type learner struct {
	tap         *Tap
	contentType string
	kind        scrub.BodyKind
}

// learner returns what looks at an answer of a type; nil where nothing is to be looked for. An answer in parts is looked at as it
// comes: its fields are no form's.
func (t *Tap) learner(contentType string) *learner {
	kind := scrub.BodyKindOf(contentType)
	switch {
	case kind == scrub.BodyOther || !t.scrubber.NamesSay():
		return nil
	case kind == scrub.BodyParts:
		kind = scrub.BodyStream
	}
	return &learner{tap: t, contentType: contentType, kind: kind}
}

// reads reports whether an answer that begins with head is looked at.
func (l *learner) reads(head []byte) bool {
	if l == nil {
		return false
	}
	l.decide(head)
	return l.kind != scrub.BodyOther
}

// decide settles the kind by the first bytes of an answer, where they are enough.
func (l *learner) decide(head []byte) {
	if l.kind != scrub.BodyUnsaid {
		return
	}
	if kind, ok := l.kind.Of(head); ok && kind == scrub.BodyParts {
		l.kind = scrub.BodyStream
	} else if ok {
		l.kind = kind
	}
}

// whole takes a whole answer, or what was held of one: a piece where it is of a stream that goes on. It reports whether something
// became known that was not, and where those values stand that are too many to be known.
func (l *learner) whole(b []byte, piece bool) (fresh bool, over []scrub.Place) {
	if l.kind == scrub.BodyStream {
		return l.lines(b, piece)
	}
	return l.tap.scrubber.LearnAll(l.tap.scrubber.NamedInAnswer(l.contentType, b))
}

// lines is whole for events or lines of JSON, or for a piece of them.
func (l *learner) lines(b []byte, piece bool) (fresh bool, over []scrub.Place) {
	return l.tap.scrubber.LearnAll(l.tap.scrubber.NamedInLines(b, piece))
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
	case scrub.BodyStream:
		_, over := b.learn.lines(p, true)
		b.hide(over)
		return b.plainBody.chunk(c, p)
	case scrub.BodyOther:
		return b.plainBody.chunk(c, p)
	}
	next := b.learn.kind == scrub.BodyJSON && endsLine(b.held) && scrub.BeginsJSON(p) // lines of JSON that are not said to be
	b.heldAt.add(c, len(p))
	b.held = append(b.held, p...)
	b.learn.decide(b.held)
	switch {
	case next, len(b.held) > maxHeld, b.learn.kind == scrub.BodyStream:
		return b.release(scrub.BodyStream)
	case b.learn.kind == scrub.BodyOther:
		return b.release(scrub.BodyOther)
	}
	return nil
}

// endsLine tells whether a text is lines of JSON so far.
func endsLine(b []byte) bool {
	return bytes.HasSuffix(b, []byte("}\n")) || bytes.HasSuffix(b, []byte("}\r\n"))
}

// release passes on what waits; what comes after it is of a kind.
func (b *namedBody) release(kind scrub.BodyKind) error {
	if b.learn.kind != scrub.BodyOther && len(b.held) > 0 {
		_, over := b.learn.whole(b.held, kind == scrub.BodyStream)
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
	if err := b.release(scrub.BodyOther); err != nil {
		return answer{lost: err.Error()}, err
	}
	return b.plainBody.finish(cut)
}
