package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/adrg/xdg"
	"github.com/tapedeck-dev/tapedeck/client"
	"github.com/tapedeck-dev/tapedeck/internal/daemon/token"
	"github.com/tapedeck-dev/tapedeck/internal/runfiles"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

const (
	defaultDaemon = "ws://127.0.0.1:9100"
	daemonEnv     = "TAPEDECK_DAEMON"
)

// defaultData is where serve keeps runs unless it is told otherwise.
func defaultData() string { return filepath.Join(xdg.StateHome, "tapedeck", "daemon") }

type runInfo = rpcapi.RunInfo

// A runSource is where runs are read.
type runSource interface {
	// Runs are those of agent, "" of all, newest first; at most limit, 0 for all.
	Runs(ctx context.Context, agent string, limit int) ([]runInfo, error)
	// Records are those that there are, a line each, valid until the next.
	Records(ctx context.Context, run runtrace.ID) iter.Seq2[[]byte, error]
	// Follow is Records, and then those that come, up to the record ended.
	Follow(ctx context.Context, run runtrace.ID) iter.Seq2[[]byte, error]
	// Verdicts are what policies decided about the run, oldest first.
	Verdicts(ctx context.Context, run runtrace.ID) ([]rpcapi.PolicyCheckResult, error)
	// Connected reports whether the source can be asked at the moment.
	Connected() bool
	// Name says for people where it is.
	Name() string
	Close()
}

// A noRunError says that there is no run as asked for. hint is the next step.
type noRunError struct{ msg, hint string }

func (e *noRunError) Error() string { return e.msg }

// A daemonError says that a daemon could not be asked.
type daemonError struct {
	url   string
	token string // the file with the host's token, "" where none was named
	err   error
}

func (e *daemonError) Error() string {
	if errors.Is(e.err, syscall.ECONNREFUSED) || errors.Is(e.err, fs.ErrNotExist) && strings.HasPrefix(e.url, "unix:") {
		return "no daemon answers at " + e.url
	}
	return e.err.Error()
}

func (e *daemonError) Unwrap() error { return e.err }

// hint is the next step after it.
func (e *daemonError) hint() string {
	var refused *client.Error
	var unreachable *net.OpError
	switch {
	case errors.Is(e.err, client.ErrToken), errors.Is(e.err, client.AuthRequired), e.token != "" && errors.Is(e.err, fs.ErrNotExist):
		return e.hintForToken()
	case errors.Is(e.err, client.Version):
		return "the daemon is of another version: use the tapedeck that it is of"
	case errors.Is(e.err, client.ErrNotFound):
		return "`tapedeck runs list` shows the runs that there are"
	case errors.As(e.err, &refused):
		return "" // it says what it wants
	case errors.As(e.err, &unreachable), errors.Is(e.err, fs.ErrNotExist):
		return "`tapedeck serve` starts a daemon; --daemon URL names another one, --data DIR reads the files of one that does not run"
	}
	return ""
}

// hintForToken says where the token was looked for.
func (e *daemonError) hintForToken() string {
	file := e.token
	if file == "" {
		var err error
		if file, err = token.File("", e.url, true); err != nil {
			return ""
		}
	}
	return "the host's token was looked for in " + file + ", which its daemon's user alone can read: tapedeck serve says where it keeps it, --token-file names it"
}

func (o *runsOptions) url() string {
	if o.daemon != "" {
		return o.daemon
	}
	if env := os.Getenv(daemonEnv); env != "" {
		return env
	}
	return defaultDaemon
}

// with does something with where the runs are, until it is interrupted.
func (o *runsOptions) with(ctx context.Context, std *console, do func(context.Context, runSource) error) error {
	src, err := o.open(ctx, std.err, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	return do(ctx, src)
}

// withRun does something with one run: its id, a unique prefix of one, or last.
func (o *runsOptions) withRun(ctx context.Context, std *console, name string, do func(context.Context, runSource, runtrace.ID) error) error {
	return o.with(ctx, std, func(ctx context.Context, src runSource) error {
		id, err := findRun(ctx, src, name)
		if err != nil {
			return err
		}
		return do(ctx, src, id)
	})
}

// open is dial, or reads the files of --data; which of them are no traces is said on warn, where it is not nil.
func (o *runsOptions) open(ctx context.Context, warn io.Writer, patience time.Duration) (runSource, error) {
	switch {
	case o.data != "" && o.daemon != "":
		return nil, errBoth
	case o.data != "":
		dir, err := runfiles.Open(o.data)
		if err != nil {
			return nil, err
		}
		return &fileRuns{dir: dir, path: o.data, warn: warn}, nil
	}
	return o.dial(ctx, patience)
}

// dial connects to the daemon as its host. Patience is how long a connection that was lost may take to come back, 0 for the
// client's own.
func (o *runsOptions) dial(ctx context.Context, patience time.Duration) (*daemonRuns, error) {
	url := o.url()
	c, err := client.Dial(ctx, url, &client.Options{
		Host: true, TokenFile: o.tokenFile, Patience: patience, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, &daemonError{url, o.tokenFile, err}
	}
	return &daemonRuns{c: c, url: url, token: o.tokenFile}, nil
}

// daemonRuns are read from a daemon.
type daemonRuns struct {
	c          *client.Client
	url, token string
}

func (d *daemonRuns) Runs(ctx context.Context, agent string, limit int) ([]runInfo, error) {
	runs, err := d.c.Runs(ctx, rpcapi.RunsListParams{AgentID: agent, Limit: limit})
	return runs, d.wrap(err)
}

func (d *daemonRuns) Records(ctx context.Context, run runtrace.ID) iter.Seq2[[]byte, error] {
	return d.lines(d.c.Records(ctx, run.Run, 0))
}

func (d *daemonRuns) Follow(ctx context.Context, run runtrace.ID) iter.Seq2[[]byte, error] {
	return d.lines(d.c.Subscribe(ctx, run.Run, 0))
}

func (d *daemonRuns) lines(records iter.Seq2[client.Record, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for r, err := range records {
			if !yield(r.JSON, d.wrap(err)) {
				return
			}
		}
	}
}

func (d *daemonRuns) Verdicts(ctx context.Context, run runtrace.ID) ([]rpcapi.PolicyCheckResult, error) {
	verdicts, err := d.c.Verdicts(ctx, run.Run)
	return verdicts, d.wrap(err)
}

func (d *daemonRuns) wrap(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &daemonError{d.url, d.token, err}
}

func (d *daemonRuns) Connected() bool { return d.c.Server() != "" }
func (d *daemonRuns) Name() string    { return d.url }
func (d *daemonRuns) Close()          { _ = d.c.Close() }

// fileRuns are read from the files of a data directory.
type fileRuns struct {
	dir  *runfiles.Dir
	path string
	warn io.Writer
}

func (f *fileRuns) Runs(ctx context.Context, agent string, limit int) ([]runInfo, error) {
	runs, skipped, err := f.dir.List(ctx, agent)
	if err != nil {
		return nil, err
	}
	for _, err := range skipped {
		if f.warn != nil {
			visible.Fprintf(f.warn, "tapedeck: passed over: %v\n", err)
		}
	}
	if f.warn = nil; limit > 0 && len(runs) > limit { // once is enough
		runs = runs[:limit]
	}
	out := make([]runInfo, len(runs))
	for i, r := range runs {
		out[i] = runInfo{RunID: r.ID.Run, AgentID: r.ID.Agent, Intent: r.Intent, StartedAt: r.Started, Status: string(r.Status), TurnCount: r.Turns}
		if !r.Ended.IsZero() {
			out[i].EndedAt = &r.Ended
		}
	}
	return out, nil
}

func (f *fileRuns) Records(ctx context.Context, run runtrace.ID) iter.Seq2[[]byte, error] {
	return f.dir.Records(ctx, run)
}

func (f *fileRuns) Follow(ctx context.Context, run runtrace.ID) iter.Seq2[[]byte, error] {
	return f.dir.Follow(ctx, run)
}

func (f *fileRuns) Verdicts(context.Context, runtrace.ID) ([]rpcapi.PolicyCheckResult, error) {
	return nil, errors.New("--verdicts: they stand in the daemon's log, and not in the files of runs: ask the daemon, without --data")
}

func (f *fileRuns) Connected() bool { return true }
func (f *fileRuns) Name() string    { return f.path }
func (f *fileRuns) Close()          {}

// findRun is the run that name stands for: an id, a unique prefix of one, or "last".
func findRun(ctx context.Context, src runSource, name string) (runtrace.ID, error) {
	runs, err := src.Runs(ctx, "", 0)
	if err != nil {
		return runtrace.ID{}, err
	}
	var found []runInfo
	for _, r := range runs {
		if r.RunID == name || name == "last" {
			return idOf(r), nil
		}
		if name != "" && strings.HasPrefix(r.RunID, name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return idOf(found[0]), nil
	case 0:
		if len(runs) == 0 {
			return runtrace.ID{}, &noRunError{fmt.Sprintf("%s has no runs yet", src.Name()), "docs/daemon.md has a script that makes one"}
		}
		return runtrace.ID{}, &noRunError{fmt.Sprintf("no run of %s is called, or begins with, %q", src.Name(), name), "`tapedeck runs list` shows them"}
	}
	ids := make([]string, 0, 4)
	for _, r := range found[:min(len(found), 4)] {
		ids = append(ids, r.RunID)
	}
	if len(found) > len(ids) {
		ids = append(ids, fmt.Sprintf("%d more", len(found)-len(ids)))
	}
	return runtrace.ID{}, &noRunError{fmt.Sprintf("%q is the beginning of %d runs: %s", name, len(found), strings.Join(ids, ", ")), "name it by its whole id"}
}

func idOf(r runInfo) runtrace.ID { return runtrace.ID{Agent: r.AgentID, Run: r.RunID} }

// hintForRuns is the next step after an error of the daemon or its runs.
func hintForRuns(err error) string {
	var none *noRunError
	var asked *daemonError
	switch {
	case errors.As(err, &none):
		return none.hint
	case errors.Is(err, runfiles.ErrNoRuns):
		return "name the directory that tapedeck serve was given as --data (its default is " + defaultData() + ")"
	case errors.As(err, &asked):
		return asked.hint()
	}
	return ""
}
