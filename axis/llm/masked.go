package llm

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// masked is the surface of a call in masked pieces, so that each text is masked, and its masks are counted, once.
type masked struct {
	call     Call
	members  map[string][]byte // of call.Surface
	messages [][]byte
}

func (c *Classifier) maskCall(call Call) masked {
	m := masked{call, make(map[string][]byte), make([][]byte, len(call.Messages.Value.Elems))}
	for _, member := range call.Surface {
		m.members[member.Key] = c.mask(member.Value.Append(nil))
	}
	for i, message := range call.Messages.Value.Elems {
		m.messages[i] = c.mask(message.Append(nil))
	}
	return m
}

// surface returns the matchable surface as one object, renumbered.
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
	return scrub.Renumber(append(out, '}'))
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
	return cas.Sum(scrub.Renumber(appendList(nil, opening)))
}

// turns returns one digest a message.
func (m masked) turns() []cas.Digest {
	digests := make([]cas.Digest, len(m.messages))
	for i, message := range m.messages {
		digests[i] = cas.Sum(scrub.Renumber(message))
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
