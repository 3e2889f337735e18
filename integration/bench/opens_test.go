package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// opens is the argument of the job that opens a file for reading and closes it, over and over.
type opens struct {
	Path   string
	Times  int
	Result string
}

// doOpens is the job; its result is how long that took, without the start of the process, in ns.
func doOpens(arg []byte) error {
	var o opens
	if err := json.Unmarshal(arg, &o); err != nil {
		return err
	}
	begun := time.Now()
	for range o.Times {
		f, err := syscall.Open(o.Path, syscall.O_RDONLY, 0) // os.Open would add calls of its own
		if err != nil {
			return err
		}
		if err := syscall.Close(f); err != nil {
			return err
		}
	}
	return writeResult(o.Result, time.Since(begun))
}

// openRun is a source: what an open for reading costs in a program that is recorded, by what it costs in a jail that nobody
// watches.
type openRun struct {
	times, few int // opens in a run; few of a short one
	runs       int
}

func (o openRun) how(short bool) string {
	times, runs := o.times, o.runs
	if short {
		times, runs = o.few, 1
	}
	return fmt.Sprintf("%s times open(2) with O_RDONLY and close(2) of a file in the work tree, in turn in a jail without a recorder, under "+
		"`tapedeck record` and outside; medians of alternating runs after one of each that does not count: %d", count(float64(times)), runs)
}

func (o openRun) measure(ctx context.Context, e *env) (reading, error) {
	t, err := newTrial(ctx, e, command(nil))
	if err != nil {
		return reading{}, err
	}
	job := opens{filepath.Join(t.place.work(), "file.txt"), pick(e, o.times, o.few), filepath.Join(t.place.work(), "opens.json")}
	if err := os.WriteFile(job.Path, []byte(words(2000)), 0o644); err != nil {
		return reading{}, err
	}
	argv := e.jobArgs("opens", job)
	t.load = command(argv)
	inside := func(run func() (time.Duration, error)) func() (time.Duration, error) {
		return func() (took time.Duration, err error) { // what the job itself counted
			if _, err = run(); err == nil {
				err = readResult(job.Result, &took)
			}
			return took, err
		}
	}
	jailed := func() (time.Duration, error) { return t.jailed(ctx, jailedProgram{}) }
	times, err := alternate(pick(e, o.runs, 1), inside(jailed), inside(t.recorded(ctx)), inside(t.plain(ctx)))
	if err != nil {
		return reading{}, err
	}
	each := func(ts timings) string { return duration(ts.median() / float64(job.Times)) }
	return reading{value: times[1].median() / times[0].median(), beside: fmt.Sprintf("%s against %s; %s outside a jail",
		each(times[1]), each(times[0]), each(times[2]))}, nil
}

// command is a workload that leaves nothing behind that matters.
type command []string

func (c command) tell(bool) string { return fmt.Sprint([]string(c)) }

func (command) prepare(context.Context, *env, *place) error { return nil }

func (command) clean(*env, *place) error { return nil }

func (c command) command(*place) (argv, env []string) { return c, nil }
