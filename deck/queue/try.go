package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// Timeout implements river.Worker: package gate bounds the replay, this what is around it.
func (w *worker) Timeout(job *river.Job[Job]) time.Duration {
	return cmp.Or(job.Args.Timeout, gate.DefaultTimeout) + beyond
}

// NextRetry implements river.Worker: with DefaultBeat 1 s, 2 s, 4 s. For so long River waits without its leader, which may have died.
func (w *worker) NextRetry(job *river.Job[Job]) time.Time {
	return w.clock.Now().Add(w.o.Beat / 5 << min(len(job.Errors), 2))
}

// Work implements river.Worker. What it returns is kept with the job, so it holds nothing of the run.
func (w *worker) Work(ctx context.Context, job *river.Job[Job]) error {
	if job.Args.What == Retention {
		return w.orLater(ctx, job, w.retain(ctx, &job.Args))
	}
	r, v, err := w.try(ctx, &job.Args)
	if err != nil || ctx.Err() != nil {
		return w.orLater(ctx, job, cmp.Or(err, ctx.Err()))
	}
	dead := unable(r)
	if dead && job.Attempt < job.MaxAttempts {
		w.log.Warn("could not be tried: tried again", "job", job.ID, "run", r.Name, "status", r.Status, "why", r.Why)
		return errors.New(string(r.Status))
	}
	if err := river.RecordOutput(ctx, key{v.Tapedeck, v.Program}); err != nil {
		return err
	}
	if err := w.put(ctx, job, v, dead); err != nil {
		return w.orLater(ctx, job, err)
	}
	if w.o.Report != nil {
		w.o.Report(r)
	}
	if dead {
		return errors.New(string(r.Status))
	}
	return nil
}

// unable reports whether a result may be another one on another machine, or later: blobs may be elsewhere.
func unable(r *gate.Result) bool {
	return r.Status.Exit(false) == 1 && (r.Status != gate.Damaged || isAbsent(r.Err))
}

func isAbsent(err error) bool {
	var corrupt *cas.CorruptError
	var missing *cas.MissingError
	return errors.As(err, &corrupt) || errors.As(err, &missing)
}

// orLater says what becomes of a job that an error kept from its end, or nil: the error is about this machine, the store or the job's time, not about
// the run.
func (w *worker) orLater(ctx context.Context, job *river.Job[Job], err error) error {
	switch {
	case err == nil:
		return nil
	case w.stopping.Err() != nil:
		return river.JobSnooze(0)
	case ctx.Err() != nil: // cancelled, or its time is up
		return context.Cause(ctx)
	case errors.Is(err, team.ErrRemoved), errors.Is(err, team.ErrNoRun):
		return river.JobCancel(errors.New("the store has no such run"))
	case team.IsRefused(err), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // which does not pass by itself
		return err
	}
	w.log.Warn("given back: tried again later", "job", job.ID, "run", job.Args.Run, "error", err)
	_ = lane.Pause(ctx, nil, w.o.Beat) // for others to take jobs whose disk is not full
	return river.JobSnooze(0)
}

// put writes a verdict and ends its job, at once; a job that is dead ends by its error. A database that does not answer is asked again.
func (w *worker) put(ctx context.Context, job *river.Job[Job], v *team.Verdict, dead bool) error {
	write := func(run execer) error { return w.q.store.PutVerdict(ctx, run, v) }
	for {
		var err error
		if dead {
			if err = w.has(ctx, job); err == nil {
				err = write(w.q.rows.Exec)
			}
		} else {
			err = w.q.complete(ctx, job, write)
		}
		if err == nil || errors.Is(err, rivertype.ErrNotFound) { // another one has ended it, or this did and was not told
			return nil
		}
		if w.log.Warn("a verdict cannot be written: tried again", "job", job.ID, "error", err); ctx.Err() != nil {
			return err
		}
		_ = lane.Pause(ctx, nil, w.o.Beat) // what ctx says is asked next
	}
}

// has is nil where a job is this worker's still, and rivertype.ErrNotFound where it was given to another one.
func (w *worker) has(ctx context.Context, job *river.Job[Job]) error {
	rows, err := w.q.rows.JobGetByIDMany(ctx, &riverdriver.JobGetByIDManyParams{ID: []int64{job.ID}})
	if err != nil {
		return err
	}
	if len(rows) != 1 || rows[0].State != rivertype.JobStateRunning || rows[0].Attempt != job.Attempt {
		return rivertype.ErrNotFound
	}
	return nil
}

// try finds out what a run is worth. The error is about the store or the disk.
func (w *worker) try(ctx context.Context, j *Job) (*gate.Result, *team.Verdict, error) {
	program := verifiedOnly
	if j.What != Verify {
		var err error
		if program, err = w.tree.version(w.o.Program); err != nil {
			return nil, nil, err
		}
	}
	run, r, err := w.tryHere(ctx, j)
	if err != nil {
		var gone error
		if run, gone = w.q.store.Run(ctx, j.Project, j.Run); gone != nil {
			return nil, nil, gone
		}
	}
	switch {
	case isAbsent(err):
		r = &gate.Result{Status: gate.Damaged, Why: err.Error(), Err: err}
	case err != nil:
		return nil, nil, err
	case errors.Is(r.Err, syscall.ENOSPC) && isFull(os.TempDir()): // it is not this run that fills the disk
		return nil, nil, r.Err
	}
	r.Case, r.Name = gate.Case{Path: run.ID, Kind: gate.Packed}, run.ID
	detail, err := json.Marshal(r)
	return r, &team.Verdict{
		Run: run.ID, Project: j.Project, Digest: run.Digest, Tapedeck: version.Version, Program: program, Status: string(r.Status), Summary: r.Why, By: j.What,
		MS: float64(r.Took) / float64(time.Millisecond), At: w.clock.Now().UTC().Truncate(time.Millisecond), Worker: w.name, Kernel: w.jail.kernel, Lacks: w.jail.lacks, Detail: detail,
	}, err
}

// tryHere pulls a run into a directory, which is gone again when it returns, and tries it there. The error is what kept it from being pulled.
func (w *worker) tryHere(ctx context.Context, j *Job) (run *team.Run, r *gate.Result, err error) {
	if filepath.Base(j.Run) != j.Run { // no name of a file
		return nil, nil, team.ErrNoRun
	}
	temp, err := recording.NewTemp(os.TempDir(), library.OpenPrefix)
	if err != nil {
		return nil, nil, err
	}
	defer temp.Remove()
	file := filepath.Join(temp.Dir, "packed")
	pulling, stop := context.WithCancel(ctx)
	defer stop()
	late := time.AfterFunc(stall, stop)
	run, err = w.q.store.Pull(pulling, j.Project, j.Run, file, func(int64, int64) { late.Reset(stall) })
	if late.Stop(); err == nil && run.ID != j.Run { // it begins so
		err = team.ErrNoRun
	}
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	if r, err = w.unpacked(ctx, j, file); err == nil {
		r.Took = time.Since(began) // as package gate has it of packed ones
	}
	return run, r, err
}

// unpacked tries a run that was pulled.
func (w *worker) unpacked(ctx context.Context, j *Job, file string) (*gate.Result, error) {
	dir := filepath.Dir(file)
	// it is called by its id, for what tapedeck.yaml says of recordings by their names
	rec, err := library.Of(dir).Unpack(ctx, file, &library.UnpackOptions{Output: filepath.Join(dir, j.Run+".rec"), Limits: packed.Limits{Bytes: w.o.MaxBytes}})
	switch {
	case err != nil:
		return &gate.Result{Status: gate.StatusOfError(err), Why: err.Error(), Err: err}, nil
	case j.What == Verify:
		return w.verify(ctx, rec), nil
	}
	o := &gate.Options{Jobs: 1, Env: []string{}, // whoever pushes a run names its secrets: none is a worker's
		Timeout: j.Timeout, TreeNow: w.o.Tree != "", TreeAt: w.o.Tree, Watch: w.o.Watch, Rules: cmp.Or(w.o.Rules, dir), Plain: j.What == Replay}
	if j.Mode != "" {
		mode, err := fidelity.ParseMode(j.Mode)
		if err != nil {
			return &gate.Result{Status: gate.Broken, Why: err.Error()}, nil
		}
		o.Mode = &mode
	}
	s, err := gate.Run(ctx, []gate.Case{{Path: rec.Dir, Kind: gate.Recording}}, o)
	if err != nil {
		return nil, err
	}
	return s.Results[0], nil
}

func (w *worker) verify(ctx context.Context, rec *recording.Recording) *gate.Result {
	r := &gate.Result{Status: gate.Faithful, Why: "every byte is what was recorded"}
	v, err := verify.Verify(ctx, rec.Dir, nil)
	if err != nil {
		r.Status, r.Why, r.Err = gate.StatusOfError(err), err.Error(), err
	} else if problems := slices.DeleteFunc(v.Problems, gate.BySomebodyElse); len(problems) > 0 {
		r.Status, r.Why = gate.Damaged, problems[0].String()
	}
	return r
}

// isFull reports whether the disk of a directory has no place for a little more.
func isFull(dir string) bool {
	f, err := os.CreateTemp(dir, "tapedeck-full-")
	if err == nil {
		_, err = f.Write(make([]byte, 1<<20))
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return errors.Is(err, syscall.ENOSPC)
}

// retain purges the runs of a project that are over their time.
func (w *worker) retain(ctx context.Context, j *Job) error {
	key, err := seal.LoadKey(recording.ConfigDir(""))
	if err != nil {
		return err
	}
	if _, err := w.q.store.Prune(ctx, j.Project, &j.Rule, key); err != nil {
		return err
	}
	_, err = w.q.store.Sweep(ctx)
	return err
}

// A treeVersion is the version of the programs that a worker runs: that of what stands in a directory now.
type treeVersion struct {
	dir   string // "" for the recorded work trees
	cache string // a file that remembers digests

	mu sync.Mutex // held while it is looked at
}

// The version of programs as they were recorded, and of none: what verify finds does not take the place of what a program did.
const (
	recordedTree = "recorded"
	verifiedOnly = "none: verified"
)

func (t *treeVersion) version(named string) (string, error) {
	if named != "" || t.dir == "" {
		return cmp.Or(named, recordedTree), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tree, err := files.Snap(t.dir, &files.SnapOptions{RootName: "/", Exclude: []string{"/.git"}, CachePath: t.cache})
	if err != nil {
		return "", fmt.Errorf("the version of the program: %w", err)
	}
	b, err := json.Marshal(tree)
	return cas.Sum(b).String(), err
}
