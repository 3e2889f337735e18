package gate

import (
	"context"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
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
	Changed *Changes // tries alone what depends on one of these; nil is all
	Report  func(*Result)

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

// Run tries cases, several at once. What one meets is in its Results; the error is ctx's, and the Summary holds those that had ended by
// then.
func Run(ctx context.Context, cases []Case, o *Options) (*Summary, error) {
	if o == nil {
		o = new(Options)
	}
	begun := time.Now()
	all := make([][]*Result, len(cases))
	var reporting sync.Mutex
	recording.Each(ctx, len(cases), o.Jobs, func(i int) {
		results := o.try(ctx, &cases[i])
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
		}
	})
	s := &Summary{Took: time.Since(begun)}
	for _, results := range all {
		if results == nil {
			s.Left++
		}
		s.Results = append(s.Results, results...)
	}
	return s, ctx.Err()
}
