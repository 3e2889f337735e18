package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/runview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

type runsWatchOptions struct {
	agent string
	json  bool
}

const (
	// watchPatience is how long a daemon may be away while a run is watched.
	watchPatience = 10 * time.Minute
	// watchPause is how long it takes to see that a run has begun.
	watchPause = 300 * time.Millisecond
)

func newRunsWatchCommand(from *runsOptions, std streams) *cobra.Command {
	var o runsWatchOptions
	cmd := withHelp("runs watch", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return takes("RUN")(cmd, args)
		},
		ValidArgsFunction: runNames(from),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return runRunsWatch(cmd.Context(), from, &o, name, std)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the newest run of this `agent` that goes on")
	f.BoolVar(&o.json, "json", false, "an object a line")
	_ = cmd.RegisterFlagCompletionFunc("agent", agentNames(from))
	return cmd
}

// A runView is where a watched run is shown.
type runView interface {
	// wait says that there is no run yet.
	wait(what string) error
	// record takes the next record of the run.
	record(rec runtrace.Record, line []byte) error
	// end is called once, when nothing more comes.
	end() error
}

func runRunsWatch(ctx context.Context, from *runsOptions, o *runsWatchOptions, name string, std streams) error {
	if name != "" && o.agent != "" {
		return errors.New("RUN and --agent each say which run to watch: leave one out")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	src, err := from.openToWatch(ctx, std)
	if err != nil {
		return interruptedIs130(err)
	}
	defer src.Close()
	id := runtrace.ID{}
	if name != "" {
		if id, err = findRun(ctx, src, name); err != nil {
			return interruptedIs130(err)
		}
	}
	w := &runWatch{src: src, id: id, agent: o.agent}
	if !o.json && isTerminal(std.out) && os.Getenv("TERM") != "dumb" {
		return interruptedIs130(watchOnScreen(ctx, w, std))
	}
	var view runView = &plainView{std: std}
	if o.json {
		view = &jsonView{plainView{std: std}}
	}
	return interruptedIs130(errors.Join(w.follow(ctx, view), view.end()))
}

// openToWatch is open with the patience of who watches.
func (o *runsOptions) openToWatch(ctx context.Context, std streams) (runSource, error) {
	if o.data != "" {
		return o.open(ctx, std.err)
	}
	return o.dial(ctx, watchPatience)
}

func interruptedIs130(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return &statusError{status: 128 + int(syscall.SIGINT)}
	case errors.Is(err, syscall.EPIPE): // who read has seen enough
		return nil
	}
	return err
}

// A runWatch brings the records of one run to a view.
type runWatch struct {
	src   runSource
	id    runtrace.ID // zero: the newest that goes on
	agent string
}

// follow finds the run and gives view its records, to the last. It returns when the run has ended, or with an error.
func (w *runWatch) follow(ctx context.Context, view runView) error {
	if err := w.find(ctx, view); err != nil {
		return err
	}
	for line, err := range w.src.Follow(ctx, w.id) {
		if err != nil {
			return err
		}
		rec, err := runtrace.Parse(line)
		if err == nil {
			err = view.record(rec, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find is the newest run that goes on, where none is named; else it waits for the next that begins, which may have ended by the
// time that it is seen.
func (w *runWatch) find(ctx context.Context, view runView) error {
	if w.id != (runtrace.ID{}) {
		return nil
	}
	runs, err := w.src.Runs(ctx, w.agent, 0)
	if err != nil {
		return err
	}
	before := map[runtrace.ID]bool{}
	for _, r := range runs {
		if r.Status == string(runtrace.InProgress) {
			w.id = idOf(r)
			return nil
		}
		before[idOf(r)] = true
	}
	if err := view.wait(w.awaited()); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchPause):
		}
		if runs, err = w.src.Runs(ctx, w.agent, 0); err != nil {
			return err
		}
		for _, r := range slices.Backward(runs) { // the newest stand first
			if !before[idOf(r)] {
				w.id = idOf(r)
				return nil
			}
		}
	}
}

func (w *runWatch) awaited() string {
	if w.agent != "" {
		return "no run of agent " + w.agent + " goes on: waiting for one"
	}
	return "no run goes on: waiting for one"
}

// A plainView shows each turn as a line.
type plainView struct {
	std streams
	run runview.Run
}

func (v *plainView) wait(what string) error {
	_, err := visible.Fprintf(v.std.err, "tapedeck: %s\n", what)
	return err
}

func (v *plainView) record(rec runtrace.Record, _ []byte) error {
	v.run.Add(rec)
	switch {
	case rec.Started != nil:
		_, err := visible.Fprintf(v.std.out, "run %s of agent %s: %s\n", v.run.ID, v.run.Agent, strings.Join(strings.Fields(v.run.Intent), " "))
		return err
	case rec.Turn != nil:
		return raw(v.std.out, "%s\n", v.run.Turns[len(v.run.Turns)-1].Line(colour(v.std.out)))
	}
	return nil
}

func (v *plainView) end() error {
	if v.run.ID == "" {
		return nil
	}
	_, err := visible.Fprintf(v.std.out, "%s\n", v.run.Summary(time.Now()))
	if o := v.run.Outcome; err == nil && o != nil && o.Summary != "" {
		_, err = visible.Fprintf(v.std.out, "%s\n", o.Summary)
	}
	return err
}

// A jsonView shows each record as an object on a line.
type jsonView struct{ plainView }

func (v *jsonView) record(rec runtrace.Record, line []byte) error {
	v.run.Add(rec)
	return raw(v.std.out, "{\"version\":%d,\"run_id\":%q,\"cursor\":%d,\"record\":%s}\n", jsonVersion, v.run.ID, v.run.Records(), line)
}

func (v *jsonView) end() error {
	if v.run.ID == "" {
		return nil
	}
	end := watchEnd{Status: v.run.Status, Turns: len(v.run.Turns)}
	if v.run.Outcome != nil {
		end.Outcome = v.run.Outcome.Status
	}
	b, err := marshal(end)
	if err != nil {
		return err
	}
	return raw(v.std.out, "{\"version\":%d,\"run_id\":%q,\"end\":%s}\n", jsonVersion, v.run.ID, b)
}

// watchEnd is the last line of --json.
type watchEnd struct {
	Status  string `json:"status"`
	Turns   int    `json:"turns"`
	Outcome string `json:"outcome,omitempty"`
}

// runEnded reports whether a run has its last record.
func runEnded(r *runview.Run) bool { return r.Status != "" && r.Status != runview.InProgress }

// errQuit is the end that a key asked for.
var errQuit = errors.New("quit")
