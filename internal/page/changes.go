package page

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

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
