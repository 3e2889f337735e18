package scriptedllm

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// A turn is what a request asks, whatever the provider.
type turn struct {
	model    string
	stream   bool
	array    bool // Gemini: the stream is a JSON array, not events
	usage    bool // OpenAI chat: the stream ends with the usage
	system   string
	messages []message
	tools    []tool
	think    bool    // the answer begins with the model's thoughts
	format   *schema // the answer is to be an object of this schema; nil for text
}

// A message is one message of the conversation.
type message struct {
	model   bool // by the model, else by the user's side
	texts   []string
	results []result
}

// A result is what a tool gave.
type result struct {
	text   string
	failed bool
}

// A tool is one that the agent declares.
type tool struct {
	name   string
	schema *schema
	space  string // the namespace that it is declared in, as of one server; "" for none
}

// joined is all that a message says.
func (m message) joined() string { return strings.Join(m.texts, "\n") }

// check refuses what every provider refuses.
func (t *turn) check() error {
	if t.model == "" {
		return errors.New("model: field required")
	}
	if len(t.messages) == 0 {
		return errors.New("messages: at least one message is required")
	}
	return nil
}

// fresh returns the messages after the model's last one: what this turn brings.
func (t *turn) fresh() []message {
	for i := len(t.messages) - 1; i >= 0; i-- {
		if t.messages[i].model {
			return t.messages[i+1:]
		}
	}
	return t.messages
}

// results returns the tool results that this turn brings.
func (t *turn) results() []result {
	var out []result
	for _, m := range t.fresh() {
		out = append(out, m.results...)
	}
	return out
}

// answered counts the tool results of the whole conversation.
func (t *turn) answered() int {
	n := 0
	for _, m := range t.messages {
		n += len(m.results)
	}
	return n
}

// userTexts returns everything that the user's side said, the last first. Agents put their own context before the
// prompt, so the prompt is the first of these that reads like one.
func (t *turn) userTexts() []string {
	var out []string
	for i := len(t.messages) - 1; i >= 0; i-- {
		if m := t.messages[i]; !m.model {
			for j := len(m.texts) - 1; j >= 0; j-- {
				out = append(out, m.texts[j])
			}
		}
	}
	return out
}

// blocks is content as Anthropic and OpenAI write it: a string, or a list of typed blocks.
type blocks []block

type block struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Content blocks `json:"content"`  // of an Anthropic tool_result
	IsError bool   `json:"is_error"` // of an Anthropic tool_result
}

// UnmarshalJSON takes both forms, and null.
func (b *blocks) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, (*[]block)(b))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*b = blocks{{Type: "text", Text: text}}
	return nil
}

// texts returns the text of each block that has one.
func (b blocks) texts() []string {
	var out []string
	for _, x := range b {
		if x.Text != "" {
			out = append(out, x.Text)
		}
	}
	return out
}

func (b blocks) String() string { return strings.Join(b.texts(), "\n") }
