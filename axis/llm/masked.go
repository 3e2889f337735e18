package llm

import (
	"bytes"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// masked is the surface of a call in pieces that compare: renumbered over the whole, and masked one by one, so that each
// text is masked, and its masks are counted, once.
type masked struct {
	call     Call
	members  map[string][]byte // of call.Surface
	messages [][]byte
}

// maskCall takes a call apart. Placeholders are numbered through the members and then through the messages, so that the
// numbers of a conversation's beginning stay as it grows.
func (c *Classifier) maskCall(call Call) masked {
	var whole []byte // a piece a line: canonical JSON holds no newline
	for _, member := range call.Surface {
		whole = append(member.Value.Append(whole), '\n')
	}
	for _, message := range call.Messages.Value.Elems {
		whole = append(message.Append(whole), '\n')
	}
	pieces := bytes.Split(scrub.Renumber(whole), []byte{'\n'})
	for i, piece := range pieces {
		pieces[i] = c.mask(piece)
	}
	m := masked{call: call, members: make(map[string][]byte)}
	for i, member := range call.Surface {
		m.members[member.Key] = pieces[i]
	}
	m.messages = pieces[len(call.Surface) : len(pieces)-1] // nothing follows the last newline
	return m
}

// surface returns the matchable surface as one object.
func (m masked) surface() []byte {
	keys := []string{m.call.Messages.Key}
	for key := range m.members {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	out := []byte{'{'}
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(canonjson.AppendString(out, key), ':')
		if key == m.call.Messages.Key {
			out = appendList(out, m.messages)
		} else {
			out = append(out, m.members[key]...)
		}
	}
	return append(out, '}')
}

// opening returns the digest of the system text and the first message of the user.
func (m masked) opening() cas.Digest {
	opening := [][]byte{m.members[m.call.SystemKey]}
	for _, i := range m.call.SystemMessages {
		opening = append(opening, m.messages[i])
	}
	if m.call.User >= 0 {
		opening = append(opening, m.messages[m.call.User])
	}
	return cas.Sum(appendList(nil, opening))
}

// turns returns one digest a message.
func (m masked) turns() []cas.Digest {
	digests := make([]cas.Digest, len(m.messages))
	for i, message := range m.messages {
		digests[i] = cas.Sum(message)
	}
	return digests
}

// appendList appends a JSON array of texts.
func appendList(dst []byte, elems [][]byte) []byte {
	dst = append(dst, '[')
	for i, e := range elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, e...)
	}
	return append(dst, ']')
}
