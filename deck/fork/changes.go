package fork

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
