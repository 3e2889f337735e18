package scriptedllm

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
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
