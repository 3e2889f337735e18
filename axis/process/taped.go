package process

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/arrival"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TapedOptions say how a Taped answers. Nil and zero work.
type TapedOptions struct {
	// InOrder answers each command by the next record, whatever it asks for: how a tape of another producer is replayed, whose commands
	// are compared afterwards.
	InOrder bool
	// NoStdin matches without the stdin: of a tape whose records do not say what it was.
	NoStdin bool
	// Clean brings a string or the stdin of a command that is asked for into the form in which it would stand on the tape: without its
	// secrets. Nil leaves all as it is.
	Clean func(b []byte) []byte
}

// A Taped answers commands from the process_spawn records of an event tape.
//
// A command is answered by the record of the same program, arguments, directory and stdin, and of equal ones by the next in the order in
// which they were asked for. Each record answers once.
type Taped struct {
	store   cas.Store
	inOrder bool
	noStdin bool
	clean   func([]byte) []byte
	spawns  []*spawn                     // in recorded order
	script  *lane.Player[string, *spawn] // by keyOf, as they were asked for; InOrder all have one key
	changes map[uint64][]change          // by spawn; not changed after NewTaped
}

// spawn is a record of the tape.
type spawn struct {
	Recorded
	kind  *tape.ProcessSpawn
	stdin cas.Digest
	line  int // of the script
}

// A Recorded is a command that a tape holds.
type Recorded struct {
	Seq     uint64 // of its record
	Command Command
}

// NewTaped reads the commands of a tape; records of other kinds pass by. store holds the payloads of the tape. An error is one that
// records gave.
func NewTaped(records iter.Seq2[*tape.Record, error], store cas.Store, o *TapedOptions) (*Taped, error) {
	t := &Taped{store: store, changes: make(map[uint64][]change)}
	if o != nil {
		t.inOrder, t.noStdin, t.clean = o.InOrder, o.NoStdin, o.Clean
	}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if k, ok := rec.Kind.(*tape.ProcessSpawn); ok {
			t.add(rec, k)
		}
		if f := tape.ChangedFile(rec.Kind); f != nil {
			t.changed(rec, f)
		}
	}
	asked := slices.Clone(t.spawns)
	if !t.inOrder {
		arrival.Sort(asked, func(s *spawn) uint64 { return s.kind.SpawnID })
	}
	lines := make([]lane.Line[*spawn], len(asked))
	for i, s := range asked {
		lines[i].Value, s.line = s, i
	}
	t.script = lane.NewPlayer(lines, &lane.PlayerOptions[string, *spawn]{Key: func(s *spawn) string { return t.key(&s.Command, s.stdin) }})
	return t, nil
}

// key is what the script knows a command by.
func (t *Taped) key(c *Command, stdin cas.Digest) string {
	if t.inOrder {
		return ""
	}
	return keyOf(c, stdin)
}

func (t *Taped) add(rec *tape.Record, k *tape.ProcessSpawn) {
	s := &spawn{Recorded: Recorded{Seq: rec.Seq, Command: *commandOf(rec, k)}, kind: k, stdin: noBytes}
	if k.Stdin != nil {
		s.stdin = k.Stdin.Hash
	}
	t.spawns = append(t.spawns, s)
}

// noBytes is the digest of no stdin.
var noBytes = cas.Sum(nil)

// commandOf is the command of a record, with its true bytes, without its stdin.
func commandOf(rec *tape.Record, k *tape.ProcessSpawn) *Command {
	c := (&Command{Program: k.Program, Args: k.Args, Cwd: k.Cwd}).Clone()
	for _, raw := range rec.Raw {
		name, index, _ := strings.Cut(raw.Key, ".")
		switch i, err := strconv.Atoi(index); {
		case raw.Key == "program":
			c.Program = string(raw.Bytes)
		case raw.Key == "cwd" && c.Cwd != nil:
			*c.Cwd = string(raw.Bytes)
		case name == "args" && err == nil && i >= 0 && i < len(c.Args):
			c.Args[i] = string(raw.Bytes)
		}
	}
	return c
}

// keyOf is what commands are matched by.
func keyOf(c *Command, stdin cas.Digest) string {
	b := strconv.AppendInt(nil, int64(len(c.Args)), 10)
	part := func(s string) { b = append(append(b, 0), s...) } // no NUL stands in a command
	part(c.Program)
	for _, a := range c.Args {
		part(a)
	}
	if c.Cwd != nil {
		part(*c.Cwd)
	}
	return string(append(append(b, 0), stdin[:]...))
}

// Run implements Runner. The error is a *NotTapedError, that of a payload that the tape has lost, or, beside the result, that the
// command was cancelled when it was recorded.
func (t *Taped) Run(_ context.Context, c *Command) (*Result, error) {
	asked := c.cleaned(t.clean)
	s, err := t.take(asked)
	if err != nil {
		return nil, err
	}
	res, err := s.result(t.store)
	if err == nil {
		res.Changes, err = t.changesOf(s)
	}
	if err != nil {
		return nil, fmt.Errorf("process: record %d of the tape, %s: %w", s.Seq, c, err)
	}
	return res, res.asEnded(c)
}

// take returns the record that answers a command, which it uses up.
func (t *Taped) take(c *Command) (*spawn, error) {
	stdin := cas.Sum(c.Stdin)
	if t.noStdin {
		stdin = noBytes
	}
	s, ok := t.script.Take(t.key(c, stdin), 0, nil)
	if !ok {
		return nil, t.missing(c)
	}
	return s, nil
}

// result is what the record holds of the command's end.
func (s *spawn) result(store cas.Store) (*Result, error) {
	k := s.kind
	res := &Result{ExitCode: k.ExitCode, Signal: k.Signal, Duration: time.Duration(min(max(k.DurationMS, 0), maxDurationMS)) * time.Millisecond}
	var err error
	if res.Stdout, err = bytesOf(k.Stdout, store); err != nil {
		return nil, fmt.Errorf("its stdout: %w", err)
	}
	if res.Stderr, err = bytesOf(k.Stderr, store); err != nil {
		return nil, fmt.Errorf("its stderr: %w", err)
	}
	for _, f := range k.Extra {
		if f.Name == failureKey {
			var scan jsonscan.Scanner
			scan.Reset(f.Value)
			res.Failure = scan.Text()
		}
	}
	return res, nil
}

func bytesOf(p *tape.Payload, store cas.Store) ([]byte, error) {
	if p == nil {
		return nil, nil
	}
	return p.Bytes(store)
}

// Unused lists the commands that nobody has asked for, in recorded order.
func (t *Taped) Unused() []Recorded {
	var out []Recorded
	for _, s := range t.spawns {
		if !t.script.HasCome(s.line) {
			out = append(out, s.Recorded)
		}
	}
	return out
}

// change is a record of a file that a command changed.
type change struct {
	path    string
	file    *tape.File
	deleted bool
}

// changed takes the record of a file. One that names no spawn is the program's own doing.
func (t *Taped) changed(rec *tape.Record, f *tape.File) {
	if f.SpawnID == 0 || f.IsPlace() {
		return
	}
	_, deleted := rec.Kind.(*tape.FileDelete)
	c := change{path: f.Path, file: f, deleted: deleted}
	for _, raw := range rec.Raw {
		if raw.Key == "path" {
			c.path = string(raw.Bytes)
		}
	}
	t.changes[f.SpawnID] = append(t.changes[f.SpawnID], c)
}

// changesOf lists what a recorded command changed. A file without its content on the tape is an error: what reads it later cannot be
// answered.
func (t *Taped) changesOf(s *spawn) ([]Change, error) {
	if s.kind.SpawnID == 0 {
		return nil, nil
	}
	var out []Change
	for _, c := range t.changes[s.kind.SpawnID] {
		if c.deleted {
			out = append(out, Change{Path: c.path, Deleted: true})
			continue
		}
		content := c.file.Content
		if content == nil {
			content = tape.PayloadOf(c.file.ContentHash, c.file.LenBytes)
		}
		b, err := content.Bytes(t.store)
		if err != nil {
			return nil, fmt.Errorf("%s, which it wrote: %w", c.path, err)
		}
		if c.file.Mode == linkMode {
			out = append(out, Change{Path: c.path, Target: string(b)})
			continue
		}
		out = append(out, Change{Path: c.path, Content: b, Perm: permOfMode(c.file.Mode)})
	}
	return out, nil
}

// linkMode is the mode of a symbolic link as Git writes it.
const linkMode = "120000"

// permOfMode is the permission of a mode.
func permOfMode(mode string) fs.FileMode {
	if n, err := strconv.ParseUint(mode, 8, 32); err == nil {
		return fs.FileMode(n).Perm()
	}
	return 0o644
}

// A NotTapedError is a command that the event tape does not answer.
type NotTapedError struct {
	Asked   Command
	Nearest *Recorded // the recorded command that is most like it; nil for a tape without any
	Fields  []string  // in which the two differ: "program", "args", "cwd", "stdin"; none for the same one, asked once too often
	Times   int       // how often the same command was recorded
}

// Error implements error.
func (e *NotTapedError) Error() string {
	why := "the tape has no command at all"
	switch n := e.Nearest; {
	case n != nil && e.Times > 0:
		why = fmt.Sprintf("it was recorded %s, last as record %d, and was asked for once more", lane.Times(e.Times), n.Seq)
	case n != nil:
		why = fmt.Sprintf("nearest is record %d: %s (%s)", n.Seq, &n.Command, differ(e.Fields))
	}
	return fmt.Sprintf("process: not on the tape: %s; %s; a replay answers only what was recorded", &e.Asked, why)
}

// missing explains a command that is not on the tape.
func (t *Taped) missing(c *Command) error {
	e := &NotTapedError{Asked: *c}
	stdin := cas.Sum(c.Stdin)
	key := keyOf(c, stdin)
	best := -1
	for _, s := range t.spawns {
		if t.inOrder || keyOf(&s.Command, s.stdin) == key {
			e.Times++
			e.Nearest, e.Fields = &s.Recorded, nil
			continue
		}
		if e.Times > 0 {
			continue
		}
		if likeness := t.likeness(s, c); likeness > best {
			best, e.Nearest, e.Fields = likeness, &s.Recorded, s.differs(c, stdin)
		}
	}
	return e
}

// differs lists the fields in which a command is not the recorded one.
func (s *spawn) differs(c *Command, stdin cas.Digest) []string {
	fields := differing(c, &s.Command, false)
	if s.stdin != stdin {
		fields = append(fields, "stdin")
	}
	return fields
}

// likeness is larger the more alike the two are: by the program and the arguments, then by whether anybody asked for it yet.
func (t *Taped) likeness(s *spawn, c *Command) int {
	words := func(c *Command) []string { return append([]string{path.Base(c.Program)}, c.Args...) }
	n := 2 * shared(words(&s.Command), words(c))
	if !t.script.HasCome(s.line) {
		n++
	}
	return n
}

// shared counts the words that a and b have in common at their beginning and at their end.
func shared(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	end := 0
	for end < min(len(a), len(b))-n && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return n + end
}

// PlayerOptions say how a Player compares. Nil and zero work.
type PlayerOptions struct {
	// Clean brings a string of a command into the form in which it is compared: without its secrets, which one who records a process
	// tape keeps off it. Nil compares all as it is.
	Clean func(b []byte) []byte
}

// A Player answers commands from the calls of a process tape, in their order.
//
// A call answers a command with the same program and arguments, in the same directory or, where the call has none, in any. A command
// that the next call does not answer uses it not up.
type Player struct {
	calls  []Call
	clean  func([]byte) []byte
	mu     sync.Mutex                    // held by who looks at the next call
	script *lane.Player[struct{}, *Call] // all have one key
}

// NewPlayer returns a Player of calls, which must not change while it is used.
func NewPlayer(calls []Call, o *PlayerOptions) *Player {
	lines := make([]lane.Line[*Call], len(calls))
	for i := range calls {
		lines[i].Value = &calls[i]
	}
	p := &Player{calls: calls, script: lane.NewPlayer(lines, &lane.PlayerOptions[struct{}, *Call]{Key: func(*Call) struct{} { return struct{}{} }})}
	if o != nil {
		p.clean = o.Clean
	}
	return p
}

// Run implements Runner. The error is a *MismatchError, an *ExhaustedError, or, beside the result, that the command was cancelled when
// it was recorded.
func (p *Player) Run(_ context.Context, c *Command) (*Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, ok := p.script.Find(struct{}{}, 0, nil)
	if !ok {
		return nil, &ExhaustedError{Number: len(p.calls) + 1, Asked: *c.Clone(), Calls: len(p.calls)}
	}
	call := &p.calls[next]
	fields := call.differs(c, nil)
	if fields != nil && p.clean != nil {
		fields = call.differs(c, p.clean)
	}
	if fields != nil {
		return nil, &MismatchError{Number: next + 1, Asked: *c.Clone(), Has: *call, Fields: fields}
	}
	p.script.Came(next)
	res := call.result()
	return res, res.asEnded(c)
}

// Unused lists the calls that no command has used up, and the number of the first of them, from 1.
func (p *Player) Unused() (first int, calls []Call) {
	next, ok := p.script.Find(struct{}{}, 0, nil)
	if !ok {
		next = len(p.calls)
	}
	return next + 1, slices.Clone(p.calls[next:])
}

// A MismatchError is a command that is not the next one of the process tape.
type MismatchError struct {
	Number int // of the call on the process tape, from 1
	Asked  Command
	Has    Call
	Fields []string // those that differ: "program", "args", "cwd"
}

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("process: call %d: asked for %s; the process tape has %s (%s); change the one or the other, or "+
		"record the process tape anew (--processes record=OUT, Config.Processes.Record)",
		e.Number, &e.Asked, e.Has.command(), differ(e.Fields))
}

// differ says of fields that they differ.
func differ(fields []string) string {
	if len(fields) == 1 && fields[0] != "args" {
		return fields[0] + " differs"
	}
	return strings.Join(fields, " and ") + " differ"
}

// An ExhaustedError is a command that comes after the last call of the process tape.
type ExhaustedError struct {
	Number int // of the call that would have answered, from 1
	Asked  Command
	Calls  int // how many the process tape has
}

// Error implements error.
func (e *ExhaustedError) Error() string {
	has := "no call"
	switch {
	case e.Calls == 1:
		has = "one call, which is used up"
	case e.Calls > 1:
		has = fmt.Sprintf("%d calls, which are used up", e.Calls)
	}
	return fmt.Sprintf("process: call %d: asked for %s; the process tape has %s; add this one, or record the process tape anew "+
		"(--processes record=OUT, Config.Processes.Record)", e.Number, &e.Asked, has)
}

// A Keeper passes commands to another Runner and keeps what came of them, for a process tape.
type Keeper struct {
	next Runner

	mu    sync.Mutex // guards calls
	calls []*Call    // in the order in which they were asked for; nil for one that has no result
}

// NewCalls returns a Keeper in front of next.
func NewCalls(next Runner) *Keeper { return &Keeper{next: next} }

// Run implements Runner.
func (k *Keeper) Run(ctx context.Context, c *Command) (*Result, error) {
	k.mu.Lock()
	place := len(k.calls)
	k.calls = append(k.calls, nil)
	k.mu.Unlock()
	res, err := k.next.Run(ctx, c)
	if res != nil {
		call := callOf(c, res)
		k.mu.Lock()
		k.calls[place] = &call
		k.mu.Unlock()
	}
	return res, err
}

// Calls lists what was kept so far, in the order in which it was asked for: that in which a Player answers.
func (k *Keeper) Calls() []Call {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := []Call{}
	for _, c := range k.calls {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}
