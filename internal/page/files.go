package page

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxInline bounds how many bytes of contents stand in a block of files itself. Further short ones stand in the records that name them, and are
// asked for as payloads that recordOf names.
const maxInline = 16 << 10

// What the name of a payload begins with that stands in a record: "record-SEQ" is the content of the file that it is about, "before-SEQ" what
// stood there before.
const recordOf, beforeOf = "record-", "before-"

// maxUnchanged bounds how many files that the run did not change are listed.
const maxUnchanged = 5000

// blockFiles is how many files stand in a block of them.
const blockFiles = 64

// A listing is the list of files with what their histories are made of.
type listing struct {
	of      *summary // a tape that grows has another one later
	files   []listedFile
	turns   []*TurnRow // by seq
	spawns  []spawn    // by seq
	byID    map[uint64]*spawn
	servers map[uint64]*server // by conversation
	named   []naming           // by seq
}

// A listedFile is a row of the list, and what the run found there.
type listedFile struct {
	changedFile
	found *files.Entry // nil for none
}

// listings makes the documents of files.
type listings struct {
	*taped

	making sync.Mutex // held while a listing is made
	listed *listing   // guarded by making
}

// listing makes the list, for which the tape need not be read; of a tape that does not grow it is made once.
func (r *listings) listing() (*listing, error) {
	r.making.Lock()
	defer r.making.Unlock()
	s, err := r.sum()
	if err != nil || r.listed != nil && r.listed.of == s {
		return r.listed, err
	}
	s, c, err := r.changes(s)
	if err != nil {
		return nil, err
	}
	l := &listing{of: s, spawns: c.Spawns.all(), named: c.Named, byID: make(map[uint64]*spawn), servers: make(map[uint64]*server)}
	for i := range l.spawns {
		l.byID[l.spawns[i].id] = &l.spawns[i]
	}
	for i := range c.Servers {
		l.servers[c.Servers[i].Conversation] = &c.Servers[i]
	}
	for i := range s.Conversations {
		for j := range s.Conversations[i].Turns {
			l.turns = append(l.turns, &s.Conversations[i].Turns[j])
		}
	}
	slices.SortFunc(l.turns, func(a, b *TurnRow) int { return cmp.Compare(a.Seq, b.Seq) })
	l.list(r.rec, c)
	r.listed = l
	return l, nil
}

// list makes a row of each file that changed, and of those that the run found.
func (l *listing) list(rec *recording.Recording, c *changes) {
	l.files = c.all()
	at := make(map[string]int, len(l.files))
	for i := range l.files {
		at[l.files[i].path] = i
	}
	for _, e := range found(rec, func(path string) bool { _, ok := at[path]; return ok }) {
		i, ok := at[e.Path]
		if !ok {
			i = len(l.files)
			l.files = append(l.files, listedFile{changedFile: changedFile{path: strings.ToValidUTF8(e.Path, "\uFFFD"), before: FileGone}})
		}
		f := &l.files[i]
		if f.found = e; f.before == FileGone {
			f.before = e.Size
		}
		if e.Target != "" {
			f.before = FileBytes
		}
	}
	slices.SortFunc(l.files, func(a, b listedFile) int { return cmp.Compare(a.path, b.path) })
}

// list makes files.json.
func (r *listings) list() (*Files, error) {
	l, err := r.listing()
	if err != nil {
		return nil, err
	}
	out := &Files{Block: blockFiles}
	for i := range l.files {
		out.add(&l.files[i].changedFile)
	}
	return out, nil
}

// found lists what stood in the work tree before the run, but for directories: of what it did not change the first.
func found(rec *recording.Recording, changed func(path string) bool) (out []*files.Entry) {
	t, err := rec.Tree()
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

// block makes files/B.json.
func (r *listings) block(n int) (*FileBlock, error) {
	l, err := r.listing()
	if err != nil {
		return nil, err
	}
	if n < 0 || n*blockFiles >= len(l.files) {
		return nil, ErrNoDocument
	}
	files, err := r.historiesOf(l, l.files[n*blockFiles:min(len(l.files), (n+1)*blockFiles)])
	return &FileBlock{files}, err
}

// histories are what is known of all files, in the order of files.json.
func (r *listings) histories() (all []File, err error) {
	l, err := r.listing()
	if err != nil {
		return nil, err
	}
	for block := range slices.Chunk(l.files, blockFiles) {
		files, err := r.historiesOf(l, block)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// historiesOf reads the records of the changes of a block of files.
func (r *listings) historiesOf(l *listing, block []listedFile) ([]File, error) {
	from, err := regular.Open(r.rec.TapePath())
	if err != nil {
		return nil, err
	}
	defer from.Close()
	out, inline := make([]File, 0, len(block)), room{most: maxInline}
	for i := range block {
		f, err := l.history(from, &block[i], &inline)
		if err != nil {
			return nil, err
		}
		out = append(out, *f)
	}
	return out, nil
}

// history is what stood at a path when.
func (l *listing) history(from io.ReaderAt, row *listedFile, inline *room) (*File, error) {
	f := &File{Path: row.path, States: []FileState{}}
	for i := range row.at {
		rec, err := recordAt(from, row.where[i])
		if err != nil {
			return nil, err
		}
		k := tape.ChangedFile(rec.Kind)
		if k == nil || k.Path != row.path {
			return nil, fmt.Errorf("record %d of the tape is no change of %s: %s was written over", rec.Seq, row.path, recording.TapeName)
		}
		if i == 0 && k.Before != nil {
			f.Before = &FileState{Bytes: contentIn(rec.Seq, beforeOf, k.Before, inline), Causes: []Cause{}}
		}
		f.States = append(f.States, l.state(rec, k, inline))
	}
	if row.found != nil {
		f.stood(row.found)
	}
	return f, nil
}

// state is what a record says of a file.
func (l *listing) state(rec *tape.Record, k *tape.File, inline *room) FileState {
	_, gone := rec.Kind.(*tape.FileDelete)
	state := FileState{Seq: rec.Seq, At: rec.MonotonicMS, Gone: gone, Mode: k.Mode, Causes: l.recordedCauses(k)}
	if strings.HasPrefix(k.Mode, "12") && k.Content != nil && k.Content.Inline {
		state.Target = k.Content.Text
	} else if !gone {
		state.Bytes = contentIn(rec.Seq, recordOf, k.Content, inline)
	}
	l.infer(k.Path, &state)
	return state
}

// contentIn is what a record has of a file, or its name where there is no room for it.
func contentIn(seq uint64, which string, p *tape.Payload, inline *room) *Payload {
	out := payloadOf(p, nil)
	if out != nil && out.Text != nil && !inline.take(p.Len) {
		return &Payload{Digest: which + strconv.FormatUint(seq, 10), Size: p.Len}
	}
	return out
}

// stood adds what the run found at the path.
func (f *File) stood(e *files.Entry) {
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

// standsInRecord reports whether a payload has a name of content.
func standsInRecord(name string) bool {
	return strings.HasPrefix(name, recordOf) || strings.HasPrefix(name, beforeOf)
}

// inRecord returns what a record has of the file that it is about.
func (r *taped) inRecord(name string) ([]byte, error) {
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

// recordedCauses are those that the tape itself names: the process, the tool server.
func (l *listing) recordedCauses(k *tape.File) []Cause {
	out := []Cause{}
	if n, ok := tape.FieldNumber(k.Extra, tape.ConversationKey); ok {
		if by := l.servers[n]; by != nil {
			out = append(out, Cause{What: "server", Seq: by.Seq, Title: by.Name, Recorded: true, Why: "the tool server wrote it"})
		}
	}
	if p := l.byID[k.SpawnID]; p != nil && k.SpawnID != 0 {
		out = append(out, Cause{What: "spawn", Seq: p.seq, Title: cutTo(p.command, maxTitle), Recorded: true, Why: "the process wrote it"})
	}
	return out
}

// lookBack is how many turns before a change are asked whether they name the file.
const lookBack = 20

// infer adds the turn, and the process, that time and names speak for.
func (l *listing) infer(name string, state *FileState) {
	n, _ := slices.BinarySearchFunc(l.turns, state.Seq, func(t *TurnRow, seq uint64) int { return cmp.Compare(t.Seq, seq) })
	if n == 0 {
		return
	}
	base := path.Base(name)
	cause, since := l.turns[n-1], l.turns[n-1]
	why := "it is the last answer before the change"
	for _, t := range slices.Backward(l.turns[max(0, n-lookBack):n]) {
		if tool := l.naming(t.Seq, base); tool != "" {
			cause, why = t, fmt.Sprintf("its call of %s names %s, and no answer in between does", tool, base)
			break
		}
	}
	state.Causes = append(state.Causes, Cause{What: "turn", Seq: cause.Seq, Title: turnTitle(cause), Why: why})
	if slices.ContainsFunc(state.Causes, func(c Cause) bool { return c.What == "spawn" }) {
		return
	}
	if p := l.ran(since, state.At, base); p != nil {
		state.Causes = append(state.Causes, Cause{
			What: "spawn", Seq: p.seq, Title: cutTo(p.command, maxTitle), Why: "it ran between that answer and the change, and its arguments name " + base,
		})
	}
}

// naming returns the tool that a turn asks for with a file of that name in its arguments; "" for none.
func (l *listing) naming(seq uint64, base string) string {
	i, _ := slices.BinarySearchFunc(l.named, seq, func(n naming, seq uint64) int { return cmp.Compare(n.Seq, seq) })
	for ; i < len(l.named) && l.named[i].Seq == seq; i++ {
		if slices.Contains(l.named[i].Names, base) {
			return l.named[i].Tool
		}
	}
	return ""
}

// lookAt is how many processes behind an answer are asked whether their arguments name a file.
const lookAt = 200

// ran returns the first process that ended behind an answer, and began before an instant, with a name in its arguments; nil for none.
func (l *listing) ran(since *TurnRow, until int64, name string) *spawn {
	n, _ := slices.BinarySearchFunc(l.spawns, since.Seq, func(p spawn, seq uint64) int { return cmp.Compare(p.seq, seq) })
	for i := range l.spawns[n:min(n+lookAt, len(l.spawns))] {
		p := &l.spawns[n+i]
		if p.start <= until && p.end >= since.Start+since.Latency && p.id > 1 && strings.Contains(p.command, name) {
			return p
		}
	}
	return nil
}

func turnTitle(t *TurnRow) string {
	return strings.TrimSpace(fmt.Sprintf("turn %d: %s", t.Number, cmp.Or(strings.Join(t.Tools, ", "), t.Answer)))
}

// changes are what a tape tells of files and of what may have changed them, as columns. The records of the changes themselves are read when
// somebody looks.
type changes struct {
	FileColumns          // in the order of their first change
	Where       []int64  `json:"where"` // on the tape the record of each change begins: bytes behind the one before
	Spawns      spawns   `json:"spawns"`
	Servers     []server `json:"servers"`
	Named       []naming `json:"named"`
}

// hold reports whether the columns fit each other.
func (c *FileColumns) hold() bool {
	n := 0
	for _, count := range c.Count {
		if count < 0 || count > len(c.At)-n {
			return false
		}
		n += count
	}
	return len(c.Before) == len(c.Path) && len(c.Count) == len(c.Path) && len(c.At) == n && len(c.Size) == n
}

// A changedFile is a path and what the changes at it left there, as in FileColumns.
type changedFile struct {
	path   string
	before int64
	at     []int64 // of each change, ms after the start
	size   []int64
	where  []int64 // on the tape the record of each change begins
}

// add adds a file.
func (c *FileColumns) add(f *changedFile) {
	c.Path, c.Before, c.Count, c.Size = append(c.Path, f.path), append(c.Before, f.before), append(c.Count, len(f.at)), append(c.Size, f.size...)
	for _, at := range f.at {
		c.At, c.last = append(c.At, at-c.last), at
	}
}

// all are the files that were added.
func (c *changes) all() []listedFile {
	at, where := sums(c.At), sums(c.Where)
	out, from := make([]listedFile, len(c.Path)), 0
	for i, n := range c.Count {
		to := from + n
		out[i].changedFile = changedFile{c.Path[i], c.Before[i], at[from:to], c.Size[from:to], where[from:to]}
		from = to
	}
	return out
}

// sums are numbers of which each was written as more than the one before.
func sums(more []int64) []int64 {
	out := make([]int64, len(more))
	for i, at := 0, int64(0); i < len(more); i++ {
		at += more[i]
		out[i] = at
	}
	return out
}

// changed returns the changes; nil where they cannot be read.
func (s *summary) changed() *changes {
	b, err := unpacked(s.changes)
	c := new(changes)
	if err != nil || json.Unmarshal(b, c) != nil || len(c.Path) != s.Files || !c.hold() || len(c.Where) != len(c.At) || !c.Spawns.hold() {
		return nil
	}
	return c
}

// A server is the beginning of a conversation with a tool server.
type server struct {
	Conversation uint64 `json:"conversation"`
	Seq          uint64 `json:"seq"`
	Name         string `json:"name"`
}

// spawns are processes in the order of their records, as columns.
type spawns struct {
	Seq      []int64  `json:"seq"`     // more than that before
	ID       []int64  `json:"id"`      // more than that before
	Start    []int64  `json:"start"`   // ms behind that before
	Took     []int64  `json:"took"`    // ms
	Command  []int    `json:"command"` // of Commands
	Commands []string `json:"commands"`
}

func (c *spawns) hold() bool {
	n := len(c.Seq)
	return len(c.ID) == n && len(c.Start) == n && len(c.Took) == n && len(c.Command) == n &&
		!slices.ContainsFunc(c.Command, func(i int) bool { return i < 0 || i >= len(c.Commands) })
}

// A spawn is a process: when it ran, in ms after the start.
type spawn struct {
	seq, id    uint64
	start, end int64
	command    string
}

// maxCommand bounds a command that is asked for names of files, in characters.
const maxCommand = 2000

// spawnOf is the process that a record tells of.
func spawnOf(rec *tape.Record, k *tape.ProcessSpawn) spawn {
	_, end := tape.Spanned(rec)
	command := cutTo(strings.Join(append([]string{k.Program}, k.Args...), " "), maxCommand)
	return spawn{rec.Seq, k.SpawnID, end - k.DurationMS, end, command}
}

// columnsOf makes columns of processes.
func columnsOf(all []spawn) (c spawns) {
	at, was := make(map[string]int), spawn{}
	for _, p := range all {
		c.Seq, c.ID = append(c.Seq, int64(p.seq-was.seq)), append(c.ID, int64(p.id-was.id))
		c.Start, c.Took = append(c.Start, p.start-was.start), append(c.Took, p.end-p.start)
		c.Command = append(c.Command, placeIn(at, &c.Commands, p.command))
		was = p
	}
	return c
}

// all is what columnsOf made columns of.
func (c *spawns) all() []spawn {
	out, was := make([]spawn, len(c.Seq)), spawn{}
	for i := range out {
		start := was.start + c.Start[i]
		was = spawn{was.seq + uint64(c.Seq[i]), was.id + uint64(c.ID[i]), start, start + c.Took[i], c.Commands[c.Command[i]]}
		out[i] = was
	}
	return out
}

// A naming is a call of a tool whose arguments name files.
type naming struct {
	Seq   uint64   `json:"seq"` // of the turn that asks for it
	Tool  string   `json:"tool"`
	Names []string `json:"names"` // without directories
}
