package llm

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// masked is the surface of a call in pieces that compare: renumbered over the whole, and masked one by one, so that each
// text is masked, and its masks are counted, once. The pieces are parts of the surface.
type masked struct {
	call     call
	members  []piece // of call.surface, and one for the messages, sorted by key
	messages [][]byte
	size     int    // of all pieces, in bytes
	surface  []byte // the matchable surface as one object
}

// A piece is one member of a surface. The messages are one whose text stands in masked.messages.
type piece struct {
	key  string
	text []byte
}

// maskCall takes a call apart. Placeholders are numbered through the members and then through the messages, so that the
// numbers of a conversation's beginning stay as it grows. size is about that of the body, in bytes.
func (c *Classifier) maskCall(call call, size int) masked {
	b := buffers.Get().(*[]byte)
	whole := slices.Grow((*b)[:0], size+size/8) // a piece a line: canonical JSON holds no newline
	for i := range call.surface {
		whole = append(call.surface[i].Value.Append(whole), '\n')
	}
	for i := range call.messages.Value.Elems {
		whole = append(call.messages.Value.Elems[i].Append(whole), '\n')
	}
	if *b = whole; cap(whole) <= 1<<20 { // one that a large request made is let go
		defer buffers.Put(b) // join copies what is kept
	}
	m := masked{
		call: call, members: make([]piece, 0, len(call.surface)+1), messages: make([][]byte, 0, len(call.messages.Value.Elems)),
	}
	for rest, i := scrub.Renumber(whole), 0; len(rest) > 0; i++ {
		line, after, _ := bytes.Cut(rest, []byte{'\n'})
		line = c.masker.Mask(line)
		if i < len(call.surface) {
			m.members = append(m.members, piece{call.surface[i].Key, line})
		} else {
			m.messages = append(m.messages, line)
		}
		m.size += len(line)
		rest = after
	}
	if call.messages.Key != "" {
		m.members = append(m.members, piece{key: call.messages.Key})
	}
	slices.SortStableFunc(m.members, func(a, b piece) int { return strings.Compare(a.key, b.key) })
	m.join()
	return m
}

// join makes the surface, and the pieces parts of it.
func (m *masked) join() {
	out := make([]byte, 0, m.size+len(m.messages)+64*(len(m.members)+1))
	out = append(out, '{')
	for i := range m.members {
		p := &m.members[i]
		if out = appendKey(out, p.key); p.text != nil {
			out = appendPiece(out, &p.text)
			continue
		}
		out = append(out, '[')
		for i := range m.messages {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendPiece(out, &m.messages[i])
		}
		out = append(out, ']')
	}
	out = append(out, '}')
	m.surface = out
}

// appendPiece appends a piece, which becomes a part of out.
func appendPiece(out []byte, piece *[]byte) []byte {
	from := len(out)
	out = append(out, *piece...)
	*piece = out[from:len(out):len(out)]
	return out
}

// appendKey appends a key of an object, with the comma before it where it is not the first.
func appendKey(out []byte, key string) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(canonjson.AppendString(out, key), ':')
}

// talk is exchange.Identity.Talk.
func (m *masked) talk() exchange.Talk { return exchange.Talk{Opening: m.opening(), Turns: m.turns()} }

// opening returns the digest of the system text and the first message of the user; of all of the surface where there are
// no messages.
func (m *masked) opening() cas.Digest {
	if m.call.messages.Key == "" {
		return cas.Sum(m.surface)
	}
	out := []byte{'['}
	for _, p := range m.members {
		if p.key == m.call.systemKey {
			out = append(out, p.text...)
		}
	}
	for _, i := range m.call.systemMessages {
		out = append(append(out, ','), m.messages[i]...)
	}
	if m.call.user >= 0 {
		out = append(append(out, ','), m.messages[m.call.user]...)
	}
	return cas.Sum(append(out, ']'))
}

// turns returns one digest a message; without messages the surface is the one turn.
func (m *masked) turns() []cas.Digest {
	if m.call.messages.Key == "" {
		return []cas.Digest{cas.Sum(m.surface)}
	}
	digests := make([]cas.Digest, len(m.messages))
	for i, message := range m.messages {
		digests[i] = cas.Sum(message)
	}
	return digests
}

// buffers are memory that is used for a moment at every request.
var buffers = sync.Pool{New: func() any { return new([]byte) }}
