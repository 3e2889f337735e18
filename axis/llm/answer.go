package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
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

	// Memory for the event that is read: an answer may have very many.
	scan  jsonscan.Scanner
	event event
	delta anthropicDelta
}

// The kinds of blocks.
type blockKind uint8

const (
	textKind blockKind = iota
	thoughtKind
	callKind
	resultKind // what a tool gave
	refusalKind
	markKind  // where a cached prefix ends
	otherKind // as the provider has it: what it did itself, an image
)

// A block is one part of an answer. What a stream brings in pieces is put together in text: of a call its arguments.
type block struct {
	kind  blockKind
	key   blockKey
	text  saying
	marks [][]byte // citations of a text
	raw   []byte   // of other kinds, and of a thought that came whole
	sign  []byte   // JSON string: the signature of a thought
	done  bool     // parts stand for it
	parts []*block

	id, name string          // of a call; of a result those of its call
	free     bool            // the arguments of a call are no JSON, whatever they look like
	args     json.RawMessage // of a call, where they came as JSON; of a result what the tool gave
	failed   bool            // of a result
}

// answer reads an answer without its Content-Encoding; nil where nothing was said.
func (l *Listener) answer(p *protocol, body []byte) *Answer {
	a := new(answering)
	for text := range answers(body) {
		a.hear(p, text)
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
func (a *answering) hear(p *protocol, text []byte) {
	if p.unpack != nil {
		text = p.unpack(text)
	}
	if !isObject(text) {
		return // such as [DONE]
	}
	if !utf8.Valid(text) {
		text = []byte(strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	a.event = event{}
	a.scan.Reset(text)
	jsonscan.Into(&a.scan, &a.event)
	a.take(p.event, &a.event)
}

// An event is an answer or an event of a streamed one, in any provider's form.
type event struct {
	Raw      []byte   `json:"*"`
	Kind     string   `json:"type|event_type"`
	Index    blockKey `json:"index|contentBlockIndex"`
	ID       string   `json:"id|responseId|generation_id"`
	Model    string   `json:"model|modelVersion"`
	Status   string   `json:"status"`
	Text     []byte   `json:"text|completion|generation|outputText"`
	Thinking []byte   `json:"thinking"`
	Content  []byte   `json:"content"`
	Calls    []byte   `json:"tool_calls"`
	Choices  []byte   `json:"choices|candidates|results"`
	Message  []byte   `json:"message"`
	Output   []byte   `json:"output|outputs"`
	Response []byte   `json:"response"` // an answer in another object, and Ollama's text
	Item     []byte   `json:"item"`
	ItemID   string   `json:"item_id"`
	Begun    []byte   `json:"content_block|start"`
	Delta    []byte   `json:"delta"`
	Done     bool     `json:"done"`
	Stop     string   `json:"stop_reason|finish_reason|finishReason|stopReason|done_reason|completionReason|blockReason"`
	Feedback []byte   `json:"promptFeedback"`
	Failure  []byte   `json:"error"`
}

func eventOf(raw []byte) (e event) {
	fill(raw, &e)
	return e
}

// read reads an answer or an event that stands in another one.
func (a *answering) read(as func(*answering, *event), raw []byte) {
	e := eventOf(raw)
	a.take(as, &e)
}

func (a *answering) take(as func(*answering, *event), e *event) {
	a.out.ID, a.out.Model = cmp.Or(e.ID, a.out.ID), cmp.Or(e.Model, a.out.Model)
	a.failed = a.failed || !isNull(e.Failure) || e.Kind == "error"
	as(a, e)
}

// A Piece is what one event of a streamed answer adds for a reader: of what is said, thought, or wanted of a tool.
type Piece struct {
	End  int // where the event ends in the answer, in bytes
	Text string
}

// Pieces takes the answer of a call apart, whose payloads are as the tape keeps them. None of one that is compressed, or no conversation's.
func Pieces(call *tape.LLMCall, request, response []byte) (pieces []Piece) {
	p := protocolOf(call, request)
	if p == nil || encodingOf(call.ResponseHeaders) != "" {
		return nil
	}
	a, known, at := new(answering), make(map[*block]int), 0
	for text := range answers(response) {
		if i := bytes.Index(response[at:], text); i >= 0 { // where its data stands on several lines the one before ends it too
			at += i + len(text)
		}
		a.hear(p, text)
		piece := Piece{End: at}
		for _, b := range a.blocks {
			piece.Text += string(b.text[min(known[b], len(b.text)):])
			known[b] = len(b.text)
		}
		pieces = append(pieces, piece)
	}
	return pieces
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

// join adds what a stream brings of a part to the block that it calls by key, where that is of the same kind, else begins one. Calls
// without an index are told apart by their ids.
func (a *answering) join(key blockKey, c *block) {
	was := a.keyed[key]
	if was == nil || was.kind != c.kind || key == noIndex && c.id != "" && was.id != "" && c.id != was.id {
		c.key = key
		a.put(c)
		return
	}
	was.id, was.name = cmp.Or(c.id, was.id), was.name+c.name
	was.text = append(was.text, c.text...)
	was.args, was.sign = latest(was.args, c.args), latest(was.sign, c.sign)
}

// say adds a text to the last block of a kind; an empty one begins none.
func (a *answering) say(kind blockKind, text string) {
	if text == "" {
		return
	}
	if n := len(a.blocks); n == 0 || a.blocks[n-1].kind != kind {
		a.put(&block{kind: kind})
	}
	b := a.blocks[len(a.blocks)-1]
	b.text = append(b.text, text...)
}

// sayParts adds the texts and the thoughts of a content: a text, a part or a list of parts.
func (a *answering) sayParts(content []byte) {
	a.say(textKind, textIn(content))
	parts := elements(content)
	if isObject(content) {
		parts = [][]byte{content}
	}
	for _, part := range parts {
		if b := partOf(part); b.kind == textKind || b.kind == thoughtKind {
			a.say(b.kind, string(b.text))
		}
	}
}

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

// What a provider makes up for every answer: names of the answer, of its items and calls, and when it was given; and what
// says nothing that another answer could be held against: seals, echoes, padding, how long it took.
var (
	madeUpIDs = []string{
		"id", "call_id", "generation_id", "item_id", "message_id", "request_id", "response_id", "responseId", "tool_call_id",
		"tool_use_id", "toolUseId",
	}
	madeUpTimes = []string{"completed_at", "created", "created_at", "createTime"}
	meaningless = []string{
		"encrypted_content", "obfuscation", "signature", "system_fingerprint", "thoughtSignature", "thought_signature",
		"total_duration", "load_duration", "prompt_eval_duration", "eval_duration",
	}
	modelsOwnWords = []string{"input", "args", "arguments", "parameters", "schema"} // objects in which any name may stand
)

// answerSurface returns what Classifier.AnswerSurface masks.
func answerSurface(body []byte) []byte {
	numbers := make(pairs)
	var out []byte
	for text := range answers(body) {
		v, err := canonjson.Parse(text)
		switch {
		case err != nil:
			out = append(append(out, text...), '\n')
		case member(&v, "type") != "ping":
			numbers.answer(&v)
			out = append(v.Append(out), '\n')
		}
	}
	if out == nil {
		return body
	}
	return out
}

// answer takes out of a value of an answer what says nothing. It edits a tree in place: its parser's caller alone holds it.
func (n pairs) answer(v *canonjson.Value) {
	each(v, n.answer)
	drop(v, meaningless...)
	for i := range v.Members {
		switch m := &v.Members[i]; {
		case slices.Contains(madeUpIDs, m.Key) && m.Value.Kind == canonjson.String:
			n.number(v, m.Key)
		case slices.Contains(madeUpTimes, m.Key) && (m.Value.Kind == canonjson.Number || m.Value.Kind == canonjson.String):
			m.Value = canonjson.Value{Kind: canonjson.String, Str: "#time"}
		case !slices.Contains(modelsOwnWords, m.Key) || m.Value.Kind != canonjson.Object:
			n.answer(&m.Value)
		}
	}
}
