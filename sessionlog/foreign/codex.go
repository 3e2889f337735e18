package foreign

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// codex reads the rollouts of OpenAI's Codex, ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl, packed with zstd or not.
//
// A line is an envelope {timestamp, type, payload}; the payloads of type response_item are the conversation as it goes over the
// wire, in order. Before September 2025 a line was the item itself, and the first one the session's. Before that (the program in
// TypeScript) a file was one object, {session, items}.
//
// An answer is every item of the model's between two of the other side's, or until its tokens are counted: a response is not
// marked otherwise. What the program says in the user's name (environment, rules, warnings) is no prompt.
// A result is an error where the item says so; the exit status of a command stands in its text alone, as the model sees it.
type codex struct{}

func (codex) Name() string { return "codex" }

// codexObject is how the oldest form begins.
var codexObject = lazyregexp.New(`^\s*\{\s*"session"\s*:\s*\{`)

// codexAgent is how the session of a sub-agent begins: its first line says whose.
var codexAgent = lazyregexp.New(`^[^\n]*"(parent_thread_id"\s*:\s*"|source"\s*:\s*\{\s*"subagent")`)

func (codex) Looks(path string, head []byte) bool {
	if head == nil {
		return filepath.Base(path) == "sessions" && filepath.Base(filepath.Dir(path)) == ".codex"
	}
	if codexObject.Match(withoutMark(head)) {
		return true
	}
	n := 0
	return headLines(head, func(s *jsonscan.Scanner) bool {
		var l codexLine
		n++
		if l.read(s); s.Err() != nil {
			return false
		}
		switch l.kind {
		case "session_meta", "response_item", "turn_context", "event_msg", "compacted":
			return l.payload != nil
		case "":
			return n == 1 && l.bare // the session's own line of the form before envelopes
		}
		return false
	})
}

// Import reads a rollout, or the newest one below a folder.
func (codex) Import(ctx context.Context, path string, emit func(sessionlog.Event) error) (*Report, error) {
	r := newReport("codex", path)
	err := newestThat(r, path, func(name string) bool {
		return strings.HasPrefix(name, "rollout-") && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".jsonl.zst"))
	}, func(head []byte) bool { return !codexAgent.Match(head) })
	if err != nil {
		return r, err
	}
	c := &codexReader{r: r, out: emit}
	old, err := isCodexObject(r.File)
	switch {
	case err != nil:
		return r, err
	case old:
		err = eachElement(ctx, r, "items", c.about, c.item)
	default:
		err = eachLine(ctx, r.File, r, c.line)
	}
	if err == nil {
		err = c.finish()
	}
	if c.d != nil {
		r.count(c.d)
	}
	return r, err
}

func isCodexObject(path string) (bool, error) {
	head, err := headOf(path)
	return codexObject.Match(withoutMark(head)), err
}

// codexLine is one line.
type codexLine struct {
	kind    string
	payload []byte
	bare    bool // it has no envelope, and says when the session began and by what instructions
}

func (l *codexLine) read(s *jsonscan.Scanner) {
	id, instructions := false, false
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			l.kind = text(s)
		case "payload":
			l.payload = s.Raw()
		case "id":
			id = true
			s.Skip()
		case "instructions", "git":
			instructions = true
			s.Skip()
		default:
			s.Skip()
		}
	}
	l.bare = id && instructions
	_ = s.End()
}

// codexID is the session's id as its file's name has it, the last 36 letters; "codex" without one.
func codexID(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".json")
	if len(name) < 36 || !isUUID(name[len(name)-36:]) {
		return "codex"
	}
	return name[len(name)-36:]
}
