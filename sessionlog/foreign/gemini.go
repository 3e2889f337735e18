package foreign

import (
	"context"
	"hash/maphash"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// gemini reads the sessions of gemini-cli, ~/.gemini/tmp/PROJECT/chats/session-*: lines (.jsonl) or, before 2026, one object
// {sessionId, messages} (.json); and its checkpoints (/chat save), a list of contents as the API has them, or {history}.
//
// A message is written again, under its id, whenever something of it is new: its tool calls with what they gave. The last form
// of it counts, and the place of the first. {"$rewindTo": id} takes back all from that message on: what was taken back is
// counted. {"$set": {"messages"}} is the history as the model gets it from there on, made anew when a session is resumed or made
// shorter: what is new in it is no turn.
//
// Results stand twice, with their call and as the user's message that brings them to the model: the first counts. Older API
// answers have no ids for calls; checkpoints then number them, call_1 first.
//
// A file of lines is read twice, once for what was taken back. Memory is one line, one message, and about 50 bytes a message.
type gemini struct{}

func (gemini) Name() string { return "gemini-cli" }

var (
	geminiSaid       = lazyregexp.New(`"type"\s*:\s*"gemini"`)
	geminiObject     = lazyregexp.New(`^\s*\{\s*"(sessionId|projectHash)"\s*:`)
	geminiCheckpoint = lazyregexp.New(`^\s*(\{\s*"history"\s*:\s*)?\[\s*\{\s*"(role"\s*:\s*"(user|model)"|parts"\s*:)`)
)

func (gemini) Looks(path string, head []byte) bool {
	if head == nil {
		return filepath.Base(path) == "chats" || filepath.Base(path) == "tmp" && filepath.Base(filepath.Dir(path)) == ".gemini"
	}
	head = withoutMark(head)
	return geminiObject.Match(head) && strings.Contains(string(head), `"projectHash"`) || geminiCheckpoint.Match(head)
}

// Import reads a session, or the newest one below a folder.
func (gemini) Import(ctx context.Context, path string, emit func(sessionlog.Event) error) (*Report, error) {
	r := newReport("gemini-cli", path)
	err := newestThat(r, path, func(name string) bool {
		return strings.HasPrefix(name, "session-") && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".json"))
	}, func(head []byte) bool { // every start makes a file, though an older session goes on
		return len(head) == HeadSize || geminiSaid.Match(head)
	})
	if err != nil {
		return r, err
	}
	head, err := headOf(r.File)
	if err != nil {
		return r, err
	}
	g := &geminiReader{r: r, out: emit, seen: map[uint64]bool{}, seed: maphash.MakeSeed()}
	switch {
	case geminiCheckpoint.Match(withoutMark(head)):
		err = eachElement(ctx, r, "history", func(string, []byte) error { return nil }, g.content)
	case isLines(head):
		if err = walk(ctx, r.File, newReport("", r.File), g.plan); err == nil {
			err = eachLine(ctx, r.File, r, g.line)
		}
	default:
		err = eachElement(ctx, r, "messages", g.about, g.element)
	}
	if err == nil {
		err = g.finish()
	}
	if g.d != nil {
		r.count(g.d)
	}
	return r, err
}

// isLines reports whether the first line of a head is a value by itself that holds no messages, or the head ends before it does.
func isLines(head []byte) bool {
	whole := false
	headLines(head, func(s *jsonscan.Scanner) bool {
		messages := false
		if s.Peek() == '{' {
			for s.Begin('{'); s.More('}'); {
				messages = string(s.Key()) == "messages" || messages
				s.Skip()
			}
			whole = s.End() == nil && !messages
		}
		return true
	})
	return whole
}
