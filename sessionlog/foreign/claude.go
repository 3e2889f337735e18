package foreign

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// claude reads the transcripts of Claude Code, ~/.claude/projects/PROJECT/SESSION.jsonl.
//
// Each line that has a uuid names the one before it, by parentUuid: going back and asking again makes a tree. The conversation
// is the branch that the last line stands on; the others are counted. Where the history was made shorter a line begins anew and
// names the one before by logicalParentUuid, which is followed.
//
// One answer is several lines, a block each, with one message id and the usage of the whole: one turn. The results of calls
// beside each other each hang on the line of their own call, so that all but one of them stand beside the branch: a result, or
// another line of an answer, belongs to the branch where what it hangs on does.
//
// Sub-agents stand in files of their own, SESSION/subagents/agent-*.jsonl (in older versions in the same file, with
// isSidechain), and are no turns of the conversation. Such a file can be read by itself.
//
// The file is read twice, once for the tree. Memory is one line, one answer with its results, and about 100 bytes a line.
type claude struct{}

func (claude) Name() string { return "claude-code" }

func (claude) Looks(path string, head []byte) bool {
	if head == nil {
		return holdsClaude(path)
	}
	return headLines(head, func(s *jsonscan.Scanner) bool {
		var kind string
		var side, session, leaf, parts bool
		for s.Begin('{'); s.More('}'); {
			switch string(s.Key()) {
			case "type":
				kind = text(s)
			case "isSidechain":
				side = true
				s.Skip()
			case "sessionId":
				session = true
				s.Skip()
			case "message":
				parts = hasKey(s, "parts") // qwen-code's lines have the same keys otherwise
			case "leafUuid", "messageId":
				leaf = true
				s.Skip()
			default:
				s.Skip()
			}
		}
		return !parts && side || session && kind == "queue-operation" || leaf && claudeOther[kind] != ""
	})
}

// holdsClaude reports whether a folder is one of a project, or all of them.
func holdsClaude(path string) bool {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if filepath.Base(path) == "projects" && filepath.Base(filepath.Dir(path)) == ".claude" {
		return true
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return false
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if !ok || !isUUID(name) || !e.Type().IsRegular() {
			continue
		}
		file := filepath.Join(path, e.Name())
		if head, err := headOf(file); err == nil && (claude{}).Looks(file, head) {
			return true
		}
	}
	return false
}

// Import reads a session, or the newest one below a folder.
func (claude) Import(ctx context.Context, path string, emit func(sessionlog.Event) error) (*Report, error) {
	r := newReport("claude-code", path)
	err := newest(r, path, func(name string) bool {
		return strings.HasSuffix(name, ".jsonl") && !strings.HasPrefix(name, "agent-")
	})
	if err != nil {
		return r, err
	}
	tree := newClaudeTree()
	if err := walk(ctx, r.File, newReport("", r.File), tree.line); err != nil {
		return r, err
	}
	tree.choose(r)
	c := &claudeReader{r: r, out: emit, tree: tree}
	if err = eachLine(ctx, r.File, r, c.line); err == nil {
		err = c.finish()
	}
	if c.d != nil {
		r.count(c.d)
	}
	return r, err
}

// claudeAgents notes the transcripts of sub-agents beside the one that was read.
func (r *Report) claudeAgents() {
	dir := filepath.Join(strings.TrimSuffix(r.File, ".jsonl"), "subagents")
	entries, err := os.ReadDir(dir)
	n := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jsonl") {
			n++
		}
	}
	if err == nil && n > 0 {
		r.note("transcripts of sub-agents stand in %s, and are no turns of this one: %d", dir, n)
	}
}

// hasResult reports whether a content begins with what a tool gave.
func hasResult(content []byte) bool {
	return len(content) > 0 && content[0] == '[' && bytes.Contains(content[:min(len(content), 256)], []byte(`"tool_result"`))
}
