package exchange

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A messageKey is what must be equal for a message of the program to be a recorded one.
type messageKey struct {
	opcode string // turnOpcode of what begins a turn
	kept   bool   // else it was too long to be kept
	digest cas.Digest
}

// endOpcode stands in the key of the end of a socket, which no message is.
const endOpcode = "end"

// turnOpcode stands in the key of a message that begins a turn, whose digest is that of what is asked.
const turnOpcode = "turn"

// A saying is a message of the program as it compares.
type saying struct {
	key messageKey
	ids []string // those that masks took out of it, in order
}

// sentMethod stands for a method where a message is classified: it is none of HTTP's.
const sentMethod = "SEND"

// sayingOf is how a message compares that the program sent to a URL, scrubbed, and what of it does.
func sayingOf(c Classifier, url, opcode string, b []byte) (s saying, surface []byte) {
	s.key = messageKey{opcode: opcode, kept: true, digest: cas.Sum(b)}
	r := &Request{Method: sentMethod, URL: url, Body: b}
	id, err := c.Classify(r)
	if err != nil {
		return s, b
	}
	s.key.digest = id.Key.Request
	if bytes.IndexByte(id.Surface, '<') >= 0 { // where a mask took something out, its name stands
		s.ids = idsOf(c, &Request{Method: sentMethod, Body: b})
	}
	return s, id.Surface
}

// idsOf are the ids that masks take out of a request, in order.
func idsOf(c Classifier, r *Request) (ids []string) {
	for _, id := range c.Traits(r).IDs {
		ids = append(ids, id.Text)
	}
	return ids
}

// turnSaying is how the beginning of a turn compares.
func turnSaying(k Key) *saying {
	return &saying{key: messageKey{opcode: turnOpcode, kept: true, digest: k.Request}}
}

// said is how a message compares that the program sent on a recorded socket. It is found out once.
func (b *Book) said(s *RecordedSocket, e *socketEntry) *saying {
	e.once.Do(func() {
		switch {
		case e.isEnd():
			e.said = &saying{key: messageKey{opcode: endOpcode}}
			return
		case e.turn != nil:
			e.said = turnSaying(e.turn.Key)
			return
		case e.message.Payload != nil:
			if text, err := b.whole(e.message.Payload); err == nil {
				said, _ := sayingOf(b.classifier, s.url, e.message.Opcode, text)
				e.said = &said
				return
			}
		}
		e.said = &saying{key: messageKey{opcode: e.message.Opcode}}
	})
	return e.said
}

// asks reports whether an entry is a message of the program, or begins a turn of its.
func (e *socketEntry) asks() bool { return e.from == FromProgram && !e.isEnd() }
