//go:build agents

package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An editing is a session of pi in which the model calls its tools one after the other.
type editing struct {
	steps []toolCall
}

type toolCall struct {
	name  string
	input map[string]any
}

// ServeHTTP answers a turn with the tool call that follows the results which the request carries, in Anthropic's events.
func (e *editing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, data map[string]any) {
		data["type"] = kind
		b, _ := json.Marshal(data)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, b)
		w.(http.Flusher).Flush()
	}
	done := strings.Count(string(body), `"tool_result"`)
	usage := map[string]any{"input_tokens": 10, "output_tokens": 5}
	send("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("msg_%02d", done), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{}, "usage": usage,
	}})
	stop := "end_turn"
	if done < len(e.steps) {
		step, _ := json.Marshal(e.steps[done].input)
		stop = "tool_use"
		send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_%02d", done), "name": e.steps[done].name, "input": map[string]any{},
		}})
		send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(step)}})
	} else {
		send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
		send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": "All done."}})
	}
	send("content_block_stop", map[string]any{"index": 0})
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop}, "usage": usage})
	send("message_stop", map[string]any{})
}

// TestEdits: pi edits three files, deletes one and writes to HOME. Each change stands before the question after it; the tree
// can be given back and the changes taken back; and a replay is green however the disk has changed since.
func TestEdits(t *testing.T) {
	modules := os.Getenv("TAPEDECK_AGENTS")
	if modules == "" {
		t.Skip("TAPEDECK_AGENTS names no node_modules folder; integration/install-npm.sh fills one")
	}
	run.Tool(t, "node")
	pi := &Recipes[slices.IndexFunc(Recipes, func(r Recipe) bool { return r.Name == "pi" })]
	program := pi.program(t, modules)
	server := httptest.NewServer(&editing{[]toolCall{
		{"edit", map[string]any{"path": "a.txt", "oldText": "alpha", "newText": "alef"}},
		{"edit", map[string]any{"path": "b.txt", "oldText": "beta", "newText": "bet"}},
		{"write", map[string]any{"path": "sub/c.txt", "content": "gimel\n"}},
		{"bash", map[string]any{"command": "rm d.txt && echo remembered >> ~/memory.txt"}},
	}})
	defer server.Close()
	found := map[string]string{"a.txt": "alpha\n", "b.txt": "beta\n", "sub/c.txt": "gamma\n", "d.txt": "delta\n"}
	left := map[string]string{"a.txt": "alef\n", "b.txt": "bet\n", "sub/c.txt": "gimel\n"}
	run.Each(t, func(t *testing.T, b *run.Box) {
		pi.prepare(b)
		for name, text := range found {
			b.WriteFile(filepath.Join(b.Work, name), text)
		}
		b.WriteFile(filepath.Join(b.Home, "memory.txt"), "old\n")
		if res := b.Record(map[string]string{pi.Host: server.URL}, pi.Command(program, "tidy up")...); res.Status != 0 {
			t.Fatal(res)
		}
		wantTree(t, b.Work, left)
		want := []string{
			"ask", "wrote a.txt", "ask", "wrote b.txt", "ask", "wrote sub/c.txt", "ask", "deleted d.txt", "wrote ~/memory.txt", "ask",
		}
		if got := changes(t, b.Recording(), "a.txt", "b.txt", "sub/c.txt", "d.txt", "~/memory.txt"); !slices.Equal(got, want) {
			t.Errorf("on the tape stands %q, want %q", got, want)
		}
		if res := b.Tapedeck("restore", b.Recording(), filepath.Join(b.Home, "as-it-was")); res.Status != 0 {
			t.Error(res)
		}
		wantTree(t, filepath.Join(b.Home, "as-it-was"), found)
		if res := b.Tapedeck("apply", "--reverse", b.Recording()); res.Status != 0 {
			t.Error(res)
		}
		wantTree(t, b.Work, found)
		b.WriteFile(filepath.Join(b.Work, "a.txt"), "edited since\n")
		b.WriteFile(filepath.Join(b.Home, "memory.txt"), "edited since\n")
		report, res := b.Replay()
		if res.Status != 0 || report == nil {
			t.Errorf("replay: %v", res)
		}
		if res := b.Tapedeck("apply", b.Recording()); res.Status != 1 || !strings.Contains(res.Stderr, "a.txt") {
			t.Errorf("apply onto a tree that no longer fits: %v", res)
		}
	})
}

// changes lists the questions of a recording and what it says of paths, in the order of its tape.
func changes(t *testing.T, recording string, paths ...string) (out []string) {
	t.Helper()
	f, err := tape.Open(filepath.Join(recording, "run.tape"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for rec, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		switch k := rec.Kind.(type) {
		case *tape.LLMCall:
			out = append(out, "ask")
		case *tape.FileWrite:
			if slices.Contains(paths, k.Path) {
				out = append(out, "wrote "+k.Path)
			}
		case *tape.FileDelete:
			if slices.Contains(paths, k.Path) {
				out = append(out, "deleted "+k.Path)
			}
		}
	}
	return out
}

// wantTree compares the files of a directory, but for recordings.
func wantTree(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Name() == ".tapedeck" {
			return filepath.SkipDir
		}
		if e.Type().IsRegular() {
			b, err := os.ReadFile(path)
			rel, _ := filepath.Rel(dir, path)
			got[filepath.ToSlash(rel)] = string(b)
			return err
		}
		return nil
	})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s has %v, want %v, %v", dir, got, want, err)
	}
}
