package testbench

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// A Config says where the inputs of a run come from. The zero value is hermetic: a clock that stands still at
// 2026-01-01T00:00:00Z, an empty tree of files in memory, random numbers of seed 0, no variables of the environment, and
// every other axis denied: a call fails with what was asked for and how to give it.
//
// A Config is read once, by New, Open or Replay, and may be used for any number of benches.
type Config struct {
	Name string   // what runs: the header's script_path. An absolute path is kept by its last element; New takes t.Name()
	Args []string // its arguments: the header's argv

	Clock     Clock
	Seed      uint64 // of Bench.Random
	LLM       LLM
	Files     Files
	Processes Processes
	MCP       string // a recording or a tape that answers calls of MCP tools; "" denies them
	Net       Net
	Env       map[string]string // what Bench.Getenv sees, nothing else

	// Emit is the path of the run's tape; what stands there is overwritten. Payloads that do not fit into a record lie in the
	// directory of that name with ".cas" behind it. "" writes none.
	Emit string
	// MaxTape is how many bytes Emit may write, its payloads too; 0 is DefaultMaxTape. What asks on then gets a *TapeLimitError, and
	// the tape holds what came before.
	MaxTape int64
	// EmitTo gets the run's tape where Emit is "". Payloads that do not fit into a record are in Bench.Store.
	EmitTo io.Writer
	// Keep keeps the tape in memory where neither Emit nor EmitTo is set: Golden, Verdict and Bench.Records read it. New and
	// Replay set it.
	Keep bool

	// Secrets are values that no tape may hold, by name. Values of Env whose names say that they are secret (a KEY, TOKEN,
	// SECRET, PASSWORD) and shapes that are known (package scrub) need not be named.
	Secrets map[string]string

	// OwnReadings has a replay answer a reading of the clock, or of random numbers, that its tape does not hold from its own clock, which
	// stands still, and from Seed, where it would else end. The verdict notes how many there were. It is for another program with the same
	// logic, whose runtime reads what the recorded one did not, and for a Verdict in mode outcome, in which no reading counts.
	OwnReadings bool

	// Unused lets rules and recorded calls that nobody asked for be. Else they fail the test of New.
	Unused bool
}

// Clock is the run's time.
type Clock struct {
	Real  bool      // the clock of this machine in place of one that stands still until somebody waits
	Start time.Time // of the clock that stands still; zero is 2026-01-01T00:00:00Z
}

// LLM says who answers calls of a model. Of Fixture, Rules, Source and Live at most one is set; none denies every call.
type LLM struct {
	Fixture string         // a file of rules, JSONL
	Rules   []fixture.Rule // rules
	Source  fixture.Source // anything
	Live    bool           // the providers, with the keys of the host's environment
	Record  string         // every answer becomes a rule of this file, which is written anew; without a source the providers answer
}

// Files is the tree of files that the run sees.
type Files struct {
	Dir       string // a directory that is read and never written; "" is an empty tree
	Diff      string // Close writes what the run changed to this file, as a unified diff that git apply takes
	WriteBack bool   // Close writes what the run changed into Dir, unless it failed (Bench.Fail)
	Read      string // of Replay: a directory with the files that the run read, for a tape that has their hashes alone; "" is none
}

// Processes says what answers commands. Of Tape, Calls, Runner and Live at most one is set; none denies every command.
type Processes struct {
	Tape   string         // a process tape: *.process-tape.json
	Calls  []process.Call // the calls of one
	Runner process.Runner // anything
	Live   bool           // this machine
	Record string         // Close writes a process tape of what ran to this file; without a source this machine runs the commands
}

// Net says what HTTP requests reach: what Tape does not answer goes out where Allow names its host. Nothing set denies every request.
type Net struct {
	Tape      string            // a recording or a tape that answers
	Allow     []string          // hosts, host or host:port, that are asked for real
	Transport http.RoundTripper // who sends what is allowed; without Allow and Tape it answers everything
}

// DefaultMaxTape is what a tape may take on the disk, in bytes, where Config.MaxTape says nothing.
const DefaultMaxTape = 4 << 30

func (c *Config) maxTape() int64 {
	if c.MaxTape > 0 {
		return c.MaxTape
	}
	return DefaultMaxTape
}

// A ConfigError says what of a Config cannot be used.
type ConfigError struct {
	Field string // its name in a Config: "LLM.Fixture"
	Err   error
}

// Error implements error.
func (e *ConfigError) Error() string { return "testbench: Config." + e.Field + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// A TapeLimitError says that a run's tape has become too long: the program asks without end, or Config.MaxTape is too little for it.
type TapeLimitError struct{ Limit int64 }

// Error implements error.
func (e *TapeLimitError) Error() string {
	return fmt.Sprintf("the run's tape and its payloads are longer than %d bytes (Config.MaxTape): does the program ask without end?", e.Limit)
}

// A file is one that a Config names.
type file struct {
	field, what, path string
	at                place
}

// checkPaths refuses to write over what the run reads, its program included, and two outputs at one path.
func (c *Config) checkPaths() error {
	outputs := named([]file{
		{field: "Emit", what: "tape", path: c.Emit}, {field: "Files.Diff", what: "diff", path: c.Files.Diff},
		{field: "LLM.Record", what: "recorded rules", path: c.LLM.Record},
		{field: "Processes.Record", what: "recorded process tape", path: c.Processes.Record},
	})
	if len(outputs) == 0 {
		return nil
	}
	taken := named([]file{
		{what: "program", path: c.Name}, {what: "rules", path: c.LLM.Fixture}, {what: "process tape", path: c.Processes.Tape},
		{what: "tape of MCP", path: c.MCP}, {what: "tape of the network", path: c.Net.Tape},
	})
	for i := range taken {
		taken[i].at = placeOf(taken[i].path)
	}
	for _, out := range outputs {
		if err := regular.Check(out.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &ConfigError{out.field, err}
		}
		out.at = placeOf(out.path)
		if i := slices.IndexFunc(taken, func(other file) bool { return other.at.is(out.at) }); i >= 0 {
			return &ConfigError{out.field, fmt.Errorf("it would write over %s, which is the run's %s: give another path", out.path, taken[i].what)}
		}
		taken = append(taken, out)
	}
	return nil
}

// named returns those that have a path, and uses the memory of all.
func named(all []file) []file {
	return slices.DeleteFunc(all, func(f file) bool { return f.path == "" })
}

// A place is a path and what stands there.
type place struct {
	path string
	st   fs.FileInfo // nil where nothing does, or nobody can tell
}

func placeOf(path string) place {
	st, _ := os.Stat(path) // of one that has none its name tells
	return place{path, st}
}

// is reports whether p and q are one file, or would be.
func (p place) is(q place) bool {
	if p.st != nil && q.st != nil {
		return os.SameFile(p.st, q.st)
	}
	if p.st != nil || q.st != nil {
		return false
	}
	a, errA := filepath.Abs(p.path)
	b, errB := filepath.Abs(q.path)
	return errA == nil && errB == nil && a == b
}
