package runfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// ErrNoRuns is wrapped where a directory holds no runs at all: no daemon kept any there.
var ErrNoRuns = errors.New("no daemon has kept runs there")

// ErrNotFound is wrapped where there is no run of a name.
var ErrNotFound = errors.New("no such run")

// A Dir is the data directory of a daemon.
type Dir struct{ path string }

// Open returns the directory at path. The error wraps ErrNoRuns where it holds no runs.
func Open(path string) (*Dir, error) {
	st, err := os.Stat(filepath.Join(path, "runs"))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !st.IsDir():
		return nil, fmt.Errorf("%s: %w: expected a directory with runs/ in it", path, ErrNoRuns)
	case err != nil:
		return nil, err
	}
	return &Dir{path}, nil
}

// A Run is what a list says of one.
type Run struct {
	ID      runtrace.ID
	Intent  string
	Started time.Time
	Ended   time.Time // zero while it goes on
	Status  runtrace.Status
	Turns   int
}

// List returns the runs of agent, "" for those of all, newest first. A file that is no trace is passed over and named in
// skipped.
func (d *Dir) List(ctx context.Context, agent string) (runs []Run, skipped []error, err error) {
	ids, err := d.ids(agent)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		run, err := d.summary(id)
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		runs = append(runs, run)
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID.Run, a.ID.Run)) })
	return runs, skipped, nil
}

// ids are the names of all files of runs.
func (d *Dir) ids(agent string) ([]runtrace.ID, error) {
	agents := []string{agent}
	if agent == "" {
		all, err := os.ReadDir(filepath.Join(d.path, "runs"))
		if err != nil {
			return nil, err
		}
		agents = agents[:0]
		for _, e := range all {
			agents = append(agents, e.Name())
		}
	} else if err := runtrace.CheckName("agent", agent); err != nil {
		return nil, err
	} else {
		agents[0] = filepath.Dir(runtrace.ID{Agent: agent, Run: "r"}.File())
	}
	var out []runtrace.ID
	for _, a := range agents {
		files, err := os.ReadDir(filepath.Join(d.path, "runs", a))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, f := range files {
			if id, ok := runtrace.FileID(a, f.Name()); ok && f.Type().IsRegular() {
				out = append(out, id)
			}
		}
	}
	return out, nil
}

// file is where the trace of a run is.
func (d *Dir) file(id runtrace.ID) (string, error) {
	if err := id.Check(); err != nil {
		return "", err
	}
	return filepath.Join(d.path, "runs", id.File()), nil
}
