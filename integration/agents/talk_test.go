//go:build agents

package agents

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/sessionlog/foreign"
	_ "github.com/tapedeck-dev/tapedeck/sessionlog/foreign/sqlite"
)

// A talker is an agent whose session log is compared with its own transcript.
type talker struct {
	agent      string
	importer   string // "" is the agent's name
	transcript string // the folder below HOME
	steps      []step // what the model does; WORK stands for the work directory
	// mute says that the protocol has no place to say that a tool failed, so that the tape does not tell what the agent knows.
	mute bool
	// wire returns the id that a call has on the wire, of the one that the agent calls it by; nil where it is the same.
	wire func(id string) string
}

var talkers = []talker{
	{
		agent: "pi", transcript: ".pi/agent/sessions",
		steps: errand(
			toolCall{"read", map[string]any{"path": "missing.txt"}},
			toolCall{"bash", map[string]any{"command": "echo found; exit 3"}},
			toolCall{"write", map[string]any{"path": "hello.txt", "content": "marigold\n"}}),
	},
	{
		agent: "codex", transcript: ".codex/sessions",
		steps: errand(
			toolCall{"exec_command", map[string]any{"cmd": "cat missing.txt"}},
			toolCall{"exec_command", map[string]any{"cmd": "echo found; exit 3"}},
			toolCall{"exec_command", map[string]any{"cmd": "echo marigold > hello.txt"}}),
	},
	{
		agent: "gemini-cli", transcript: ".gemini/tmp", wire: behindName,
		steps: errand(
			toolCall{"read_file", map[string]any{"file_path": "WORK/missing.txt"}},
			toolCall{"run_shell_command", map[string]any{"command": "echo found; exit 3"}},
			toolCall{"write_file", map[string]any{"file_path": "WORK/hello.txt", "content": "marigold\n"}}),
	},
	{
		agent: "opencode", transcript: ".local/share/opencode", mute: true, // Responses
		steps: errand(
			toolCall{"read", map[string]any{"filePath": "missing.txt"}},
			toolCall{"bash", map[string]any{"command": "echo found; exit 3", "description": "look"}},
			toolCall{"bash", map[string]any{"command": "echo marigold > hello.txt", "description": "write"}}),
	},
	{
		agent: "qwen-code", transcript: ".qwen/projects", mute: true, // Chat Completions
		steps: errand(
			toolCall{"read_file", map[string]any{"file_path": "WORK/missing.txt"}},
			toolCall{"run_shell_command", map[string]any{"command": "echo found; exit 3", "description": "look", "is_background": false}},
			toolCall{"write_file", map[string]any{"file_path": "WORK/hello.txt", "content": "marigold\n"}}),
	},
	{
		agent: "claude-code", transcript: ".claude/projects",
		steps: errand(
			toolCall{"Read", map[string]any{"file_path": "WORK/missing.txt"}},
			toolCall{"Bash", map[string]any{"command": "echo found; exit 3", "description": "look"}},
			toolCall{"Write", map[string]any{"file_path": "WORK/hello.txt", "content": "marigold\n"}}),
	},
}

// behindName is what stands behind the name of the tool: gemini-cli calls the call c of the tool read_file read_file__c.
func behindName(id string) string {
	_, id, _ = strings.Cut(id, "__")
	return id
}

// errand is a conversation of three turns: two calls side by side of which one fails, one call, a text.
func errand(fails, looks, writes toolCall) []step {
	return []step{
		{think: "First I look.", say: "I look at both.", calls: []toolCall{fails, looks}},
		{say: "I write it.", calls: []toolCall{writes}},
		{say: "Written: hello.txt."},
	}
}

// A fact is one thing that a session log tells of a conversation.
type fact struct {
	Kind    sessionlog.Kind
	Turn    int
	Text    string // the goal of a run, the content of an answer, the reason of an end
	ID      string // of a call, or of the call that a result is of
	Name    string
	Value   any // arguments, or what the tool gave
	IsError bool
}

// TestTalk records each agent and compares the session log that the tape gives with the transcript that the agent wrote itself:
// turns, calls and results, id by id.
func TestTalk(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder")
	}
	run.Tool(t, "node")
	for i := range talkers {
		w := &talkers[i]
		t.Run(w.agent, func(t *testing.T) {
			r := recipe(w.agent)
			program := r.program(t, modules)
			run.Once(t, func(t *testing.T, b *run.Box) {
				r.prepare(b)
				server := httptest.NewServer(newScene(r.Value, map[string][]step{"errand alpha": w.in(b.Work)}))
				res := b.Record(map[string]string{r.Host: server.URL}, r.Command(program, "errand alpha: write hello.txt")...)
				server.Close()
				if res.Status != 0 {
					t.Fatalf("record: %v", res)
				}
				if res := b.Verify(); res.Status != 0 {
					t.Errorf("verify: %v", res)
				}
				derived := w.derived(t, b.Recording())
				if diff := cmp.Diff(w.own(t, b.Home), derived); diff != "" {
					t.Errorf("what the agent wrote (-), what the tape gives (+):\n%s", diff)
				}
			})
		})
	}
}

func recipe(name string) *Recipe {
	if name == ClaudeCode.Name {
		return &ClaudeCode
	}
	for i := range Recipes {
		if Recipes[i].Name == name {
			return &Recipes[i]
		}
	}
	return nil
}

// in returns the steps for a work directory.
func (w *talker) in(work string) []step {
	b, _ := json.Marshal(work)
	place := strings.Trim(string(b), `"`)
	steps := make([]step, len(w.steps))
	for i, s := range w.steps {
		calls := make([]toolCall, len(s.calls))
		for j, c := range s.calls {
			text, _ := json.Marshal(c.input)
			calls[j].name = c.name
			_ = json.Unmarshal([]byte(strings.ReplaceAll(string(text), "WORK", place)), &calls[j].input)
		}
		s.calls = calls
		steps[i] = s
	}
	return steps
}

// derived reads the session log of a recording.
func (w *talker) derived(t *testing.T, dir string) []fact {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := derive.SessionLog(rec)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Derived {
		t.Error("the recording has no session.jsonl")
	}
	var f facts
	lines := jsonscan.NewLines(s, 1<<20)
	for {
		line, err := lines.Next()
		if err != nil {
			break
		}
		var envelope struct {
			Event json.RawMessage
		}
		if err := json.Unmarshal(line, &envelope); err != nil {
			t.Fatal(err)
		}
		e, err := sessionlog.ParseEvent(envelope.Event)
		if err != nil {
			t.Fatal(err)
		}
		if e.Base().TapeSeq == nil {
			t.Errorf("no tape_seq: %s", line)
		}
		_ = f.add(e)
	}
	return f.all
}

// own reads the transcript that the agent wrote.
func (w *talker) own(t *testing.T, home string) []fact {
	t.Helper()
	name := w.importer
	if name == "" {
		name = w.agent
	}
	im, ok := foreign.ByName(name)
	if !ok {
		t.Skipf("no importer of %s", name)
	}
	var f facts
	report, err := im.Import(context.Background(), filepath.Join(home, w.transcript), f.add)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", report)
	failed := 0
	for i := range f.all {
		if f.all[i].ID != "" && w.wire != nil {
			f.all[i].ID = w.wire(f.all[i].ID)
		}
		if f.all[i].IsError {
			failed++
			f.all[i].IsError = !w.mute
		}
	}
	if w.mute && failed == 0 {
		t.Error("the transcript has no failed result, as it is thought to have")
	}
	return f.all
}

// facts collects them.
type facts struct{ all []fact }

func (f *facts) add(e sessionlog.Event) error {
	turn := e.Base().Turn
	switch e := e.(type) {
	case *sessionlog.RunStarted:
		f.all = append(f.all, fact{Kind: sessionlog.KindOf(e), Text: strings.Trim(e.Goal, "\"\n")})
	case *sessionlog.LLMCompleted:
		f.all = append(f.all, fact{Kind: sessionlog.KindOf(e), Turn: turn, Value: value(e.Message.Content), Text: e.Message.Role})
	case *sessionlog.ToolRequested:
		for _, c := range e.Calls {
			f.all = append(f.all, fact{Kind: sessionlog.KindOf(e), Turn: turn, ID: c.ID, Name: c.Name, Value: value(c.Arguments)})
		}
	case *sessionlog.ToolCompleted:
		for _, r := range e.Results {
			f.all = append(f.all, fact{Kind: sessionlog.KindOf(e), Turn: turn, ID: r.CallID, Value: value(r.Output), IsError: r.IsError})
		}
	case *sessionlog.RunTerminal:
		f.all = append(f.all, fact{Kind: sessionlog.KindOf(e), Text: e.Reason, Value: []int64{int64(e.TurnsUsed), e.TotalTokens}})
	}
	return nil
}

func value(b json.RawMessage) (v any) {
	_ = json.Unmarshal(b, &v)
	return v
}
