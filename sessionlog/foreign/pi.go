package foreign

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// pi reads the sessions of pi, ~/.pi/agent/sessions/--<path>--/<time>_<id>.jsonl, of versions 1 to 3.
//
// The first line is the session's; every other one is an entry, which names its parent: they are a tree, of which the branch that
// the last entry stands on is the conversation (version 1 has no ids and is that branch alone). What a compaction folded away
// is on the branch still and is read. A file is read twice: once for the tree, once for what the branch says.
//
// An answer is one entry, one that failed or was aborted too: the model was asked. What a person ran herself ("!cmd"), what an
// extension put in, and the summary of a branch that was left go with the next prompt, as attachments of it.
type pi struct{}

func (pi) Name() string { return "pi" }

func (pi) Looks(path string, head []byte) bool {
	if head == nil {
		return filepath.Base(path) == "sessions" && filepath.Base(filepath.Dir(path)) == "agent"
	}
	n, found := 0, false
	headLines(head, func(s *jsonscan.Scanner) bool {
		n++
		var e piEntry
		e.read(s)
		found = n == 1 && e.kind == "session" && e.id != "" && e.cwd && s.Err() == nil
		return true
	})
	return found
}

// Import reads a session, or the newest one below a folder.
func (pi) Import(ctx context.Context, path string, emit func(sessionlog.Event) error) (*Report, error) {
	r := newReport("pi", path)
	if err := newest(r, path, func(name string) bool { return strings.HasSuffix(name, ".jsonl") }); err != nil {
		return r, err
	}
	branch, err := branchOf(ctx, r.File, piLinks)
	if err != nil {
		return r, err
	}
	p := &piReader{r: r, emit: emit, branch: branch}
	err = eachLine(ctx, r.File, r, p.line)
	return r, r.ended(p.chat, err)
}

// A piEntry is one line.
type piEntry struct {
	kind, id string
	cwd      bool
	version  int64
	forked   bool
	message  []byte
	summary  string
}

// piLinks reads what makes the tree, and no more of the line than it has to.
func piLinks(s *jsonscan.Scanner, l *links) {
	kind := ""
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			kind = text(s)
		case "id":
			l.id = text(s)
		case "parentId":
			l.parent, l.rooted = text(s), true
		default:
			s.Skip()
		}
		if kind != "" && l.id != "" && (l.rooted || kind == "session") {
			break
		}
	}
	l.none, l.tip = kind == "session", true
}

func (e *piEntry) read(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			e.kind = text(s)
		case "id":
			e.id = text(s)
		case "version":
			e.version = count(s)
		case "cwd":
			e.cwd = true
			s.Skip()
		case "parentSession", "branchedFrom":
			e.forked = !s.Null()
			if e.forked {
				s.Skip()
			}
		case "message":
			e.message = s.Raw()
		case "summary":
			e.summary = text(s)
		default:
			s.Skip()
		}
	}
	_ = s.End()
}

// A piReader turns the entries of a branch into events.
type piReader struct {
	r      *Report
	emit   func(sessionlog.Event) error
	branch *tree
	chat   *chat
	entry  int
	inner  jsonscan.Scanner
}

var piSettings = map[string]string{
	"model_change":          "a setting; the answers tell their model",
	"thinking_level_change": "a setting",
	"label":                 "a bookmark of the person's",
	"session_info":          "the session's name",
	"custom":                "the state of an extension, which the model does not see",
	"leaf":                  "where the person stood in the tree",
}

func (p *piReader) line(s *jsonscan.Scanner, n int) error {
	var e piEntry
	whole := s.Rest()
	if e.read(s); s.Err() != nil {
		return broken{s.Err()}
	}
	if e.kind == "session" {
		return p.session(&e, n)
	}
	if p.chat == nil {
		p.chat = newChat(p.r, "", "pi", p.emit)
	}
	p.entry++
	if !p.branch.has(p.entry - 1) {
		p.r.skip("entries on a branch that was left", "the conversation is the branch that the last entry stands on", n)
		return nil
	}
	switch e.kind {
	case "message":
		return p.message(e.message, n)
	case "custom_message", "branch_summary":
		p.chat.with(owned(whole))
	case "compaction":
		return p.chat.compressed("compaction", e.summary)
	default:
		reason, ok := piSettings[e.kind]
		p.r.skip("entries of type "+e.kind, why(ok, reason), n)
	}
	return nil
}

func (p *piReader) session(e *piEntry, n int) error {
	if p.chat != nil {
		p.r.skip("a second line on the session", "the first one counts", n)
		return nil
	}
	p.r.Session = e.id
	p.r.note("the session's form is version %d", max(e.version, 1))
	if e.forked {
		p.r.note("the session was taken from another one, whose entries it repeats")
	}
	if p.branch.orphan {
		p.r.note("an entry names a parent that is not there; the branch begins at it")
	}
	p.chat = newChat(p.r, e.id, "pi", p.emit)
	return nil
}
