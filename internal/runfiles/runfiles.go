// Package runfiles reads the runs that a daemon keeps, from the files that it writes for people and other tools, without asking
// it: DIR/runs/AGENT/RUN.jsonl, a record a line.
//
// Goals: a trace can be read where no daemon runs, and beside one that does. It writes nothing, takes no lock and builds no path
// of a name that is none (runtrace.CheckName).
//
// Not goals: the index and the log beneath (internal/store), which belong to whoever holds the directory's lock. So a run that
// was open when its daemon was killed reads as one that goes on, until a daemon has been started there again.
//
// A file's last line may be half written: it is not there until it ends.
package runfiles

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
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

// Pause is how long Follow waits before it looks again.
const Pause = 200 * time.Millisecond

// Records yields the lines of a trace, without their ends, as far as they are whole. A line is valid until the next. The error,
// at most one and last, wraps ErrNotFound where there is no such run.
func (d *Dir) Records(ctx context.Context, id runtrace.ID) iter.Seq2[[]byte, error] {
	return d.read(ctx, id, false)
}

// Follow is Records, and then those that come, to the record ended or the end of ctx.
func (d *Dir) Follow(ctx context.Context, id runtrace.ID) iter.Seq2[[]byte, error] {
	return d.read(ctx, id, true)
}

func (d *Dir) read(ctx context.Context, id runtrace.ID, follow bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		path, err := d.file(id)
		if err != nil {
			yield(nil, err)
			return
		}
		f, err := os.Open(path)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s: %w", id, ErrNotFound)
			}
			yield(nil, err)
			return
		}
		defer f.Close()
		l := &lines{r: bufio.NewReaderSize(f, 64<<10)}
		for {
			line, err := l.next()
			switch {
			case errors.Is(err, io.EOF) && follow:
				if err := pause(ctx); err != nil {
					yield(nil, err)
					return
				}
				continue
			case errors.Is(err, io.EOF):
				return
			case err == nil:
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, fmt.Errorf("%s: line %d: %w", path, l.n, err))
				return
			}
			tag, err := runtrace.Tag(line)
			if err != nil {
				yield(nil, fmt.Errorf("%s: line %d: %w", path, l.n, err))
				return
			}
			if !yield(line, nil) || follow && tag == "ended" {
				return
			}
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(Pause):
		return nil
	}
}

// lines reads a file that grows. io.EOF is no line yet.
type lines struct {
	r    *bufio.Reader
	held []byte // the beginning of a line that has no end yet
	n    int
}

func (l *lines) next() ([]byte, error) {
	for {
		part, err := l.r.ReadSlice('\n')
		l.held = append(l.held, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(l.held) <= runtrace.MaxLine:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("expected lines of at most %d bytes", runtrace.MaxLine)
		case err != nil:
			return nil, err
		}
		line := bytes.TrimSuffix(l.held, []byte("\n"))
		l.held = l.held[:0]
		l.n++
		return line, nil
	}
}

// summary reads the first and the last lines of a trace.
func (d *Dir) summary(id runtrace.ID) (Run, error) {
	path, err := d.file(id)
	if err != nil {
		return Run{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return Run{}, err
	}
	defer f.Close()
	run, err := summarize(f, id)
	if err != nil {
		return Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

func summarize(f *os.File, id runtrace.ID) (Run, error) {
	first, err := bufio.NewReaderSize(f, runtrace.MaxLine+1).ReadSlice('\n')
	if err != nil {
		return Run{}, fmt.Errorf("expected the record started in the first line: %w", err)
	}
	rec, err := runtrace.Parse(first)
	if err != nil || rec.Started == nil {
		return Run{}, errors.Join(errors.New("expected the record started in the first line"), err)
	}
	run := Run{ID: id, Intent: rec.Started.Intent, Started: moment(rec.Started.StartedAt), Status: runtrace.InProgress}
	last, err := lastLines(f, 2)
	if err != nil {
		return Run{}, err
	}
	for _, line := range last {
		switch rec, err := runtrace.Parse(line); {
		case err != nil:
			return Run{}, err
		case rec.Turn != nil:
			run.Turns = rec.Turn.Index + 1
		case rec.Ended != nil:
			run.Status, run.Ended = rec.Ended.Status, moment(rec.Ended.EndedAt)
		}
	}
	return run, nil
}

func moment(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

// lastLines returns the last n whole lines of f, or all that there are.
func lastLines(f *os.File, n int) ([][]byte, error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	for size := int64(16 << 10); ; size *= 4 {
		size = min(size, end)
		b := make([]byte, size)
		if _, err := f.ReadAt(b, end-size); err != nil {
			return nil, err
		}
		b = b[:bytes.LastIndexByte(b, '\n')+1] // what stands behind it is being written
		lines := bytes.SplitAfter(b, []byte("\n"))
		lines = lines[:len(lines)-1]
		if size < end && len(lines) > 0 { // the first may be the end of one
			lines = lines[1:]
		}
		if len(lines) >= n || size == end {
			return lines[max(0, len(lines)-n):], nil
		}
	}
}
