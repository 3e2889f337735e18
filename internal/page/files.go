package page

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxInline bounds how many bytes of contents stand in blocks of files themselves. Further short ones stand in the records that name them, and are
// asked for as payloads that recordOf names.
const maxInline = 1 << 20

// What the name of a payload begins with that stands in a record: "record-SEQ" is the content of the file that it is about, "before-SEQ" what
// stood there before.
const recordOf, beforeOf = "record-", "before-"

// maxUnchanged bounds how many files that the run did not change are listed.
const maxUnchanged = 5000

// history gathers what happened to files, and what may have made it happen.
type history struct {
	out     []*File
	byPath  map[string]*File
	turns   []*TurnRow        // by seq
	spawns  []*spawn          // by seq
	servers map[uint64]server // by conversation
	inline  int64             // bytes of contents in out
}

// A server is the beginning of a conversation with a tool server.
type server struct {
	seq  uint64
	name string
}

// A spawn is a process: when it ran, in ms after the start.
type spawn struct {
	seq, id    uint64
	start, end int64
	command    string
}

// blockFiles is how many files stand in a block of them.
const blockFiles = 64

// files makes files.json, for which the tape need not be read.
func (r *Source) files() (*Files, error) {
	s, err := r.sum()
	if err != nil {
		return nil, err
	}
	out := &Files{Block: blockFiles, Files: slices.Clone(s.Changed)}
	at := make(map[string]int, len(out.Files))
	for i := range out.Files {
		at[out.Files[i].Path] = i
	}
	for _, e := range r.found(func(path string) bool { _, ok := at[path]; return ok }) {
		i, ok := at[e.Path]
		if !ok {
			i = len(out.Files)
			out.Files = append(out.Files, FileRow{Path: strings.ToValidUTF8(e.Path, "\uFFFD"), Before: FileGone, At: []int64{}, Size: []int64{}})
		}
		if f := &out.Files[i]; f.Before == FileGone {
			f.Before = e.Size
		}
		if e.Target != "" {
			out.Files[i].Before = FileBytes
		}
	}
	slices.SortStableFunc(out.Files, func(a, b FileRow) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// found lists what stood in the work tree before the run, but for directories: of what it did not change the first.
func (r *Source) found(changed func(path string) bool) (out []*files.Entry) {
	t, err := r.rec.Tree()
	if err != nil || t == nil {
		return nil // the summary tells of damage of the tape alone; without a tree there is nothing to show
	}
	unchanged := 0
	for i := range t.Entries {
		e := &t.Entries[i]
		switch {
		case e.Mode.IsDir():
		case changed(e.Path):
			out = append(out, e)
		case unchanged < maxUnchanged && !strings.HasPrefix(e.Path, ".git/"):
			unchanged++
			out = append(out, e)
		}
	}
	return out
}

// fileBlock makes files/B.json.
func (r *Source) fileBlock(n int) (*FileBlock, error) {
	all, err := r.histories()
	if err != nil {
		return nil, err
	}
	if n < 0 || n*blockFiles >= len(all) {
		return nil, ErrNoDocument
	}
	return &FileBlock{all[n*blockFiles : min(len(all), (n+1)*blockFiles)]}, nil
}

// histories are what is known of all files, in the order of files.json; of a tape that does not grow they are made once.
func (r *Source) histories() ([]File, error) {
	r.making.Lock()
	defer r.making.Unlock()
	s, err := r.sum()
	if err != nil {
		return nil, err
	}
	if r.filesOf != s {
		made, err := r.fileHistory(s)
		if err != nil {
			return nil, err
		}
		r.filesOf, r.made = s, made
	}
	return r.made, nil
}

// fileHistory is one pass over the records that are about files, processes and tool servers.
func (r *Source) fileHistory(s *summary) ([]File, error) {
	h := &history{byPath: make(map[string]*File), servers: make(map[uint64]server)}
	for i := range s.Conversations {
		for j := range s.Conversations[i].Turns {
			h.turns = append(h.turns, &s.Conversations[i].Turns[j])
		}
	}
	slices.SortFunc(h.turns, func(a, b *TurnRow) int { return cmp.Compare(a.Seq, b.Seq) })
	err := r.lines(0, func(line []byte) bool {
		if !concernsFiles(line) {
			return true
		}
		rec, err := tape.ParseRecord(line)
		if err != nil {
			return true // the summary says so
		}
		h.add(rec)
		return true
	})
	if err != nil {
		return nil, err
	}
	h.causes(s)
	h.tree(r)
	return h.files(), nil
}

var kindPrefix = []byte(`"kind":{"kind":"`)

// concernsFiles reports whether a line of a tape is of a kind that a history takes.
func concernsFiles(line []byte) bool {
	i := bytes.Index(line[:min(len(line), 300)], kindPrefix)
	if i < 0 {
		return bytes.HasPrefix(line, []byte(`{"type":"record"`)) // another producer's
	}
	rest := line[i+len(kindPrefix):]
	for _, kind := range []string{"file_write", "file_delete", "process_spawn", "mcp_open"} {
		if bytes.HasPrefix(rest, []byte(kind)) {
			return true
		}
	}
	return false
}

// add takes a record.
func (h *history) add(rec *tape.Record) {
	switch k := rec.Kind.(type) {
	case *tape.MCPOpen:
		h.servers[k.Conversation] = server{rec.Seq, k.Server}
	case *tape.ProcessSpawn:
		end := cmp.Or(tape.EndedMS(k), rec.MonotonicMS)
		h.spawns = append(h.spawns, &spawn{rec.Seq, k.SpawnID, end - k.DurationMS, end, strings.Join(append([]string{k.Program}, k.Args...), " ")})
	}
	if k := tape.ChangedFile(rec.Kind); k != nil && !k.IsPlace() {
		h.change(rec, k)
	}
}

// change takes a record that says that a file changed.
func (h *history) change(rec *tape.Record, k *tape.File) {
	f := h.byPath[k.Path]
	if f == nil {
		f = &File{Path: k.Path, States: []FileState{}}
		if k.Before != nil {
			f.Before = &FileState{Bytes: h.content(rec.Seq, beforeOf, k.Before), Causes: []Cause{}}
		}
		h.byPath[k.Path] = f
		h.out = append(h.out, f)
	}
	_, gone := rec.Kind.(*tape.FileDelete)
	state := FileState{Seq: rec.Seq, At: rec.MonotonicMS, Gone: gone, Mode: k.Mode, Causes: recordedCauses(h, k)}
	if strings.HasPrefix(k.Mode, "12") && k.Content != nil && k.Content.Inline {
		state.Target = k.Content.Text
	} else if !gone {
		state.Bytes = h.content(rec.Seq, recordOf, k.Content)
	}
	f.States = append(f.States, state)
}

// content names what a record has of a file.
func (h *history) content(seq uint64, which string, p *tape.Payload) *Payload {
	out := payloadOf(p, nil)
	if out == nil || out.Text == nil {
		return out
	}
	if h.inline += p.Len; h.inline > maxInline {
		return &Payload{Digest: which + strconv.FormatUint(seq, 10), Size: p.Len}
	}
	return out
}

// standsInRecord reports whether a payload has a name of content.
func standsInRecord(name string) bool {
	return strings.HasPrefix(name, recordOf) || strings.HasPrefix(name, beforeOf)
}

// inRecord returns what a record has of the file that it is about.
func (r *Source) inRecord(name string) ([]byte, error) {
	which, number, _ := strings.Cut(name, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, ErrNoDocument
	}
	s, err := r.sum()
	if err != nil {
		return nil, err
	}
	rec, err := r.record(s, seq)
	if err != nil {
		return nil, err
	}
	f := tape.FileOf(rec.Kind)
	if f == nil {
		return nil, ErrNoDocument
	}
	p := f.Content
	if which+"-" == beforeOf {
		p = f.Before
	}
	if p == nil || !p.Inline {
		return nil, ErrNoDocument
	}
	return []byte(p.Text), nil
}

// recordedCauses are those that the tape itself names: the process, the tool server. The processes come later on the tape: see causes.
func recordedCauses(h *history, k *tape.File) []Cause {
	out := []Cause{}
	if n, err := strconv.ParseUint(string(tape.FieldValue(k.Extra, tape.ConversationKey)), 10, 64); err == nil {
		if by, ok := h.servers[n]; ok {
			out = append(out, Cause{What: "server", Seq: by.seq, Title: by.name, Recorded: true, Why: "the tool server wrote it"})
		}
	}
	if k.SpawnID != 0 {
		out = append(out, Cause{What: "spawn", Seq: k.SpawnID, Recorded: true, Why: "the process wrote it"})
	}
	return out
}

// causes names the processes that are recorded as causes, and adds what time and names tell.
func (h *history) causes(s *summary) {
	byID := make(map[uint64]*spawn)
	for _, p := range h.spawns {
		byID[p.id] = p
	}
	for _, f := range h.out {
		for i := range f.States {
			state := &f.States[i]
			state.Causes = slices.DeleteFunc(state.Causes, func(c Cause) bool { return c.What == "spawn" && byID[c.Seq] == nil })
			for j := range state.Causes {
				if c := &state.Causes[j]; c.What == "spawn" {
					p := byID[c.Seq]
					c.Seq, c.Title = p.seq, cutTo(p.command, maxTitle)
				}
			}
			h.infer(s, f.Path, state)
		}
	}
}

// lookBack is how many turns before a change are asked whether they name the file.
const lookBack = 20

// infer adds the turn, and the process, that time and names speak for.
func (h *history) infer(s *summary, name string, state *FileState) {
	n, _ := slices.BinarySearchFunc(h.turns, state.Seq, func(t *TurnRow, seq uint64) int { return cmp.Compare(t.Seq, seq) })
	if n == 0 {
		return
	}
	base := path.Base(name)
	cause, since := h.turns[n-1], h.turns[n-1]
	why := "it is the last answer before the change"
	for _, t := range slices.Backward(h.turns[max(0, n-lookBack):n]) {
		if tool := s.naming(t.Seq, base); tool != "" {
			cause, why = t, fmt.Sprintf("its call of %s names %s, and no answer in between does", tool, base)
			break
		}
	}
	state.Causes = append(state.Causes, Cause{What: "turn", Seq: cause.Seq, Title: turnTitle(cause), Why: why})
	if slices.ContainsFunc(state.Causes, func(c Cause) bool { return c.What == "spawn" }) {
		return
	}
	if p := h.ran(since, state.At, base); p != nil {
		state.Causes = append(state.Causes, Cause{
			What: "spawn", Seq: p.seq, Title: cutTo(p.command, maxTitle), Why: "it ran between that answer and the change, and its arguments name " + base,
		})
	}
}

// lookAt is how many processes behind an answer are asked whether their arguments name a file.
const lookAt = 200

// ran returns the first process that ended behind an answer, and began before an instant, with a name in its arguments; nil for none.
func (h *history) ran(since *TurnRow, until int64, name string) *spawn {
	n, _ := slices.BinarySearchFunc(h.spawns, since.Seq, func(p *spawn, seq uint64) int { return cmp.Compare(p.seq, seq) })
	for _, p := range h.spawns[n:min(n+lookAt, len(h.spawns))] {
		if p.start <= until && p.end >= since.Start+since.Latency && p.id > 1 && strings.Contains(p.command, name) {
			return p
		}
	}
	return nil
}

func turnTitle(t *TurnRow) string {
	return strings.TrimSpace(fmt.Sprintf("turn %d: %s", t.Number, cmp.Or(strings.Join(t.Tools, ", "), t.Answer)))
}

// tree adds what the run found and did not change, and what stood where it changed something.
func (h *history) tree(r *Source) {
	for _, e := range r.found(func(path string) bool { return h.byPath[path] != nil }) {
		f := h.byPath[e.Path]
		switch {
		case f != nil && f.Before != nil && f.Before.Mode != "":
			continue
		case f == nil:
			f = &File{Path: strings.ToValidUTF8(e.Path, "\uFFFD"), States: []FileState{}}
			h.out = append(h.out, f)
		}
		if f.Before == nil {
			f.Before = &FileState{Causes: []Cause{}}
		}
		f.Before.Mode, f.Before.Target = e.Mode.Taped(), e.Target
		switch {
		case e.Target != "":
			f.Before.Bytes = nil // which a record has as its content
		case f.Before.Bytes == nil && !e.Digest.IsZero():
			f.Before.Bytes = &Payload{Digest: e.Digest.String(), Size: e.Size}
		}
	}
}

func (h *history) files() []File {
	out := make([]File, 0, len(h.out))
	for _, f := range h.out {
		out = append(out, *f)
	}
	slices.SortStableFunc(out, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return out
}
