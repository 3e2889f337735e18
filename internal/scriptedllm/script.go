package scriptedllm

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

// An answer is what the script says: a thought, a text and tool calls, each where there is one.
type answer struct {
	thought string
	text    string
	calls   []call
}

// A call is one tool call.
type call struct {
	name  string
	args  any    // an object
	space string // the tool's namespace
}

// chunk is the number of runes in one streamed delta.
const chunk = 8

// completion is the answer to a request of so many bytes, with its tokens by length, as far as anyone looks.
func (a *answer) completion(request int) *llm.Completion {
	c := &llm.Completion{Thought: a.thought, Text: a.text, Chunk: chunk, InputTokens: tokens(request)}
	n := len(a.text) + len(a.thought)
	for _, x := range a.calls {
		args := encode(x.args)
		n += len(args)
		c.Calls = append(c.Calls, llm.CompletionCall{Name: x.name, Space: x.space, Arguments: args})
	}
	c.OutputTokens = tokens(n)
	return c
}

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

// plan decides what a turn is answered with.
func (e *Endpoint) plan(t *turn) answer {
	a := e.said(t)
	if t.think {
		a.thought = "The last message is: " + short(promptOf(t.userTexts()))
	}
	return a
}

func (e *Endpoint) said(t *turn) answer {
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
		return answer{text: string(encode(f.object(t.format.resolved())))}
	case e.opts.Text != "":
		return answer{text: e.opts.Text}
	case len(results) > 0:
		return answer{text: outcome(jobOf(texts).file, results)}
	}
	return answer{text: "Scripted answer to: " + short(promptOf(texts))}
}

// calling is the call c of a tool that the turn declares, or a text that says that none is so called.
func calling(t *turn, c Call) answer {
	i := slices.IndexFunc(t.tools, func(x tool) bool { return x.space+x.name == c.Tool })
	if i < 0 {
		i = slices.IndexFunc(t.tools, func(x tool) bool { return strings.HasSuffix(plainName(x.space+x.name), plainName(c.Tool)) })
	}
	if i < 0 {
		return answer{text: "No tool is called " + c.Tool + "."}
	}
	args := c.Args
	if args == nil {
		args = object{}
	}
	return answer{text: "I'll call " + c.Tool + ".", calls: []call{{name: t.tools[i].name, args: args, space: t.tools[i].space}}}
}

// work calls one of the tools, the best of liked, once for each job, side by side.
func work(t *turn, liked []string, jobs []job) answer {
	chosen := choose(t.tools, liked)
	a := answer{text: "I'll write " + jobs[0].file + "."}
	if jobs[0].command != "" {
		a.text = "I'll run " + jobs[0].command + "."
	}
	for _, j := range jobs {
		f := filler{job: j, cwd: cwdOf(t)}
		a.calls = append(a.calls, call{name: chosen.name, args: f.object(chosen.schema), space: chosen.space})
	}
	return a
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
