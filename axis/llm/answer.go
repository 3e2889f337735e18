package llm

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// answering is the reading of one answer: a whole one or the events of a stream.
type answering struct {
	out    Answer
	blocks []*block
	keyed  map[blockKey]*block // the last one that a stream calls by a key
	failed bool                // it ended with an error
}

// The kinds of blocks.
type blockKind uint8

const (
	textKind blockKind = iota
	thoughtKind
	callKind
	refusalKind
	otherKind // as the provider has it: what it did itself, a refusal, an image
)

// A block is one part of an answer. What a stream brings in pieces is put together in text: of a call its arguments.
type block struct {
	kind  blockKind
	key   blockKey
	text  saying
	marks [][]byte // citations of a text
	raw   []byte   // of other kinds, and of a thought that came whole
	sign  []byte   // JSON string: the signature of a thought
	id    string   // of a call
	done  bool     // parts stand for it
	parts []*block
	name  string          // of a call
	free  bool            // the arguments of a call are no JSON, whatever they look like
	args  json.RawMessage // of a call, where they came as JSON
}

// answer reads an answer without its Content-Encoding; nil where nothing was said.
func (l *Listener) answer(p *protocol, body []byte) *Answer {
	a, s := new(answering), new(jsonscan.Scanner)
	for text := range answers(body) {
		a.hear(p, s, text)
	}
	if a.failed {
		a.out.Whole = false
	}
	a.finish()
	if !a.out.Whole && a.empty() {
		return nil
	}
	l.answered(a.out.Message.ToolCalls)
	return &a.out
}

// hear reads one text of an answer.
func (a *answering) hear(p *protocol, s *jsonscan.Scanner, text []byte) {
	if p.unpack != nil {
		text = p.unpack(text)
	}
	if len(text) == 0 || text[0] != '{' {
		return // such as [DONE]
	}
	if !utf8.Valid(text) {
		text = []byte(strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	s.Reset(text)
	p.event(a, s)
}

// A Piece is what one event of a streamed answer adds for a reader: of what is said, thought, or wanted of a tool.
type Piece struct {
	End  int // where the event ends in the answer, in bytes
	Text string
}

// Pieces takes the answer of a call apart, whose payloads are as the tape keeps them. None of one that is compressed, or no conversation's.
func Pieces(call *tape.LLMCall, request, response []byte) (pieces []Piece) {
	p := protocolOf(call, request)
	if p == nil || headerOf(call.ResponseHeaders, "Content-Encoding") != "" {
		return nil
	}
	a, s, known, at := new(answering), new(jsonscan.Scanner), make(map[*block]int), 0
	for text := range answers(response) {
		if i := bytes.Index(response[at:], text); i >= 0 { // where its data stands on several lines the one before ends it too
			at += i + len(text)
		}
		a.hear(p, s, text)
		piece := Piece{End: at}
		for _, b := range a.blocks {
			piece.Text += string(b.text[min(known[b], len(b.text)):])
			known[b] = len(b.text)
		}
		pieces = append(pieces, piece)
	}
	return pieces
}

// add begins a block.
func (a *answering) add(kind blockKind, key blockKey) *block {
	b := &block{kind: kind, key: key}
	a.put(b)
	return b
}

// put adds a block.
func (a *answering) put(b *block) {
	a.blocks = append(a.blocks, b)
	if b.key == "" {
		return
	}
	if a.keyed == nil {
		a.keyed = make(map[blockKey]*block)
	}
	a.keyed[b.key] = b
}

// block returns the last block that a stream calls by key, nil for none.
func (a *answering) block(key blockKey) *block { return a.keyed[key] }

// last returns the last block where it is of a kind, else a new one.
func (a *answering) last(kind blockKind) *block {
	if n := len(a.blocks); n > 0 && a.blocks[n-1].kind == kind {
		return a.blocks[n-1]
	}
	return a.add(kind, "")
}

// part returns the block that a stream calls by key where it is of a kind, else a new one.
func (a *answering) part(kind blockKind, key blockKey) *block {
	if b := a.block(key); b != nil && b.kind == kind {
		return b
	}
	return a.add(kind, key)
}

// say adds a text to the last block of a kind; an empty one begins none.
func (a *answering) say(kind blockKind, text string) {
	if text != "" {
		b := a.last(kind)
		b.text = append(b.text, text...)
	}
}

// other adds a block as the provider has it.
func (a *answering) other(raw []byte) { a.add(otherKind, "").raw = raw }

// stop notes why the answer ended, which says that it did.
func (a *answering) stop(reason string) {
	if reason != "" {
		a.out.Stop, a.out.Whole = reason, true
	}
}

// flat returns the blocks, with those that an item was done with in its place.
func (a *answering) flat() []*block {
	var out []*block
	for _, b := range a.blocks {
		if b.done {
			out = append(out, b.parts...)
		} else {
			out = append(out, b)
		}
	}
	return out
}

// empty reports whether nothing was said.
func (a *answering) empty() bool {
	for _, b := range a.flat() {
		if b.kind == callKind || b.kind == otherKind || len(b.text) > 0 {
			return false
		}
	}
	return true
}

// finish makes the message of the blocks.
func (a *answering) finish() {
	var content []*block
	var thoughts []string
	for _, b := range a.flat() {
		switch b.kind {
		case callKind:
			a.out.Message.ToolCalls = append(a.out.Message.ToolCalls, b.call())
		case thoughtKind:
			if len(b.text) > 0 {
				thoughts = append(thoughts, string(b.text))
			}
			if raw := b.json(); raw != nil {
				a.out.Native = append(a.out.Native, raw)
			}
		default:
			content = append(content, b)
		}
	}
	a.out.Reasoning = strings.Join(thoughts, "\n")
	a.out.Message.Role = RoleAssistant
	a.out.Message.Content = contentOf(content)
}

func (b *block) call() sessionlog.ToolCall {
	c := sessionlog.ToolCall{ID: b.id, Name: b.name, Arguments: b.args}
	switch {
	case b.free:
		c.Arguments = jsonText(string(b.text))
	case len(b.text) > 0 || c.Arguments == nil:
		c.Arguments = argumentsOf(b.text)
	}
	return c
}

// contentOf returns the content of a message.
func contentOf(blocks []*block) json.RawMessage {
	switch {
	case len(blocks) == 0:
		return noText
	case len(blocks) == 1 && blocks[0].kind == textKind && len(blocks[0].marks) == 0:
		return jsonText(string(blocks[0].text))
	}
	out := []byte{'['}
	for _, b := range blocks {
		one := b.json()
		if len(one) > 0 && len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, one...)
	}
	return append(out, ']')
}

// json returns a block as one JSON value in one line; nil for a thought that came to nothing.
func (b *block) json() []byte {
	switch b.kind {
	case otherKind:
		return oneLine(b.whole())
	case thoughtKind:
		return b.thought()
	case refusalKind:
		return append(append([]byte(`{"type":"refusal","refusal":`), jsonText(string(b.text))...), '}')
	}
	out := append([]byte(`{"type":"text","text":`), jsonText(string(b.text))...)
	for i, mark := range b.marks {
		if i == 0 {
			out = append(out, `,"citations":[`...)
		} else {
			out = append(out, ',')
		}
		out = append(out, oneLine(mark)...)
	}
	if len(b.marks) > 0 {
		out = append(out, ']')
	}
	return append(out, '}')
}

// whole returns a block with the input that a stream brought behind it.
func (b *block) whole() []byte {
	if len(b.text) == 0 {
		return b.raw
	}
	var f folding
	members(b.raw, func(key, value []byte) {
		if string(key) != "input" {
			f.add(string(key), value)
		}
	})
	f.add("input", argumentsOf(b.text))
	return f.end()
}

// thought returns a block of reasoning as the provider has it, or in the form of Anthropic's where it came in pieces.
func (b *block) thought() []byte {
	if b.raw != nil {
		return oneLine(b.raw)
	}
	if len(b.sign) == 0 {
		return nil // the text alone tells as much
	}
	var f folding
	f.add("type", []byte(`"thinking"`))
	f.add("thinking", jsonText(string(b.text)))
	f.add("signature", b.sign)
	return f.end()
}
