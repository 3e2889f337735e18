package scriptedllm

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// chunk is the number of runes in one streamed delta.
const chunk = 8

// tokens is the length of a text of so many bytes.
func tokens(bytes int) int64 { return int64(bytes/4 + 1) }

// The tools that the script likes to call, best first, as plainName writes them.
var (
	writers = []string{
		"writefile", "write", "createfile", "filewrite", "savefile", "strreplacebasededittool", "strreplaceeditor",
	}
	shells = []string{
		"execcommand", "bash", "runshellcommand", "shell", "shellcommand", "localshell", "executecommand", "runcommand",
		"runterminalcmd", "terminal", "exec",
	}
)

// plan decides what a turn is answered with, with its tokens by length, as far as anyone looks.
func (e *Endpoint) plan(t *turn) *llm.Completion {
	c := e.said(t)
	if c.Chunk = chunk; t.think {
		c.Thought = "The last message is: " + short(promptOf(t.userTexts()))
	}
	n := len(c.Text) + len(c.Thought)
	for _, call := range c.Calls {
		n += len(call.Arguments)
	}
	c.OutputTokens = tokens(n)
	return c
}

func (e *Endpoint) said(t *turn) *llm.Completion {
	texts := t.userTexts()
	results := t.results()
	switch {
	case len(t.tools) > 0 && t.answered() < len(e.opts.Calls):
		return calling(t, e.opts.Calls[t.answered()])
	case len(t.tools) > 0 && len(results) == 0:
		if e.opts.Shell != "" {
			return work(t, shells, []job{{command: e.opts.Shell}})
		}
		return work(t, slices.Concat(named(t.tools, texts), writers, shells), jobsOf(texts))
	case t.format != nil:
		f := filler{job: jobOf(texts)}
		return saying(string(encode(f.object(t.format.resolved()))))
	case e.opts.Text != "":
		return saying(e.opts.Text)
	case len(results) > 0:
		return saying(outcome(jobOf(texts).file, results))
	}
	return saying("Scripted answer to: " + short(promptOf(texts)))
}

func saying(text string) *llm.Completion { return &llm.Completion{Text: text} }

// calling is the call c of a tool that the turn declares, or a text that says that none is so called.
func calling(t *turn, c Call) *llm.Completion {
	i := slices.IndexFunc(t.tools, func(x tool) bool { return x.space+x.name == c.Tool })
	if i < 0 {
		i = slices.IndexFunc(t.tools, func(x tool) bool { return strings.HasSuffix(plainName(x.space+x.name), plainName(c.Tool)) })
	}
	if i < 0 {
		return saying("No tool is called " + c.Tool + ".")
	}
	args := c.Args
	if args == nil {
		args = object{}
	}
	return &llm.Completion{Text: "I'll call " + c.Tool + ".", Calls: []llm.CompletionCall{t.tools[i].call(args)}}
}

// work calls one of the tools, the best of liked, once for each job, side by side.
func work(t *turn, liked []string, jobs []job) *llm.Completion {
	chosen := choose(t.tools, liked)
	c := saying("I'll write " + jobs[0].file + ".")
	if jobs[0].command != "" {
		c.Text = "I'll run " + jobs[0].command + "."
	}
	for _, j := range jobs {
		f := filler{job: j, cwd: cwdOf(t)}
		c.Calls = append(c.Calls, chosen.call(f.object(chosen.schema)))
	}
	return c
}

// named are the tools that the prompt calls by their whole names, as "write a.txt by mcp_files_write_file" does. A name of one word may
// be any word of it, and counts as none.
func named(tools []tool, texts []string) (names []string) {
	i := slices.IndexFunc(texts, wish.MatchString)
	if i < 0 {
		return nil
	}
	words := strings.FieldsFunc(texts[i], func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, t := range tools {
		if strings.ContainsAny(t.name, "_-") && slices.Contains(words, t.name) {
			names = append(names, plainName(t.name))
		}
	}
	return names
}

// outcome is the final text, which mentions what the tool said.
func outcome(file string, results []llm.Turn) string {
	last := &results[len(results)-1]
	if last.Failed {
		return "The tool failed, " + file + " may be missing: " + short(said(last))
	}
	return "Done, " + file + " is written. The tool said: " + short(said(last))
}

// choose takes a tool by name, of liked the first that is there, else one that looks as if it wrote files or ran commands, else
// the first.
func choose(tools []tool, liked []string) tool {
	for _, want := range liked {
		if i := slices.IndexFunc(tools, func(t tool) bool { return plainName(t.name) == want }); i >= 0 {
			return tools[i]
		}
	}
	if i := slices.IndexFunc(tools, writesFiles); i >= 0 {
		return tools[i]
	}
	if i := slices.IndexFunc(tools, runsCommands); i >= 0 {
		return tools[i]
	}
	return tools[0]
}

func writesFiles(t tool) bool { return t.schema.has(pathOf) && t.schema.has(textOf) }

func runsCommands(t tool) bool { return t.schema.has(command) }

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
