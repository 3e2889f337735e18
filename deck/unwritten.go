package deck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A WriteError says that a recording, or the tape of a replay, could not be written: its program was not started, or was ended
// for it. What was written until then stays and loads.
type WriteError struct {
	What    string // "recording" or "replay's tape"
	Dir     string // of it
	Program string // what became of the program: "was not started", "was ended", "had ended"
	Records int    // whole ones that Dir keeps; -1 where it keeps none, or nobody can tell
	Err     error  // the first that could not be written
}

func (e *WriteError) Error() string {
	text := fmt.Sprintf("the %s cannot be written: %v; the program %s", e.What, e.Err, e.Program)
	if e.Records >= 0 {
		text += "; " + stays(e.Dir, e.Records)
	}
	return text + ": " + nextAfter(e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

// What became of the program of a WriteError.
const (
	programNotStarted = "was not started"
	programWasEnded   = "was ended"
	programHadEnded   = "had ended"
)

// programOf is what became of the program of a run that failed: e is nil where it did not come to its own end.
func programOf(e *ended) string {
	if e == nil {
		return programWasEnded
	}
	return programHadEnded
}

// nextSteps say what to do about what kept a recording from being written, the first that fits.
var nextSteps = []struct {
	cause []error
	next  string
}{
	{[]error{syscall.ENOSPC, syscall.EDQUOT}, "make room there, or name another place with -o"},
	{[]error{syscall.EMFILE, syscall.ENFILE}, "raise the limit of open files (ulimit -n)"},
	{[]error{syscall.EFBIG}, "raise the limit of a file's size (ulimit -f)"},
	{[]error{syscall.EROFS, syscall.EACCES, syscall.EPERM}, "name a place that can be written to with -o"},
	{[]error{syscall.ENOENT, syscall.ENOTDIR, syscall.ESTALE}, "leave the directory as it is until the recording is finished"},
	{[]error{syscall.EIO}, "look at the disk, or name another place with -o"},
}

func nextAfter(err error) string {
	for _, s := range nextSteps {
		for _, c := range s.cause {
			if errors.Is(err, c) {
				return s.next
			}
		}
	}
	return "name another place with -o"
}

// placed is an error in whose text a path that only this process knows reads as the one that people know.
type placed struct {
	error
	safe, dir string
}

func (e *placed) Error() string { return strings.ReplaceAll(e.error.Error(), e.safe, e.dir) }

func (e *placed) Unwrap() error { return e.error }

// unwritten is the end of a recording for err. One that says something else than that it cannot be written stays as it is.
func (r *recorder) unwritten(program string, err error) error {
	var exposed *rescrub.Error
	if err == nil || errors.As(err, &exposed) {
		return err
	}
	dir, records := r.left()
	return &WriteError{What: "recording", Dir: dir, Program: program, Err: &placed{err, r.safe(), dir}, Records: records}
}

// left ends the tape of a recording that is not finished, and returns where it is and how many whole records it keeps.
func (r *recorder) left() (dir string, records int) {
	if r.s != nil {
		_ = r.s.close() // it says what is known
	}
	return r.where(), wholeRecords(filepath.Join(r.safe(), recording.TapeName))
}

// stays says what an unfinished recording keeps.
func stays(dir string, records int) string {
	if records == 1 {
		return dir + " is unfinished and keeps 1 record"
	}
	return fmt.Sprintf("%s is unfinished and keeps %d records", dir, max(records, 0))
}

// where is the path that the recording's directory has now: it may have been renamed, or removed.
func (r *recorder) where() string {
	if path, ok := recording.PathOf(r.held); ok && recording.Still(r.held, path) {
		return path
	}
	return r.dir
}

// wholeRecords counts the whole records of the tape at path; -1 where there is none, or it cannot be read.
func wholeRecords(path string) (n int) {
	f, err := os.Open(path)
	if err != nil {
		return -1
	}
	defer f.Close()
	t, err := tape.NewReaderOptions(f, path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return -1
	}
	for _, err := range t.Records() {
		if err != nil {
			return n
		}
		n++
	}
	return n
}

// seal seals the recording that has just been made. The error does not touch it: it is whole, and unsealed.
func (r *recorder) seal(ctx context.Context) (*sealing.Sealing, error) {
	if r.o.NoSeal {
		return nil, nil
	}
	s, err := sealing.SealDir(ctx, r.safe(), r.key, &seal.Options{ID: r.manifest.ID, TrustBlobs: true, Sync: r.o.Sync, Progress: r.o.Sealing})
	if err == nil {
		r.manifest.Sealed = true
	}
	return s, err
}

// connect connects to the daemon that the run is told to, where there is one.
func (r *recorder) connect(ctx context.Context) error {
	if r.o.Daemon == nil {
		return nil
	}
	ctx, stop := untilInterrupted(ctx, r.o.Signals)
	defer stop()
	m := r.manifest
	path, err := r.lib.PathOf(m.ID, r.o.Output)
	if err != nil {
		return err
	}
	r.daemon, err = daemon.Connect(ctx, r.o.Daemon, r.redactor.scrub, &daemon.About{ID: m.ID, Path: path, Program: m.Program.Path, Argv: m.Argv})
	switch {
	case errors.Is(context.Cause(ctx), ErrInterrupted):
		return ErrInterrupted
	case err != nil:
		return err
	}
	m.Daemon = &r.daemon.Named
	return nil
}

// ended is how the run ended, for the daemon: res is nil where there is no recording, for err.
func (r *recorder) ended(res *Result, err error) *daemon.End {
	if res == nil {
		return &daemon.End{Err: err}
	}
	e := &daemon.End{Exit: res.Exit, ModelCalls: res.Counts["llm_call"], Took: time.Since(r.manifest.StartedAt)}
	if res.Sealed != nil {
		e.SealRoot, e.SealKey = res.Sealed.Root, res.Sealed.Key
	}
	return e
}
