package tape

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// ClockRead is one reading of a clock.
type ClockRead struct {
	Source  string // "wall" or "monotonic"
	ValueMS int64
	Extra   []Field
}

// Name implements Kind.
func (*ClockRead) Name() string { return "clock_read" }

func (k *ClockRead) extra() *[]Field { return &k.Extra }

func (k *ClockRead) fields(c *codec) {
	c.clock("source", &k.Source)
	number(c, "value_ms", &k.ValueMS, required)
}

// ClockSleep is one sleep.
type ClockSleep struct {
	DurationMS int64
	Extra      []Field
}

// Name implements Kind.
func (*ClockSleep) Name() string { return "clock_sleep" }

func (k *ClockSleep) extra() *[]Field { return &k.Extra }

func (k *ClockSleep) fields(c *codec) {
	c.duration("duration_ms", &k.DurationMS)
}

// File is what FileRead, FileWrite and FileDelete hold.
type File struct {
	Path          string     // relative to the work tree with /; ~/…; $TMP/…; else absolute
	ContentHash   cas.Digest // not of FileDelete
	LenBytes      int64      // not of FileDelete
	Content       *Payload
	Before        *Payload
	ContentDigest cas.Digest // after masking and renumbering
	Mode          string     // octal Unix mode with the type: "100644", "040755"; of a link as Git writes it, "120000"
	SpawnID       uint64     // 0 for none
	Extra         []Field
}

// IsPlace reports whether what stands there has no content: it is a directory or a FIFO.
func (f *File) IsPlace() bool {
	return strings.HasPrefix(f.Mode, "04") || strings.HasPrefix(f.Mode, "01")
}

// walkFile walks the keys of a file that is there.
func (f *File) walkFile(c *codec) {
	c.text("path", &f.Path, required)
	c.hash("content_hash", &f.ContentHash)
	c.unsigned("len_bytes", &f.LenBytes)
	f.walkContent(c)
}

// walkContent walks the keys that recordings add.
func (f *File) walkContent(c *codec) {
	c.payload("content", &f.Content, optional)
	c.payload("before", &f.Before, optional)
	c.digest("content_digest", &f.ContentDigest, optional)
	c.text("mode", &f.Mode, optional)
	number(c, "spawn_id", &f.SpawnID, optional)
}

// FileRead is one file that the run read. ContentHash alone never requires a blob.
type FileRead struct{ File }

// Name implements Kind.
func (*FileRead) Name() string { return "file_read" }

func (k *FileRead) extra() *[]Field { return &k.Extra }

func (k *FileRead) fields(c *codec) {
	k.walkFile(c)
}

// FileWrite is one file that the run wrote.
type FileWrite struct{ File }

// Name implements Kind.
func (*FileWrite) Name() string { return "file_write" }

func (k *FileWrite) extra() *[]Field { return &k.Extra }

func (k *FileWrite) fields(c *codec) {
	k.walkFile(c)
}

// FileDelete is one file that the run deleted. A tape of another producer holds Path alone.
type FileDelete struct{ File }

// Name implements Kind.
func (*FileDelete) Name() string { return "file_delete" }

func (k *FileDelete) extra() *[]Field { return &k.Extra }

func (k *FileDelete) fields(c *codec) {
	c.text("path", &k.Path, required)
	k.walkContent(c)
}

// ProcessSpawn is one process from its first successful execve to its end. The recorded program itself is the last one
// on its tape.
type ProcessSpawn struct {
	Program       string
	Args          []string
	Cwd           *string
	ExitCode      int // 128+n on death by signal n
	DurationMS    int64
	Stdout        *Payload
	Stderr        *Payload
	SpawnID       uint64 // 0 for none
	ParentSpawnID uint64
	Signal        string // "SIGTERM"; "" for none
	Stdin         *Payload
	StdoutDigest  cas.Digest // after masking and renumbering
	StderrDigest  cas.Digest
	PID           int      // as the process knows itself; 0 where that is not known
	Times         *Payload // wall times that it read (docs/reference/tape.md); nil where that is not known
	Ticks         *Payload // the same of the monotonic clock
	Answers       *Payload // what the kernel told it of itself (docs/reference/tape.md); nil for nothing
	Extra         []Field
}

// Name implements Kind.
func (*ProcessSpawn) Name() string { return "process_spawn" }

func (k *ProcessSpawn) extra() *[]Field { return &k.Extra }

func (k *ProcessSpawn) fields(c *codec) {
	c.text("program", &k.Program, required)
	c.texts("args", &k.Args, required)
	c.textOrNull("cwd", &k.Cwd)
	number(c, "exit_code", &k.ExitCode, required)
	c.duration("duration_ms", &k.DurationMS)
	c.payload("stdout_payload", &k.Stdout, required)
	c.payload("stderr_payload", &k.Stderr, required)
	number(c, "spawn_id", &k.SpawnID, optional)
	number(c, "parent_spawn_id", &k.ParentSpawnID, optional)
	c.text("signal", &k.Signal, optional)
	c.payload("stdin_payload", &k.Stdin, optional)
	c.digest("stdout_digest", &k.StdoutDigest, optional)
	c.digest("stderr_digest", &k.StderrDigest, optional)
	number(c, "pid", &k.PID, optional)
	c.payload("times", &k.Times, optional)
	c.payload("ticks", &k.Ticks, optional)
	c.payload("answers", &k.Answers, optional)
}
