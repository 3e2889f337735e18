package process

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/arrival"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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

	mu     sync.Mutex          // guards what follows, and spawn.used
	spawns []*spawn            // in recorded order
	queues map[string][]*spawn // by keyOf, as they were asked for
	next   int                 // InOrder: index of the next

	changes map[uint64][]change // by spawn; not changed after NewTaped
}

// spawn is a record of the tape.
type spawn struct {
	Recorded
	kind  *tape.ProcessSpawn
	stdin cas.Digest
	used  bool
}

// A Recorded is a command that a tape holds.
type Recorded struct {
	Seq     uint64 // of its record
	Command Command
}

// NewTaped reads the commands of a tape; records of other kinds pass by. store holds the payloads of the tape. An error is one that
// records gave.
func NewTaped(records iter.Seq2[*tape.Record, error], store cas.Store, o *TapedOptions) (*Taped, error) {
	t := &Taped{store: store, queues: make(map[string][]*spawn), changes: make(map[uint64][]change)}
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
	arrival.Sort(asked, func(s *spawn) uint64 { return s.kind.SpawnID })
	for _, s := range asked {
		key := keyOf(&s.Command, s.stdin)
		t.queues[key] = append(t.queues[key], s)
	}
	return t, nil
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

// asEnded is the error of a recorded command that its caller did not wait for.
func (r *Result) asEnded(c *Command) error {
	if r.Failure == FailureCancelled {
		return fmt.Errorf("process: %s: it was cancelled when it was recorded: %w", c, context.Canceled)
	}
	return nil
}

// cleaned is a copy of c without its secrets, as clean takes them out; nil leaves them.
func (c *Command) cleaned(clean func([]byte) []byte) *Command {
	out := c.Clone()
	if clean == nil {
		return out
	}
	text := func(s string) string { return string(clean([]byte(s))) }
	out.Program = text(out.Program)
	for i, a := range out.Args {
		out.Args[i] = text(a)
	}
	if out.Cwd != nil {
		*out.Cwd = text(*out.Cwd)
	}
	if len(out.Stdin) > 0 {
		out.Stdin = clean(out.Stdin)
	}
	return out
}

// take returns the record that answers a command, which it uses up.
func (t *Taped) take(c *Command) (*spawn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inOrder {
		if t.next == len(t.spawns) {
			return nil, t.missing(c)
		}
		t.next++
		s := t.spawns[t.next-1]
		s.used = true
		return s, nil
	}
	stdin := cas.Sum(c.Stdin)
	if t.noStdin {
		stdin = noBytes
	}
	key := keyOf(c, stdin)
	queue := t.queues[key]
	if len(queue) == 0 {
		return nil, t.missing(c)
	}
	t.queues[key] = queue[1:]
	queue[0].used = true
	return queue[0], nil
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
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Recorded
	for _, s := range t.spawns {
		if !s.used {
			out = append(out, s.Recorded)
		}
	}
	return out
}
