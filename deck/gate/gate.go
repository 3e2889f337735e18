// Package gate replays the recordings and scripts below some paths, several at once, and says which of them hold: what a pull request
// is gated on.
//
// Goals: a directory full of recordings, packed or not, is one question with one answer. Each gets a status of its own, whatever
// becomes of the others: one that hangs, is damaged, was written by a newer version or whose program is not there stops nobody. Nothing
// on the disk changes: a packed recording is opened in a temporary directory.
//
// Not goals: recording, taking a new run as the reference, judging: package fidelity does that.
//
// What a case is held to stands in the nearest tapedeck.yaml beside its recording or above it, up to the top of its repository:
// masks, headers and side traffic as for every recording, which hold here in place of those of the recorded work tree, and
//
//	test:
//	  mode: semantic                # what must match
//	  watch: ['~/.agent/*']         # paths that gate too
//	  timeout: 2m                   # of one replay
//	  expect:                       # divergences that are known
//	    - diverges: goodbye.txt     # its category, or a part of its message
//	      recordings: smoke-*       # names of recordings, as path.Match has them; all
//	      reason: the prompt changed on purpose
//	      until: 2027-03-01         # from that day on it is red again
//
// Ordering: results are given in the order in which they end, a Summary has them in that of their paths. Each replay has an own jail,
// work tree, clock and tape (package deck); nothing is shared between two but the processors.
//
// Reports: JUnit (what junit-10.xsd of Jenkins takes), SARIF 2.1.0, annotations and the step summary of GitHub's workflows.
package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

// A Status is how a case ended.
type Status string

// How cases end. What is Unsure holds as far as it was looked at; Expected diverged as tapedeck.yaml says that it does.
const (
	Faithful  Status = "faithful"
	Unsure    Status = "unsure"
	Expected  Status = "expected"
	Diverged  Status = "diverged"
	Hangs     Status = "hangs"      // its time was up
	Damaged   Status = "damaged"    // it holds what no recorder writes, or lacks what one does
	Newer     Status = "newer"      // a newer version wrote it
	NoProgram Status = "no-program" // what it ran is not on this machine
	NoJail    Status = "no-jail"    // the jail cannot be made on this machine
	Broken    Status = "broken"     // anything else that kept it from being tried
	Skipped   Status = "skipped"    // nothing that it depends on has changed
)

// Exit is the exit status that a case asks for: 0 where it holds, 2 where it diverged, 1 where it could not be tried. strict has what
// is unsure diverge.
func (s Status) Exit(strict bool) int {
	switch s {
	case Faithful, Expected, Skipped:
		return 0
	case Unsure:
		if !strict {
			return 0
		}
		return 2
	case Diverged:
		return 2
	}
	return 1
}

// A Result is one case that was tried.
type Result struct {
	Case
	Name   string // of a script's test FILE:FUNCTION, else the path
	Status Status
	Took   time.Duration
	Why    string           // for people, one line: the verdict, or the error
	First  string           // for people, several lines: the first divergence with its cause, or where a script failed
	Output string           // the end of what the program wrote to stderr, where it could not be compared
	Report *fidelity.Report // of a recording that was replayed, else nil
	Expect []Expectation
	Err    error `json:"-"` // what kept it from being tried
}

// Options say how Run tries cases. Nil and zero work.
type Options struct {
	Jobs    int           // how many at once; 0 is as many as there are processors
	Timeout time.Duration // of one case whose tapedeck.yaml names none; 0 is DefaultTimeout
	TreeNow bool          // programs run over the work tree as it is on the disk
	TreeAt  string        // where that lies; "" is the checkout that the recording lies in, or else the recorded path
	Mode    *fidelity.Mode
	Watch   []string // paths that gate too
	Own     []string // as in deck.ReplayOptions
	Env     []string // likewise
	Changed *Changes // tries alone what depends on one of these; nil is all
	Report  func(*Result)

	Rules string // the directory of the tapedeck.yaml that all go by; "" is the nearest to each
	Plain bool   // nothing that tapedeck.yaml says of tests holds

	ConfigDir string    // of the project's key, as in deck.ReplayOptions
	Now       time.Time // which day it is for expectations; zero is today
}

// DefaultTimeout is how long one case may take.
const DefaultTimeout = 5 * time.Minute

// A Summary is what Run did, in the order of the cases.
type Summary struct {
	Results []*Result
	Left    int // cases that an interruption kept from being tried
	Took    time.Duration
}

// Count is how many cases ended so.
func (s *Summary) Count(status Status) (n int) {
	for _, r := range s.Results {
		if r.Status == status {
			n++
		}
	}
	return n
}

// Exit is the exit status of all: 1 over 2 over 0.
func (s *Summary) Exit(strict bool) (exit int) {
	if s.Left > 0 {
		return 1
	}
	for _, r := range s.Results {
		switch r.Status.Exit(strict) {
		case 1:
			return 1
		case 2:
			exit = 2
		}
	}
	return exit
}

// Run tries cases, several at once. What one meets is in its Results; the error is ctx's, or suite.ErrLeftBehind, and the Summary holds those
// that had ended by then.
func Run(ctx context.Context, cases []Case, o *Options) (*Summary, error) {
	if o == nil {
		o = new(Options)
	}
	return o.run(ctx, cases, o.try)
}

func (o *Options) run(ctx context.Context, cases []Case, try func(context.Context, *Case) []*Result) (*Summary, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	begun := time.Now()
	all := make([][]*Result, len(cases))
	var reporting sync.Mutex
	recording.Each(ctx, len(cases), o.Jobs, func(i int) {
		results := try(ctx, &cases[i])
		if ctx.Err() != nil {
			return // what it met is that it was interrupted
		}
		all[i] = results
		reporting.Lock()
		defer reporting.Unlock()
		for _, r := range results {
			if o.Report != nil {
				o.Report(r)
			}
			if errors.Is(r.Err, suite.ErrLeftBehind) { // it goes on, and takes time and memory from the others
				stop(r.Err)
			}
		}
	})
	s := &Summary{Took: time.Since(begun)}
	for _, results := range all {
		if results == nil {
			s.Left++
		}
		s.Results = append(s.Results, results...)
	}
	return s, context.Cause(ctx)
}

// A Kind is what a case is made of.
type Kind string

// A recording in its directory, a packed one, a file of scripts' tests.
const (
	Recording Kind = "recording"
	Packed    Kind = "packed"
	Script    Kind = "script"
)

// A Case is one thing to try.
type Case struct {
	Path string // as it was found: below a path that was given
	Kind Kind
}

// Find returns what can be tried at and below paths, sorted, each once. Directories whose name begins with a dot are passed over
// where they are no path themselves, and so are links, node_modules and the insides of recordings. The library (.tapedeck) of a path is
// looked into where that holds nothing else. The error is that of the file system, or says which path holds nothing.
func Find(paths ...string) ([]Case, error) {
	var all []Case
	for _, path := range paths {
		found, err := find(filepath.Clean(path))
		if err != nil {
			return nil, err
		}
		if in := filepath.Join(path, library.Name); len(found) == 0 && recording.IsDir(in) {
			if found, err = find(in); err != nil {
				return nil, err
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no recording, packed recording or script's tests (*%s) here", path, suite.Suffix)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Case) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(all), nil
}

// packedSuffix ends the names of packed recordings, mostly.
const packedSuffix = ".tar.zst"

// isRecording reports whether a directory is a recording, or was one: what lacks its manifest alone is damaged.
func isRecording(dir string) bool {
	return library.HoldsRecording(dir) || recording.Exists(filepath.Join(dir, recording.TapeName)) && recording.IsDir(filepath.Join(dir, recording.TapeName+tape.StoreSuffix))
}

// isPlaceholder reports whether a file has the name of a packed recording and is empty, or what stands for it where Git LFS fetched nothing.
func isPlaceholder(path string) bool {
	if !strings.HasSuffix(path, packedSuffix) {
		return false
	}
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const pointer = "version https://git-lfs"
	head := make([]byte, len(pointer))
	n, _ := io.ReadFull(f, head)
	return n == 0 || string(head) == pointer
}

func find(top string) (found []Case, err error) {
	if _, err := os.Stat(top); err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(top); err == nil && library.HoldsRecording(real) {
		return []Case{{top, Recording}}, nil
	}
	walk := top
	if recording.IsDir(top) {
		walk += string(filepath.Separator) // through a link
	}
	err = filepath.WalkDir(walk, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != walk && (strings.HasPrefix(name, ".") || name == "node_modules" || strings.HasSuffix(name, ".cas")):
			return filepath.SkipDir
		case d.IsDir() && isRecording(path):
			found = append(found, Case{path, Recording})
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(name, suite.Suffix) && d.Type().IsRegular():
			found = append(found, Case{path, Script})
		case (d.Type().IsRegular() || path == top) && (library.LooksPacked(path) || strings.HasSuffix(name, ".rec"+packedSuffix) || isPlaceholder(path)):
			found = append(found, Case{path, Packed})
		}
		return nil
	})
	return found, err
}
