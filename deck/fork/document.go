package fork

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
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
