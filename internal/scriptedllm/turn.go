package scriptedllm

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A turn is what a request asks, as the script looks at it.
type turn struct {
	*llm.Conversation
	system string
	tools  []tool
	think  bool    // the answer begins with the model's thoughts
	format *schema // the answer is to be an object of this schema; nil for text
}

// A tool is one that the agent declares.
type tool struct {
	name   string
	schema *schema
	space  string // the namespace that it is declared in, as of one server; "" for none
}

func (t *tool) call(args object) llm.CompletionCall {
	return llm.CompletionCall{Name: t.name, Space: t.space, Arguments: encode(args)}
}

func turnOf(q *llm.Question) *turn {
	t := &turn{Conversation: q.Conversation, system: q.System.Text(), think: thinks(&q.Body), format: formatOf(&q.Body)}
	for i := range q.Turns {
		if m := &q.Turns[i]; m.Role == llm.RoleSystem {
			t.system += "\n" + strings.Join(m.Texts(), "\n")
		}
	}
	t.tools = functions(nil, q.Tools.Elems, "")
	return t
}

// functions appends the functions among declared, which stand in a namespace, and those of the namespaces there.
func functions(to []tool, declared []canonjson.Value, space string) []tool {
	for _, v := range declared {
		name, _ := v.Get("name")
		kind, _ := v.Get("type")
		arguments, ok := v.Get("input_schema")
		if !ok {
			arguments, ok = v.Get("parameters") // in a namespace
		}
		switch inner, _ := v.Get("tools"); {
		case kind.Text() == "namespace":
			to = functions(to, inner.Elems, name.Text())
		case ok && name.Text() != "":
			to = append(to, tool{name: name.Text(), schema: schemaOf(arguments), space: space})
		}
	}
	return to
}

// schemaOf reads a schema; what is none says nothing.
func schemaOf(v canonjson.Value) *schema {
	s := new(schema)
	_ = json.Unmarshal(v.Append(nil), s) // what was read of it counts
	return s
}

// formatOf returns the schema of the object that a request wants, wherever its provider has it; nil where it wants a text.
func formatOf(body *canonjson.Value) *schema {
	for _, path := range [][]string{
		{"output_config", "format", "schema"}, {"response_format", "json_schema", "schema"}, {"text", "format", "schema"},
		{"generationConfig", "responseJsonSchema"}, {"generationConfig", "responseSchema"}, {"format"},
	} {
		if v, ok := body.Path(path...); ok && v.Kind == canonjson.Object {
			return schemaOf(v)
		}
	}
	return nil
}

// thinks reports whether a request wants to see the model's thoughts: Anthropic's, Ollama's or Gemini's.
func thinks(body *canonjson.Value) bool {
	kind, _ := body.Path("thinking", "type")
	think, asked := body.Get("think")
	shown, _ := body.Path("generationConfig", "thinkingConfig", "includeThoughts")
	return kind.Text() == "enabled" || kind.Text() == "adaptive" || asked && (think.Bool || think.Kind != canonjson.Bool) || shown.Bool
}

// results returns the tool results that this turn brings: those after the model's last message.
func (t *turn) results() (out []llm.Turn) {
	for _, m := range slices.Backward(t.Turns) {
		if m.Role == llm.RoleAssistant {
			break
		}
		if m.Role == llm.RoleTool {
			out = append(out, m)
		}
	}
	slices.Reverse(out)
	return out
}

// answered counts the tool results of the whole conversation.
func (t *turn) answered() (n int) {
	for i := range t.Turns {
		if t.Turns[i].Role == llm.RoleTool {
			n++
		}
	}
	return n
}

// said is what a tool gave, its texts first.
func said(result *llm.Turn) string {
	text := strings.Join(result.Texts(), "\n")
	for _, p := range result.Parts {
		if p.Kind != canonjson.String {
			text += string(p.Append(nil))
		}
	}
	return text
}

// userTexts returns everything that the user's side said, the last first. Agents put their own context before the
// prompt, so the prompt is the first of these that reads like one.
func (t *turn) userTexts() (out []string) {
	for i := range t.Turns {
		if t.Turns[i].Role == llm.RoleUser {
			out = append(out, t.Turns[i].Texts()...)
		}
	}
	slices.Reverse(out)
	return out
}
