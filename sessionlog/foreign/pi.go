package foreign

import (
	"bytes"
	"context"
	"hash/maphash"
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
	tree, err := piBranch(ctx, r.File)
	if err != nil {
		return r, err
	}
	p := &piReader{r: r, emit: emit, branch: tree}
	if err = eachLine(ctx, r.File, r, p.line); err == nil && p.chat == nil {
		err = &Error{Path: r.File, Err: ErrEmpty}
	}
	if err == nil {
		err = p.chat.end()
	}
	if p.chat != nil {
		r.count(p.chat.d)
	}
	return r, err
}

// A piTree says which entries stand on the branch of the last one, by their number.
type piTree struct {
	on     []uint64 // a bit an entry
	orphan bool     // an entry's parent is not there
}

func (t *piTree) has(entry int) bool {
	return entry/64 < len(t.on) && t.on[entry/64]&(1<<(entry%64)) != 0
}

// piBranch reads a session's tree: twelve bytes and a place in a map for each entry.
func piBranch(ctx context.Context, path string) (*piTree, error) {
	tree := new(piTree)
	var parents []int32 // -1 where there is none
	byID := make(map[uint64]int32)
	seed := maphash.MakeSeed()
	quiet := newReport("pi", path) // the second reading tells what is wrong
	err := eachLine(ctx, path, quiet, func(s *jsonscan.Scanner, _ int) error {
		var e piEntry
		if e.links(s); s.Err() != nil {
			return broken{s.Err()}
		}
		if e.kind == "session" {
			return nil
		}
		parent := int32(len(parents)) - 1
		if e.parent != nil {
			parent = -1
			if id := *e.parent; id != "" {
				at, ok := byID[maphash.String(seed, id)]
				if parent = at; !ok {
					parent, tree.orphan = -1, true
				}
			}
		}
		if e.id != "" {
			byID[maphash.String(seed, e.id)] = int32(len(parents))
		}
		parents = append(parents, parent)
		return nil
	})
	tree.on = make([]uint64, (len(parents)+63)/64)
	for at := int32(len(parents)) - 1; at >= 0; at = parents[at] {
		tree.on[at/64] |= 1 << (at % 64)
	}
	return tree, err
}

// A piEntry is one line.
type piEntry struct {
	kind, id string
	parent   *string // nil where the line does not say, "" for none
	cwd      bool
	version  int64
	forked   bool
	message  []byte
	summary  string
}

// links reads what makes the tree, and no more of the line than it has to.
func (e *piEntry) links(s *jsonscan.Scanner) {
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "type":
			e.kind = text(s)
		case "id":
			e.id = text(s)
		case "parentId":
			parent := text(s)
			e.parent = &parent
		default:
			s.Skip()
		}
		if e.kind != "" && e.id != "" && (e.parent != nil || e.kind == "session") {
			return
		}
	}
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
	branch *piTree
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
		p.chat.with(bytes.Clone(whole))
	case "compaction":
		p.r.skip("compactions", "what they fold away is read itself, and the events know no summary of it", n)
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
