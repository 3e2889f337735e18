package deck

import (
	"context"
	"errors"
	"path/filepath"
	"time"
)

// connect connects to the daemon that the run is told to, where there is one.
func (r *recorder) connect(ctx context.Context) error {
	if r.o.Daemon == nil {
		return nil
	}
	ctx, stop := untilInterrupted(ctx, r.o.Signals)
	defer stop()
	m := r.manifest
	path, err := r.lib.pathOf(m.ID, r.o.Output)
	if err != nil {
		return err
	}
	r.daemon, err = connectDaemon(ctx, r.o.Daemon, r.guard.scrub, &told{ID: m.ID, Path: path, Program: m.Program.Path, Argv: m.Argv})
	switch {
	case errors.Is(context.Cause(ctx), ErrInterrupted):
		return ErrInterrupted
	case err != nil:
		return err
	}
	m.Daemon = &r.daemon.named
	return nil
}

// told is the tape of s as a daemon is told it.
func (s *session) told() *toldTape {
	return &toldTape{Path: filepath.Join(s.dir, tapeName), Store: s.store, Rec: s.rec, Log: s.log}
}

// ended is how the run ended, for the daemon: res is nil where there is no recording, for err.
func (r *recorder) ended(res *Result, err error) *runEnd {
	if res == nil {
		return &runEnd{Err: err}
	}
	e := &runEnd{Exit: res.Exit, ModelCalls: res.Counts["llm_call"], Took: time.Since(r.manifest.StartedAt)}
	if res.Sealed != nil {
		e.SealRoot, e.SealKey = res.Sealed.Root, res.Sealed.Key
	}
	return e
}
