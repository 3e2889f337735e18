package llm

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// masked is the surface of a call in pieces that compare: renumbered over the whole, and masked one by one, so that each
// text is masked, and its masks are counted, once.
type masked struct {
	call     call
	members  []piece // of call.surface, sorted by key
	messages [][]byte
	size     int // of all pieces, in bytes
}

// A piece is one member of a surface.
type piece struct {
	key  string
	text []byte
}

// maskCall takes a call apart. Placeholders are numbered through the members and then through the messages, so that the
// numbers of a conversation's beginning stay as it grows. size is about that of the body, in bytes.
func (c *Classifier) maskCall(call call, size int) masked {
	whole := make([]byte, 0, size+size/8) // a piece a line: canonical JSON holds no newline
	for i := range call.surface {
		whole = append(call.surface[i].Value.Append(whole), '\n')
	}
	for i := range call.messages.Value.Elems {
		whole = append(call.messages.Value.Elems[i].Append(whole), '\n')
	}
	m := masked{call: call, messages: make([][]byte, 0, len(call.messages.Value.Elems))}
	for rest, i := scrub.Renumber(whole), 0; len(rest) > 0; i++ {
		line, after, _ := bytes.Cut(rest, []byte{'\n'})
		line = c.mask(line)
		if i < len(call.surface) {
			m.members = append(m.members, piece{call.surface[i].Key, line})
		} else {
			m.messages = append(m.messages, line)
		}
		m.size += len(line)
		rest = after
	}
	slices.SortStableFunc(m.members, func(a, b piece) int { return strings.Compare(a.key, b.key) })
	return m
}

// surface returns the matchable surface as one object.
func (m *masked) surface() []byte {
	out := make([]byte, 0, m.size+len(m.messages)+64*(len(m.members)+1))
	out = append(out, '{')
	pending := m.call.messages.Key // not written yet; "" for none
	for _, p := range m.members {
		if pending != "" && pending < p.key {
			out = m.appendMessages(out)
			pending = ""
		}
		out = append(appendKey(out, p.key), p.text...)
	}
	if pending != "" {
		out = m.appendMessages(out)
	}
	return append(out, '}')
}

func (m *masked) appendMessages(out []byte) []byte {
	return appendList(appendKey(out, m.call.messages.Key), m.messages)
}

// appendKey appends a key of an object, with the comma before it where it is not the first.
func appendKey(out []byte, key string) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(canonjson.AppendString(out, key), ':')
}

// opening returns the digest of the system text and the first message of the user; of all of the surface where there are
// no messages.
func (m *masked) opening(surface []byte) cas.Digest {
	if m.call.messages.Key == "" {
		return cas.Sum(surface)
	}
	opening := [][]byte{nil}
	for _, p := range m.members {
		if p.key == m.call.systemKey {
			opening[0] = p.text
		}
	}
	for _, i := range m.call.systemMessages {
		opening = append(opening, m.messages[i])
	}
	if m.call.user >= 0 {
		opening = append(opening, m.messages[m.call.user])
	}
	return cas.Sum(appendList(nil, opening))
}

// turns returns one digest a message; without messages the surface is the one turn.
func (m *masked) turns(surface []byte) []cas.Digest {
	if m.call.messages.Key == "" {
		return []cas.Digest{cas.Sum(surface)}
	}
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
