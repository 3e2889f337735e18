package page

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// said is what one call of a model says, in the form of the page.
type said struct {
	seq      uint64
	provider string
	system   string
	declared []Tool
	params   []Param
	messages []Message
	written  [][]byte // the JSON of each
	answer   *Message // nil for none
	stop     string
	chunks   []Chunk
	request  *Payload
	response *Payload
	trouble  string // why it cannot be read; "" where it can
}

// turns makes the documents of turns.
type turns struct {
	*taped

	lastMu sync.Mutex
	last   *said // guarded by lastMu: the turn that was read last
}

// document makes turn/SEQ.json: what is new against the turn before.
func (r *turns) document(seq uint64) (*Turn, error) {
	s, err := r.sum()
	if err != nil {
		return nil, err
	}
	in, row, before := s.turn(seq)
	if row == nil {
		return nil, fmt.Errorf("%w: record %d is no turn of a conversation", ErrNoDocument, seq)
	}
	was := new(said)
	if before != nil {
		if was, err = r.said(s, before.Seq); err != nil {
			before, was = nil, new(said)
		}
	}
	now, err := r.said(s, seq)
	if err != nil {
		return nil, err
	}
	t := &Turn{
		TurnRow: *row, Lane: in.Lane, Provider: now.provider, Params: now.params, Said: now.answer, Chunks: now.chunks, Stop: now.stop,
		Request: now.request, Response: now.response, Declared: now.declared, System: &now.system,
	}
	t.Error = cmp.Or(t.Error, now.trouble)
	if before != nil {
		t.Previous = &before.Seq
		t.Keep = kept(was, now)
		if now.system == was.system {
			t.System = nil
		}
		if t.Same = sameJSON(now.declared, was.declared); t.Same {
			t.Declared = []Tool{}
		}
	}
	t.Messages = now.messages[t.Keep:]
	return t, nil
}

// said reads a call, unless it was the last that was read.
func (r *turns) said(s *summary, seq uint64) (*said, error) {
	r.lastMu.Lock()
	last := r.last
	r.lastMu.Unlock()
	if last != nil && last.seq == seq {
		return last, nil
	}
	rec, err := r.record(s, seq)
	if err != nil {
		return nil, err
	}
	k, ok := rec.Kind.(*tape.LLMCall)
	if !ok {
		return nil, fmt.Errorf("%w: record %d is no call of a model", ErrNoDocument, seq)
	}
	out := r.read(k)
	out.seq = seq
	r.lastMu.Lock()
	r.last = out
	r.lastMu.Unlock()
	return out, nil
}

// kept is how many messages, from the first, are those of the turn before, its answer behind them. A history repeats an answer without
// what its model thought.
func kept(was, now *said) (n int) {
	for n < min(len(was.written), len(now.written)) && bytes.Equal(was.written[n], now.written[n]) {
		n++
	}
	if n == len(was.messages) && n < len(now.messages) && was.answer != nil && sameJSON(spoken(was.answer), spoken(&now.messages[n])) {
		n++
	}
	return n
}

func sameJSON(a, b any) bool { return bytes.Equal(jsonscan.MustMarshal(a), jsonscan.MustMarshal(b)) }

// spoken is a message without thoughts.
func spoken(m *Message) *Message {
	out := *m
	out.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool { return p.Type == "thinking" })
	return &out
}

// read reads what a call says. What cannot be read is left out, and said.
func (r *turns) read(k *tape.LLMCall) *said {
	out := &said{
		provider: strings.TrimSpace(k.Provider + " " + k.Endpoint), declared: []Tool{}, params: []Param{}, messages: []Message{}, chunks: []Chunk{},
		request: payloadOf(k.RequestPayload, k.RequestHeaders), response: payloadOf(k.Response, k.ResponseHeaders),
	}
	request, err := r.bytes(k.RequestPayload)
	response, errResponse := r.bytes(k.Response)
	if err = errors.Join(err, errResponse); err == nil {
		out.chunks = chunksOf(k, request, response)
		err = out.hear(r, k, request, response)
	}
	if err != nil && !errors.Is(err, llm.ErrNoTalk) {
		out.trouble = err.Error()
	}
	return out
}

func (r *turns) bytes(p *tape.Payload) ([]byte, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.Len > llm.MaxSaid:
		return nil, fmt.Errorf("it has %d bytes, and %d are read at most", p.Len, int64(llm.MaxSaid))
	case !p.Inline && r.store == nil:
		return nil, errors.New("the recording has no blobs")
	}
	return p.Bytes(r.store)
}

// hear takes a conversation, and the answer.
func (s *said) hear(r *turns, k *tape.LLMCall, request, response []byte) error {
	if k.URL == "" && k.Endpoint == "" {
		return s.testbench(r, k)
	}
	c, heard, err := llm.ReadConversation(k, request, response)
	if err != nil {
		return err
	}
	s.take(c)
	s.params = paramsOf(k, request)
	if a := heard.Answer; a != nil {
		s.answer, s.stop = answerOf(a), a.Stop
	}
	return nil
}

// testbench takes a call of a testbench, which no provider saw.
func (s *said) testbench(r *turns, k *tape.LLMCall) error {
	call, err := fixture.ReadCall(k, r.store)
	if err != nil {
		return err
	}
	if v, err := canonjson.Parse(call.Surface); err == nil {
		c, err := llm.NewConversation(&v)
		if err != nil {
			return err
		}
		s.take(c)
	}
	if call.Answer.Err != nil {
		return call.Answer.Err
	}
	a := call.Answer.Response
	s.stop, s.answer = a.StopReason, &Message{Role: llm.RoleAssistant, Parts: []Part{}}
	if a.Text != "" {
		s.answer.Parts = append(s.answer.Parts, textPart("text", a.Text))
	}
	for _, c := range a.ToolCalls {
		s.answer.Parts = append(s.answer.Parts, Part{Type: "call", ID: c.ID, Name: c.Name, Args: c.Arguments})
	}
	return nil
}

func (s *said) take(c *llm.Conversation) {
	s.system = textIn(&c.System)
	for i := range c.Tools.Elems {
		s.declared = append(s.declared, toolOf(&c.Tools.Elems[i]))
	}
	names := make(map[string]string) // of tools, by the ids of their calls
	for i := range c.Turns {
		for _, call := range c.Turns[i].Calls {
			names[call.ID] = call.Name
		}
		m := messageOf(&c.Turns[i], names)
		s.messages, s.written = append(s.messages, m), append(s.written, jsonscan.MustMarshal(&m))
	}
}

// paramsOf lists what of a request may change its answer beside what is said.
func paramsOf(k *tape.LLMCall, request []byte) []Param {
	out := []Param{}
	h := http.Header{}
	for _, f := range k.RequestHeaders {
		h.Add(f.Name, f.Value)
	}
	if body, err := exchange.Decode(h.Get("Content-Encoding"), request, llm.MaxSaid); err == nil {
		request = body
	}
	id, err := llm.NewClassifier(nil).Classify(&exchange.Request{Method: k.Method, URL: k.URL, Header: h, Body: request})
	if err != nil || id.Key.Kind != exchange.LLM {
		return out
	}
	v, err := canonjson.Parse(id.Params)
	if err != nil {
		return out
	}
	for _, m := range v.Members {
		out = append(out, Param{Name: m.Key, Value: m.Value.Append(nil)})
	}
	return out
}

// chunksOf are the chunks of an answer with what they add for a reader, which is known of one that is not compressed.
func chunksOf(k *tape.LLMCall, request, response []byte) []Chunk {
	out := make([]Chunk, 0, len(k.Stream))
	pieces := llm.Pieces(k, request, response)
	for _, c := range k.Stream {
		text := ""
		for len(pieces) > 0 && int64(pieces[0].End) <= c.Offset+c.Length {
			text += pieces[0].Text
			pieces = pieces[1:]
		}
		out = append(out, Chunk{At: c.TMS, Size: c.Length, Text: text})
	}
	return out
}

// payloadOf names a payload of an exchange with those headers; nil for none.
func payloadOf(p *tape.Payload, headers []tape.HeaderField) *Payload {
	if p == nil {
		return nil
	}
	out := &Payload{Size: p.Len}
	if p.Inline {
		text := strings.ToValidUTF8(p.Text, "\uFFFD")
		out.Text = &text
		return out
	}
	out.Digest = p.Hash.String()
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Content-Encoding") && plainID.MatchString(h.Value) {
			out.Digest += "." + h.Value
		}
	}
	return out
}

// maxText bounds a text in a turn, in bytes: all of it stands in the request or the answer.
const maxText = 256 << 10

func textPart(kind, text string) Part {
	p := Part{Type: kind, Text: strings.ToValidUTF8(text, "\uFFFD")}
	if n := len(p.Text); n > maxText {
		p.Text = strings.ToValidUTF8(p.Text[:maxText], "")
		p.More = int64(n - len(p.Text))
	}
	return p
}

// textIn is the text of a value: a string, or a list of which some elements are.
func textIn(v *canonjson.Value) string {
	if v.Kind != canonjson.Array {
		return v.Text()
	}
	var texts []string
	for i := range v.Elems {
		if v.Elems[i].Kind == canonjson.String {
			texts = append(texts, v.Elems[i].Str)
		} else {
			texts = append(texts, string(v.Elems[i].Append(nil)))
		}
	}
	return strings.Join(texts, "\n")
}

func toolOf(v *canonjson.Value) Tool {
	name, ok := v.Get("name")
	description, _ := v.Get("description")
	schema, has := v.Get("input_schema")
	t := Tool{Name: name.Text(), Description: description.Text(), Schema: json.RawMessage("null")}
	switch {
	case has:
		t.Schema = schema.Append(nil)
	case !ok: // one that the provider runs
		kind, _ := v.Get("type")
		t.Name, t.Schema = kind.Text(), v.Append(nil)
	}
	return t
}

// messageOf is one message of a history.
func messageOf(t *llm.Turn, names map[string]string) Message {
	m := Message{Role: t.Role, Parts: []Part{}}
	if t.Role == llm.RoleTool {
		result := textPart("result", strings.Join(t.Texts(), "\n"))
		result.ID, result.Name, result.Fail = t.Of, names[t.Of], t.Failed
		m.Parts = append(m.Parts, result)
	}
	for i := range t.Parts {
		if t.Role != llm.RoleTool || t.Parts[i].Kind != canonjson.String {
			m.Parts = append(m.Parts, partOf(&t.Parts[i]))
		}
	}
	for _, c := range t.Calls {
		m.Parts = append(m.Parts, Part{Type: "call", ID: c.ID, Name: c.Name, Args: c.Arguments.Append(nil)})
	}
	for _, extra := range t.Extra {
		if text := extra.Value.Text(); extra.Key == "reasoning_content" || extra.Key == "reasoning" {
			m.Parts = append(m.Parts, textPart("thinking", text))
		}
	}
	return m
}

// partOf is a part of a message that may be anything.
func partOf(v *canonjson.Value) Part {
	if v.Kind == canonjson.String {
		return textPart("text", v.Str)
	}
	if mime, data := imageIn(v); data != "" {
		return imagePart(mime, data)
	}
	if text, ok := v.Get("text"); ok && text.Kind == canonjson.String {
		return textPart("text", text.Str)
	}
	return textPart("other", string(v.Append(nil)))
}

// maxImage bounds an image that stands in a turn, in bytes of base64.
const maxImage = 64 << 10

// imagePart is an image. One that no page shows, or that is large, is named alone.
func imagePart(mime, data string) Part {
	p := Part{Type: "image", ID: cas.Sum([]byte(data)).String(), Mime: strings.ToValidUTF8(mime, "\uFFFD"), More: int64(len(data))}
	if len(data) > maxImage {
		return p
	}
	if b, err := base64.StdEncoding.DecodeString(data); err == nil {
		switch found := http.DetectContentType(b); found {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
			p.Mime, p.Text, p.More = found, data, 0
		}
	}
	return p
}

// imageIn returns an image in base64, in the forms of all providers; "" where a part is none, or names one elsewhere.
func imageIn(v *canonjson.Value) (mime, data string) {
	at := func(keys ...string) string {
		v, _ := v.Path(keys...)
		return v.Text()
	}
	for _, form := range [][2][]string{
		{{"source", "media_type"}, {"source", "data"}}, {{"inlineData", "mimeType"}, {"inlineData", "data"}},
		{{"inline_data", "mime_type"}, {"inline_data", "data"}}, {{"mimeType"}, {"data"}}, {{"image", "format"}, {"image", "source", "bytes"}},
	} {
		if mime, data = at(form[0]...), at(form[1]...); data != "" {
			return mime, data
		}
	}
	for _, url := range []string{at("image_url", "url"), at("image_url")} {
		if head, rest, ok := strings.Cut(url, ";base64,"); ok && strings.HasPrefix(head, "data:") {
			return strings.TrimPrefix(head, "data:"), rest
		}
	}
	return "", ""
}

// answerOf is what a model said.
func answerOf(a *llm.Answer) *Message {
	m := &Message{Role: llm.RoleAssistant, Parts: []Part{}}
	if a.Reasoning != "" {
		m.Parts = append(m.Parts, textPart("thinking", a.Reasoning))
	}
	if v, err := canonjson.Parse(a.Message.Content); err == nil {
		switch {
		case v.Kind == canonjson.Array:
			for i := range v.Elems {
				m.Parts = append(m.Parts, partOf(&v.Elems[i]))
			}
		case v.Text() != "":
			m.Parts = append(m.Parts, textPart("text", v.Text()))
		}
	}
	for _, c := range a.Message.ToolCalls {
		m.Parts = append(m.Parts, callOf(&c))
	}
	return m
}

// callOf is a call in the form that histories are read in, so that one repeats the other.
func callOf(c *sessionlog.ToolCall) Part {
	p := Part{Type: "call", ID: c.ID, Name: c.Name, Args: json.RawMessage("{}")}
	if v, err := canonjson.Parse(c.Arguments); err == nil {
		v = llm.ArgumentsOf(v)
		p.Args = v.Append(nil)
	}
	return p
}
