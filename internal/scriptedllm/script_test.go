package scriptedllm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

func TestJobOf(t *testing.T) {
	tests := []struct {
		texts []string
		want  job
	}{
		{[]string{"write hello.txt"}, job{file: "hello.txt", content: "hello\n"}},
		{[]string{"Please create the file src/app.v2.py."}, job{file: "src/app.v2.py", content: "app.v2\n"}},
		{[]string{`write note.md with the text "Good morning"`}, job{file: "note.md", content: "Good morning\n"}},
		{[]string{"write a.txt saying it's done."}, job{file: "a.txt", content: "it's done\n"}},
		{[]string{"<reminder>be careful</reminder>", "write goodbye.txt", "ctx: README.md"}, job{file: "goodbye.txt", content: "goodbye\n"}},
		{[]string{"what is in README.md?"}, job{file: "README.md", content: "README\n"}},
		{[]string{"say hi\nto all"}, job{file: "note.txt", content: "say hi\n"}},
		{nil, job{file: "note.txt", content: "\n"}},
	}
	for _, tt := range tests {
		if got := jobOf(tt.texts); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.texts, got, tt.want)
		}
	}
}

func TestShellQuotes(t *testing.T) {
	got := job{file: "a b.txt", content: "it's\n"}.shell()
	if want := `printf '%s\n' 'it'\''s' > 'a b.txt'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCwdOf(t *testing.T) {
	for text, want := range map[string]string{
		"x\nCurrent working directory: /home/u/my proj\nCurrent date: …":        "/home/u/my proj",
		"I'm currently working in the directory: /w/x\nfolders:":                "/w/x",
		"<environment_context>\n  <cwd>/w/x</cwd>\n":                            "/w/x",
		"- **Workspace Directories:**\n  - /w/x\n- **Directory Structure:**":    "/w/x",
		"Execute a command in the current working directory. Returns stdout.\n": "",
		"Working directory: C:\\x":                                              "",
	} {
		if got := cwdOf(&turn{Conversation: &llm.Conversation{}, system: text}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	f := filler{job: job{file: "hello.txt", content: "hello\n"}, cwd: "/w"}
	const shell = `printf '%s\n' 'hello' > 'hello.txt'`
	tests := []struct {
		name, schema string
		want         object
	}{
		{"absolute path", `{"properties":{"filePath":{"type":"string",
			"description":"The absolute path to the file to write (must be absolute, not relative)"},
			"content":{"type":"string"}},"required":["content","filePath"]}`, object{"filePath": "/w/hello.txt", "content": "hello\n"}},
		{"either path", `{"properties":{"path":{"description":"Path to the file (relative or absolute)"}},"required":["path"]}`,
			object{"path": "hello.txt"}},
		{"optional content", `{"properties":{"path":{"type":"string"},"text":{"type":"string"},"mode":{"type":"string"}}}`,
			object{"path": "hello.txt", "text": "hello\n"}},
		{"argument vector", `{"properties":{"command":{"type":"array","items":{"type":"string"}},"workdir":{"type":"string"}},
			"required":["command","workdir"]}`, object{"command": []string{"sh", "-c", shell}, "workdir": "/w"}},
		{"editor", `{"properties":{"command":{"enum":["view","create"]},"path":{},"file_text":{}},"required":["command","path"]}`,
			object{"command": "create", "path": "hello.txt", "file_text": "hello\n"}},
		{"strict", `{"properties":{"cmd":{"type":"string"},"shell":{"type":["string","null"]},"description":{"type":"string"},
			"timeout":{"anyOf":[{"type":"integer"},{"type":"null"}]},"login":{"type":"boolean"},"n":{"type":"NUMBER"},
			"kind":{"const":"x"},"level":{"type":"string","default":"low"},"env":{"type":"object"},"tags":{"type":"array"}},
			"required":["cmd","shell","description","timeout","login","n","kind","level","env","tags"]}`,
			object{"cmd": shell, "shell": nil, "description": "Write hello.txt", "timeout": nil, "login": false, "n": 1,
				"kind": "x", "level": "low", "env": object{}, "tags": []string{}}},
		{"alternatives", `{"properties":{"timeout_ms":{"oneOf":[{"type":"null"},{"type":"integer"}]},
			"path":{"anyOf":[{"type":"string"}]}},"required":["path"]}`, object{"path": "hello.txt"}},
		{"says nothing", `true`, object{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s schema
			if err := json.Unmarshal([]byte(tt.schema), &s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, f.object(&s)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	writing := &schema{Properties: map[string]*schema{"path": {}, "content": {}}}
	running := &schema{Properties: map[string]*schema{"command": {}}}
	none := &schema{}
	tests := []struct {
		tools []tool
		want  string
	}{
		{[]tool{{name: "read", schema: none}, {name: "Bash", schema: running}, {name: "Write", schema: writing}}, "Write"},
		{[]tool{{name: "apply", schema: none}, {name: "exec_command", schema: running}}, "exec_command"},
		{[]tool{{name: "look", schema: none}, {name: "do", schema: running}, {name: "put", schema: writing}}, "put"},
		{[]tool{{name: "look", schema: none}, {name: "do", schema: running}}, "do"},
		{[]tool{{name: "echo", schema: none}, {name: "add", schema: none}}, "echo"},
	}
	for _, tt := range tests {
		if got := choose(tt.tools, slices.Concat(writers, shells)); got.name != tt.want {
			t.Errorf("%v: chose %s, want %s", tt.tools, got.name, tt.want)
		}
	}
}

var model = llm.Turn{Role: llm.RoleAssistant}

func user(text string) llm.Turn {
	return llm.Turn{Role: llm.RoleUser, Parts: []canonjson.Value{{Kind: canonjson.String, Str: text}}}
}

func gave(text string) llm.Turn { return llm.Turn{Role: llm.RoleTool, Parts: user(text).Parts} }

func turnWith(tools []tool, turns ...llm.Turn) *turn {
	return &turn{Conversation: &llm.Conversation{Turns: turns}, tools: tools}
}

func TestAToolThatThePromptNames(t *testing.T) {
	tools := []tool{{name: "write_file", schema: &schema{}}, {name: "bash", schema: &schema{}}, {name: "mcp_files_write_file", schema: &schema{}}}
	for prompt, want := range map[string]string{
		"write a.txt":                         "write_file",
		"write a.txt by mcp_files_write_file": "mcp_files_write_file",
		"Write a.txt (mcp_files_write_file).": "mcp_files_write_file",
		"write a.txt by files_write_file":     "write_file",
		"write a bash script a.sh":            "write_file",
	} {
		got := New(nil).plan(turnWith(tools, user("context: mcp_files_write_file"), user(prompt)))
		if len(got.Calls) != 1 || got.Calls[0].Name != want {
			t.Errorf("%q: %+v, want a call of %s", prompt, got.Calls, want)
		}
	}
}

func TestPlanWithoutATool(t *testing.T) {
	tests := []struct {
		name string
		turn *turn
		want string
	}{
		{"title", turnWith(nil, user("title for: x")), "Scripted answer to: title for: x"},
		{"object", &turn{Conversation: turnWith(nil, user("write a.txt")).Conversation, format: &schema{Properties: map[string]*schema{
			"title": {Type: types{"string"}}}, Required: []string{"title"}}}, `{"title":"Write a.txt"}`},
		{"tool failed", turnWith(nil, user("write a.txt"), model, llm.Turn{Role: llm.RoleTool, Parts: user("no space").Parts, Failed: true}),
			"The tool failed, a.txt may be missing: no space"},
	}
	for _, tt := range tests {
		if got := New(nil).plan(tt.turn); got.Text != tt.want || got.Calls != nil {
			t.Errorf("%s: %+v, want %q", tt.name, got, tt.want)
		}
	}
}

func TestASecondPromptIsAnotherJob(t *testing.T) {
	got := New(nil).plan(turnWith([]tool{{name: "write", schema: &schema{}}}, user("write a.txt"), model, gave("ok"), model, user("write b.txt")))
	if got.Calls == nil || got.Text != "I'll write b.txt." {
		t.Errorf("%+v", got)
	}
}

// TestShell runs the command that is wanted with the tool that runs commands, though another one writes files.
func TestShell(t *testing.T) {
	e := New(&Options{Shell: "cat notes.txt"})
	_, body := postTo(t, e, "/v1/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":"write hello.txt"}],"tools":[
		{"type":"function","function":{"name":"write_file","parameters":{"type":"object","properties":{"path":{"type":"string"},
		"content":{"type":"string"}}}}},
		{"type":"function","function":{"name":"run_shell_command","parameters":{"type":"object","properties":{"command":{"type":"string"}},
		"required":["command"]}}}]}`)
	call := at(decode(t, body), "choices", 0, "message", "tool_calls", 0, "function")
	want := map[string]any{"name": "run_shell_command", "arguments": `{"command":"cat notes.txt"}`}
	if d := cmp.Diff(any(want), call); d != "" {
		t.Error(d)
	}
}

func TestCallsOfTheScript(t *testing.T) {
	e := New(&Options{Calls: []Call{{Tool: "files_read", Args: object{"path": "a.txt"}}, {Tool: "memory_read"}, {Tool: "missing"}}}) // and not the tool that is called read
	for _, tools := range [][]tool{
		{{name: "read"}, {name: "mcp_memory_read"}, {name: "mcp_files_read"}},
		{{name: "read"}, {name: "read", space: "mcp__memory"}, {name: "read", space: "mcp__files"}},
	} {
		turn := turnWith(tools, user("write hello.txt"))
		var got []llm.CompletionCall
		for range 2 {
			got = append(got, e.plan(turn).Calls...)
			turn.Turns = append(turn.Turns, model, gave("read"), user("on"))
		}
		files, memory := tools[2], tools[1]
		want := []llm.CompletionCall{files.call(object{"path": "a.txt"}), memory.call(object{})}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if a := e.plan(turn); a.Text != "No tool is called missing." || a.Calls != nil {
			t.Errorf("a tool that is not declared: %+v", a)
		}
		turn.Turns = append(turn.Turns, gave("it rained"))
		if a := e.plan(turn); !strings.Contains(a.Text, "it rained") || a.Calls != nil {
			t.Errorf("after all calls: %+v", a)
		}
	}
}

func TestNamespacesOfResponses(t *testing.T) {
	const turn = `{"model":"m","input":"note it","tools":[{"type":"function","name":"look","parameters":{}},
		{"type":"namespace","name":"mcp__notes","tools":[{"type":"function","name":"add","parameters":{}}]}]}`
	_, body := post(t, &Options{Calls: []Call{{Tool: "notes_add"}}}, "/v1/responses", turn)
	item := at(decode(t, body), "output", 1)
	if at(item, "name") != "add" || at(item, "namespace") != "mcp__notes" {
		t.Errorf("answer %s", body)
	}
}
