//go:build mcp

package mcp

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// TestServersOfOthers has one client speak to three servers at once, over pipes that Node makes.
func TestServersOfOthers(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		s.WriteFile(filepath.Join(b.Work, "notes.txt"), "marigolds, asters\n")
		sc := s.three("notes.txt")
		res := s.recorded(sc)
		for _, want := range []string{"marigolds, asters", "a sampled answer", "The sum of 2 and 40 is 42", `"progress":[1,2`} {
			if !strings.Contains(res.Stdout, want) {
				t.Errorf("the client did not print %q:\n%s", want, res.Stdout)
			}
		}
		s.green(res)
		s.red(s.three("other.txt"), "notes.txt", "other.txt")
	})
}

// three is a scene with all servers, in which the file called name is read.
func (s *stage) three(name string) *scene {
	files := s.stdio("filesystem", s.Work)
	files.Stderr = "inherit"
	memory := s.stdio("memory")
	memory.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(s.Home, "memory.jsonl")}
	entity := map[string]any{"name": "aster", "entityType": "flower", "observations": []string{"blue"}}
	return &scene{
		Servers: map[string]server{"files": files, "memory": memory, "everything": s.stdio("everything")},
		Steps: []step{
			{Server: "files", Method: "tools/list"},
			{All: []step{
				{Server: "files", Tool: "read_text_file", Args: map[string]any{"path": filepath.Join(s.Work, name)}},
				{Server: "memory", Tool: "create_entities", Args: map[string]any{"entities": []any{entity}}},
			}},
			{Server: "memory", Tool: "read_graph"},
			{Server: "everything", Tool: "get-sum", Args: map[string]any{"a": 2, "b": 40}},
			{Server: "everything", Tool: "get-roots-list"},
			{Server: "everything", Tool: "trigger-sampling-request", Args: map[string]any{"prompt": "say something"}},
			{Server: "everything", Tool: "trigger-long-running-operation", Args: map[string]any{"duration": 1, "steps": 3}, Progress: true},
			{Server: "everything", Tool: "get-tiny-image"},
			{Server: "everything", Method: "resources/list", Count: true},
			{Server: "everything", Method: "prompts/list", Count: true},
			{Server: "everything", Tool: "no-such-tool"},
		},
	}
}

// red replays another scene, in which now stands for was, and wants both named.
func (s *stage) red(sc *scene, was, now string) {
	s.t.Helper()
	report, res := s.Replay(s.argv(sc)...)
	if res.Status != 2 || report == nil {
		s.t.Fatalf("replay with %s for %s: %v", now, was, res)
	}
	if !strings.Contains(res.Stdout, was) || !strings.Contains(res.Stdout, now) {
		s.t.Errorf("the report does not name %s and %s:\n%s", was, now, res.Stdout)
	}
}

// TestManyCallsAtOnce has one server answer 32 calls out of order, twice over: each caller gets its own answer.
func TestManyCallsAtOnce(t *testing.T) {
	run.Once(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		sc := &scene{Servers: map[string]server{"everything": s.stdio("everything")}}
		for round := range 2 {
			var all []step
			for i := range 32 {
				if i%2 == 0 { // these end long after the others
					args := map[string]any{"duration": float64(1+(64-i)%5) / 10, "steps": 1 + i%3}
					all = append(all, step{Server: "everything", Tool: "trigger-long-running-operation", Args: args})
					continue
				}
				all = append(all, step{Server: "everything", Tool: "echo", Args: map[string]any{"message": fmt.Sprintf("%d of round %d", i, round)}})
			}
			sc.Steps = append(sc.Steps, step{All: all})
		}
		res := s.recorded(sc)
		s.green(res)
	})
}

// TestServerWritesFile has a server change the work tree: a replay without the server changes it too.
func TestServerWritesFile(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		hello := filepath.Join(b.Work, "hello.txt")
		sc := &scene{Servers: map[string]server{"files": s.stdio("filesystem", b.Work)}, Steps: []step{
			{Server: "files", Tool: "write_file", Args: map[string]any{"path": hello, "content": "marigold\n"}},
			{Server: "files", Tool: "edit_file", Args: map[string]any{"path": hello, "edits": []any{map[string]any{"oldText": "marigold", "newText": "aster"}}}},
		}}
		res := s.recorded(sc)
		if err := removeFile(hello); err != nil {
			t.Fatal(err)
		}
		s.green(res)
	})
}

// TestProgramLeavesServers ends without closing its servers.
func TestProgramLeavesServers(t *testing.T) {
	run.Once(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		sc := &scene{
			Servers: map[string]server{"everything": s.stdio("everything")}, Leave: true,
			Steps: []step{{Server: "everything", Tool: "echo", Args: map[string]any{"message": "and off"}}},
		}
		s.green(s.recorded(sc))
	})
}

// TestCanaries wants no byte of secrets in arguments, results, headers and environment on the disk.
func TestCanaries(t *testing.T) {
	run.Once(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		const inArgument, inEnvironment, inFile = "ghp_canaryCANARY0123456789abcdefghijklmn", "envcanary-4f1c77aa02b9", "sk-ant-api03-fileCANARY0123456789"
		everything := s.stdio("everything")
		everything.Env = map[string]string{"CANARY_TOKEN": inEnvironment}
		s.WriteFile(filepath.Join(b.Work, "conf.ini"), "api_key = "+inFile+"\n")
		sc := &scene{Servers: map[string]server{"everything": everything, "files": s.stdio("filesystem", b.Work)}, Steps: []step{
			{Server: "everything", Tool: "echo", Args: map[string]any{"message": "token " + inArgument}},
			{Server: "everything", Tool: "get-env"},
			{Server: "files", Tool: "read_text_file", Args: map[string]any{"path": filepath.Join(b.Work, "conf.ini")}},
		}}
		b.Setenv("CANARY_TOKEN", inEnvironment)
		res := s.recorded(sc)
		for _, canary := range []string{inArgument, inEnvironment, inFile} {
			if found := b.Holds(canary); found != nil {
				t.Errorf("%s stands in %v", canary, found)
			}
		}
		s.green(res)
	})
}
