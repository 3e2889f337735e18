package fork

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Document is what can be changed at a point.
type Document struct {
	Answer Answer            `json:"answer"`
	System string            `json:"system"`
	Tool   map[string]string `json:"tool"` // what tools gave, by the ids of their calls
}

// An Answer is one of a model.
type Answer struct {
	Text      string     `json:"text"`
	ToolCalls []ToolCall `json:"tool_calls"`
}

// A ToolCall is one that a model asks for. Arguments is an object, or a string where the model wrote none.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// DocumentOf reads the recorded call at a point, whose payloads are in store.
func DocumentOf(call *tape.LLMCall, store cas.Store) (*Document, error) {
	request, response, err := account.Bodies(call, store)
	if err != nil {
		return nil, err
	}
	said, err := llm.ReadCall(call, request, response)
	if err != nil {
		return nil, err
	}
	d := &Document{System: said.System, Tool: make(map[string]string), Answer: Answer{ToolCalls: []ToolCall{}}}
	for i := range said.New {
		for _, r := range said.New[i].Results {
			d.Tool[r.CallID] = plain(r.Output)
		}
	}
	if a := said.Answer; a != nil {
		d.Answer.Text = account.TextOf(a.Message.Content)
		for _, c := range a.Message.ToolCalls {
			d.Answer.ToolCalls = append(d.Answer.ToolCalls, ToolCall{c.ID, c.Name, c.Arguments})
		}
	}
	return d, nil
}

// plain is a JSON string as its text, and any other value as it stands.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// MaxDocument bounds an edited document, in bytes.
const MaxDocument = 64 << 20

// Edited reads an edited document: JSON, in which what is left out stays as it is in d, or any other text, which is the answer's.
func (d *Document) Edited(b []byte) (*Document, error) {
	if len(b) > MaxDocument {
		return nil, fmt.Errorf("%d bytes, want %d at most", len(b), MaxDocument)
	}
	if err := jsonscan.ValidUTF8(b); err != nil {
		return nil, err // a model says no other text
	}
	e := d.clone()
	if trimmed := bytes.TrimSpace(b); len(trimmed) == 0 || trimmed[0] != '{' {
		e.Answer.Text = strings.TrimSuffix(string(b), "\n")
		return e, nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(e); err != nil {
		return nil, fmt.Errorf("want JSON with answer, system and tool: %w", err)
	}
	if err := e.Answer.check(); err != nil {
		return nil, err
	}
	for id := range e.Tool {
		if _, ok := d.Tool[id]; !ok {
			return nil, d.noTool(id)
		}
	}
	return e, nil
}

func (d *Document) clone() *Document {
	e := *d
	e.Tool, e.Answer.ToolCalls = maps.Clone(d.Tool), slices.Clone(d.Answer.ToolCalls)
	for i := range e.Answer.ToolCalls { // JSON is read into the bytes that are there
		e.Answer.ToolCalls[i].Arguments = slices.Clone(e.Answer.ToolCalls[i].Arguments)
	}
	return &e
}

func (d *Document) noTool(id string) error {
	if len(d.Tool) == 0 {
		return fmt.Errorf("no tool has given anything by then, %s neither", id)
	}
	return fmt.Errorf("no call of a tool before has the id %s; there are %s", id, strings.Join(slices.Sorted(maps.Keys(d.Tool)), ", "))
}

// paths says what Set takes.
const paths = "answer, answer.tool_calls, answer.tool_calls.I.arguments, answer.tool_calls.I.arguments.KEY, answer.tool_calls.I.name, system, tool.ID"

// Set sets what a path names, of PATH=VALUE.
func (d *Document) Set(assignment string) error {
	path, value, ok := strings.Cut(assignment, "=")
	if !ok {
		return fmt.Errorf("--set %q: want PATH=VALUE; PATH is one of %s", assignment, paths)
	}
	if err := d.set(path, value); err != nil {
		return fmt.Errorf("--set %s: %w", path, err)
	}
	return nil
}

// check refuses an answer that no model gives.
func (a *Answer) check() error {
	for i, c := range a.ToolCalls {
		switch {
		case c.Name == "":
			return fmt.Errorf(`tool call %d has no name: want {"name": "TOOL", "arguments": {…}}`, i)
		case len(c.Arguments) == 0:
			a.ToolCalls[i].Arguments = json.RawMessage("{}")
		case c.Arguments[0] != '{' && c.Arguments[0] != '"':
			return fmt.Errorf("the arguments of tool call %d: want a JSON object, have %s", i, c.Arguments)
		}
	}
	return nil
}

func (d *Document) set(path, value string) error {
	id, isTool := strings.CutPrefix(path, "tool.")
	call, isCall := strings.CutPrefix(path, "answer.tool_calls.")
	switch {
	case path == "answer", path == "answer.text":
		d.Answer.Text = value
	case path == "answer.tool_calls":
		calls := []ToolCall{}
		if err := json.Unmarshal([]byte(value), &calls); err != nil {
			return fmt.Errorf(`want a JSON list of {"name": "TOOL", "arguments": {…}}: %w`, err)
		}
		d.Answer.ToolCalls = calls
		return d.Answer.check()
	case path == "system":
		d.System = value
	case isTool:
		if _, ok := d.Tool[id]; !ok {
			return d.noTool(id)
		}
		d.Tool[id] = value
	case isCall:
		return d.setCall(call, value)
	default:
		return fmt.Errorf("there is no such place; there are %s", paths)
	}
	return nil
}

// setCall sets a part of a call of the answer, of I.name or I.arguments or I.arguments.KEY.
func (d *Document) setCall(path, value string) error {
	number, rest, _ := strings.Cut(path, ".")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(d.Answer.ToolCalls) {
		return fmt.Errorf("the recorded answer has %d tool calls, counted from 0", len(d.Answer.ToolCalls))
	}
	c := &d.Answer.ToolCalls[i]
	key, isKey := strings.CutPrefix(rest, "arguments.")
	switch {
	case rest == "name":
		c.Name = value
	case rest == "arguments":
		now := bytes.TrimSpace([]byte(value))
		if !json.Valid(now) || now[0] != '{' && (now[0] != '"' || !bytes.HasPrefix(c.Arguments, now[:1])) {
			return fmt.Errorf("want a JSON object, have %q", value)
		}
		c.Arguments = now
	case isKey:
		args := make(map[string]json.RawMessage)
		if err := json.Unmarshal(c.Arguments, &args); err != nil {
			return fmt.Errorf("the recorded arguments are no object: %w", err)
		}
		if _, known := args[key]; !known && strings.Contains(key, ".") {
			return fmt.Errorf("there is no argument %s, and none within another one can be set: set all of arguments as JSON", key)
		}
		args[key] = valueOf(value, args[key])
		c.Arguments, err = json.Marshal(args)
	default:
		return fmt.Errorf("there is no such place; there are %s", paths)
	}
	return err
}

// valueOf is a text as the JSON value that it is, and as a string where it is none or a string was there.
func valueOf(text string, was json.RawMessage) json.RawMessage {
	if json.Valid([]byte(text)) && (len(was) == 0 || was[0] != '"') {
		return json.RawMessage(text)
	}
	b, _ := json.Marshal(text) // a string always has a JSON form
	return b
}

// Changes are what a fork changes. The zero Changes change nothing.
type Changes struct {
	Model  string            `json:"model,omitempty"`
	Answer *Answer           `json:"answer,omitempty"` // given in the place of the model's, at the point; nil asks the model
	System *string           `json:"system,omitempty"`
	Tool   map[string]string `json:"tool,omitempty"`
}

// Changes are what differs in an edited document.
func (d *Document) Changes(edited *Document) *Changes {
	c := new(Changes)
	if !sameAnswer(&d.Answer, &edited.Answer) {
		c.Answer = &edited.Answer
	}
	if d.System != edited.System {
		c.System = &edited.System
	}
	for id, now := range edited.Tool {
		if d.Tool[id] != now {
			if c.Tool == nil {
				c.Tool = make(map[string]string)
			}
			c.Tool[id] = now
		}
	}
	return c
}

// sameAnswer reports whether two answers say the same, however their arguments are written.
func sameAnswer(a, b *Answer) bool {
	if a.Text != b.Text || len(a.ToolCalls) != len(b.ToolCalls) {
		return false
	}
	for i, x := range a.ToolCalls {
		y := b.ToolCalls[i]
		if x.ID != y.ID || x.Name != y.Name || !bytes.Equal(account.Canonical(x.Arguments), account.Canonical(y.Arguments)) {
			return false
		}
	}
	return true
}

// NeedLive says what of the changes stands in requests to a model alone; "" for nothing.
func (c *Changes) NeedLive() string {
	switch {
	case c.Model != "":
		return "--model"
	case c.System != nil:
		return "a changed system prompt"
	case len(c.Tool) > 0:
		return "a changed result of a tool"
	}
	return ""
}

// Words say for people what is changed.
func (c *Changes) Words() (words []string) {
	if c.Answer != nil {
		words = append(words, "its answer")
		switch n := len(c.Answer.ToolCalls); {
		case n == 1:
			words[0] += " with its tool call"
		case n > 1:
			words[0] += fmt.Sprintf(" with its %d tool calls", n)
		}
	}
	if c.Model != "" {
		words = append(words, "the model: "+c.Model)
	}
	if c.System != nil {
		words = append(words, "the system prompt")
	}
	for _, id := range slices.Sorted(maps.Keys(c.Tool)) {
		words = append(words, "the result of "+id)
	}
	return words
}

// Of makes of a request what leaves in its place (network.Fork.Change). Text is changed in the conversation that is forked alone, the model
// in each call.
func (c *Changes) Of(asked *network.Asked) (*exchange.Request, []tape.Field, error) {
	if asked.Key.Kind != exchange.LLM {
		return asked.Request, nil, nil
	}
	change := llm.Change{Model: c.Model}
	if asked.Own {
		change.System, change.Results = c.System, c.Tool
	}
	out, changed, err := change.Apply(asked.Request, asked.Identity)
	switch {
	case errors.Is(err, llm.ErrNoCall):
		return asked.Request, nil, nil
	case err != nil || len(changed) == 0:
		return out, nil, err
	}
	return out, tape.SentFields(&tape.Sent{Model: c.Model, Changed: changed}), nil
}

// Made is the changed answer to a request as its provider writes it (network.Fork.Answer). usage is what the recorded one used.
func (c *Changes) Made(asked *network.Asked, usage llm.Usage) (*network.Made, error) {
	call := &tape.LLMCall{Provider: asked.Key.Provider, Endpoint: asked.Key.Endpoint, Model: asked.Key.Model}
	call.URL = asked.URL
	body, err := exchange.Decode(asked.Header.Get("Content-Encoding"), asked.Body, llm.MaxSaid)
	if err != nil {
		return nil, err
	}
	q, err := llm.ReadQuestion(call, body)
	if err != nil {
		return nil, err
	}
	said := &llm.Completion{Text: c.Answer.Text, InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens}
	for _, t := range c.Answer.ToolCalls {
		said.Calls = append(said.Calls, llm.CompletionCall{ID: t.ID, Name: t.Name, Arguments: t.Arguments})
	}
	m := &network.Made{Header: make(http.Header)}
	r := &llm.Reply{Completion: said, Question: q, IDs: llm.NewIDs(0)}
	llm.Header(m.Header, q.Provider, r.IDs)
	if !q.Stream {
		m.Header.Set("Content-Type", "application/json")
		m.Chunks = [][]byte{r.Whole()}
		return m, nil
	}
	r.Frames(func(contentType string) { m.Header.Set("Content-Type", contentType) }, func(frame []byte) {
		m.Chunks = append(m.Chunks, slices.Clone(frame))
	})
	return m, nil
}
