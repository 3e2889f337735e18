package script

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// Limits of a run where Options says nothing.
const (
	DefaultSteps   = 200_000_000     // of the interpreter: some seconds
	DefaultMemory  = 512 << 20       // bytes
	DefaultTimeout = 5 * time.Minute // of this machine's time, whatever the script's clock says
)

// Options are how a script runs. Nil and the zero value work.
type Options struct {
	Steps   uint64        // of the interpreter, 0 is DefaultSteps
	Memory  int64         // bytes by which the heap of this process may grow meanwhile, 0 is DefaultMemory
	Timeout time.Duration // of real time, 0 is DefaultTimeout
	Grace   time.Duration // how long a step may go on when that is over, before it is left behind; 0 is 2 s
	Print   io.Writer     // gets what log and print say, a line each; nil drops it
	Args    []string      // what the entry is called with; nil is the bench's
	Entry   string        // the function to call, "" is main
}

// of returns the options with what they leave out, for a run on b.
func (o *Options) of(b *testbench.Bench) *Options {
	var all Options
	if o != nil {
		all = *o
	}
	all.Steps = cmp.Or(all.Steps, DefaultSteps)
	all.Memory = cmp.Or(max(all.Memory, 0), DefaultMemory)
	all.Timeout = cmp.Or(max(all.Timeout, 0), DefaultTimeout)
	all.Grace = cmp.Or(max(all.Grace, 0), 2*time.Second)
	all.Entry = cmp.Or(all.Entry, "main")
	if all.Args == nil {
		all.Args = b.Args()
	}
	return &all
}

// Result is what a script gave back.
type Result struct {
	JSON       []byte // what the entry returned; null where it returned None
	Text       string // the same for people: a string as it is, anything else as JSON; "" for None
	Steps      uint64 // of the interpreter
	Assertions int    // that held
}

// Fprint writes what the command prints: Text and a line's end, nothing where the script returned None.
func (r *Result) Fprint(w io.Writer) error {
	if string(r.JSON) == "null" {
		return nil
	}
	_, err := fmt.Fprintln(w, r.Text)
	return err
}

// Run runs the script at path on b: its own statements, then its entry, then what it gave to on_finish. The bench stays open.
//
// An error is an *Error with the place; behind it an *AssertionError, a *LimitError, or what a piece of the bench refused with. The
// script has ended when Run returns, but for one that is in a step without an end when its time is over.
func Run(ctx context.Context, b *testbench.Bench, path string, o *Options) (*Result, error) {
	return newRun(b, o.of(b)).start(ctx, path)
}

// Tests lists the functions of a script that are tests, in the order of the file: those at the top whose names begin with "test_"
// and that take nothing. The script is read, not run. A test that would never run is an error: one with parameters, or of a name
// that stands twice.
func Tests(path string) ([]string, error) {
	src, err := readSource(path)
	if err != nil {
		return nil, err
	}
	name := filepath.ToSlash(path)
	f, err := parseForNames(name, src)
	var names []string
	if err == nil {
		names, err = testNames(f)
	}
	if err != nil {
		return nil, compileError(err, map[string][]byte{name: src})
	}
	return names, nil
}

func readSource(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}

// readBounded reads one byte more than a script may have; checkSource refuses it then.
func readBounded(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxSource+1)) }
