package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// An Access is where a provider is asked for an answer, and how.
type Access struct {
	Provider, Endpoint string // as a record names them
	KeyName, BaseName  string // of the environment
	Base               string // where BaseName says nothing; no slash at its end

	path      func(model string) string
	authorize func(h http.Header, key string) // key may be ""
	write     func(q *Asking) (wireObject, error)
}

// An Asking is a conversation on its way to a provider.
type Asking struct {
	*Conversation
	Model string
}

// openAINames are the names of OpenAI's models, but for those that begin with gpt or chatgpt.
var openAINames = lazyregexp.New(`^o[1-9]\d*($|-)`)

// AccessOf returns who is asked for a model, and its name there; nil where that is not known. OpenAI's is what local servers speak.
func AccessOf(model string) (access *Access, name string) {
	if before, after, ok := strings.Cut(model, "/"); ok {
		switch before {
		case anthropic:
			return &anthropicAccess, after
		case openAI:
			return &OpenAIAccess, after
		case gemini, "google", "models": // as Gemini lists them
			return &geminiAccess, after
		}
	}
	begins := func(prefix string) bool { return strings.HasPrefix(model, prefix) }
	switch {
	case begins("claude"):
		return &anthropicAccess, model
	case begins("gemini"), begins("gemma"):
		return &geminiAccess, model
	case begins("gpt"), begins("chatgpt"), openAINames.MatchString(model):
		return &OpenAIAccess, model
	}
	return nil, model
}

// URL is where a model is asked below a base.
func (a *Access) URL(base, model string) string { return base + a.path(model) }

// Authorize sets the headers that a request needs; a key of "" is none.
func (a *Access) Authorize(h http.Header, key string) { a.authorize(h, key) }

// Write writes the body of a request. The error says what of it has no form at the provider.
func (a *Access) Write(q *Asking) ([]byte, error) {
	body, err := a.write(q)
	if err != nil {
		return nil, err
	}
	return json.Marshal(body)
}

// setKey sets a header to a key, where there is one.
func setKey(h http.Header, name, before, key string) {
	if key != "" {
		h.Set(name, before+key)
	}
}

// raw returns a value for json.Marshal.
func raw(v canonjson.Value) json.RawMessage { return v.Append(nil) }

// laterSystem refuses what a provider has no place for: a message of the system's behind the beginning.
func (c *Conversation) laterSystem(provider string) error {
	for i := range c.Turns {
		if c.Turns[i].Role == RoleSystem {
			return fmt.Errorf("messages: %s takes messages of the system's at the beginning alone", provider)
		}
	}
	return nil
}

// budgets are how many tokens of thinking a word stands for.
var budgets = map[string]int64{"minimal": 512, "low": 1024, "medium": 8192, "high": 24576}

// minBudget is what thinking gets where nobody says how much.
const minBudget = 1024

// budget returns how many tokens of thinking are asked for; 0 for none.
func (c *Conversation) budget() (int64, error) {
	v := &c.Thinking
	switch v.Kind {
	case canonjson.Null:
		return 0, nil
	case canonjson.Bool:
		return minBudget, nil
	case canonjson.String:
		if n, ok := budgets[v.Str]; ok {
			return n, nil
		}
	case canonjson.Object:
		if n, ok := v.Get("budget_tokens"); ok && n.Kind == canonjson.Number && n.Num >= 1 && n.Num <= 1<<31 {
			return int64(n.Num), nil
		}
	}
	return 0, fmt.Errorf("thinking: expected true, a number of tokens, \"low\", \"medium\", \"high\", or "+
		"{\"type\": \"enabled\", \"budget_tokens\": N}, got %s", v.Append(nil))
}

// effort returns the word for how much thinking is asked for; "" for none.
func (c *Conversation) effort() (string, error) {
	if effort := member(&c.Thinking, "effort"); effort != "" {
		return effort, nil
	}
	n, err := c.budget()
	switch {
	case err != nil || n == 0:
		return "", err
	case c.Thinking.Kind == canonjson.String:
		return c.Thinking.Str, nil
	case n <= budgets["low"]:
		return "low", nil
	case n <= budgets["medium"]:
		return "medium", nil
	}
	return "high", nil
}

// systemBlocks returns a system text that has other blocks in it as blocks alone.
func (c *Conversation) systemBlocks() json.RawMessage {
	if c.System.Kind == canonjson.Array {
		return raw(contentValue(c.System.Elems))
	}
	return raw(c.System)
}

// withExtra adds the further keys of a message, which the provider may know.
func withExtra(o wireObject, extra []canonjson.Member) wireObject {
	for i := range extra {
		o[extra[i].Key] = raw(extra[i].Value)
	}
	return o
}

// joining gathers messages, those of one role that follow one another as one: results of tools go to the user's side.
type joining struct {
	key  string // of the list of a message's parts
	list []wireObject
}

func (j *joining) add(role string, parts []any, extra []canonjson.Member) {
	if n := len(j.list); n > 0 && j.list[n-1]["role"] == role {
		last := j.list[n-1]
		last[j.key] = append(last[j.key].([]any), parts...)
		withExtra(last, extra)
		return
	}
	j.list = append(j.list, withExtra(wireObject{"role": role, j.key: parts}, extra))
}
