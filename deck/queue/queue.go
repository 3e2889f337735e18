// Package queue has many machines replay the runs of a team's store (package team): whoever wants verdicts puts jobs, workers take them.
//
// Jobs are River's (github.com/riverqueue/river), in the database of the store. A job is about one run: replay, test (a replay that is held to
// what tapedeck.yaml says of tests) or verify; or about all runs of a project: retention. It has a priority of 1 to 4, a time that it may take,
// and a number of attempts. One that is cancelled ends within seconds, also where it is under way. One whose last attempt failed is discarded:
// a dead letter, which stays for a week and can be tried again.
//
// Which worker: a queue is for one project, one version of the program where that was asked for, and one Version of this package. A worker takes
// the jobs of its own version and of those before: one of a newer version is left to another worker.
//
// What a worker runs is what the recording says, over the recorded work tree or over a directory of its own (Options.Tree), in which the
// program has changed since. The version of the program is that of the tree's content, or what Options.Program says.
//
// A verdict is written in the transaction that ends its job, by the run, the version of tapedeck and the version of the program, so it does not
// matter that a job may run twice: it does where a worker was taken for dead that was not. What could not be tried for reasons of the
// machine is tried again, perhaps by another worker, and is a verdict when the attempts are used up. A store that does not answer and a full
// disk use up no attempt: the worker pauses, and gives the job back.
//
// A worker says every Options.Beat that it lives. What a worker had taken that has said nothing for four beats is given back by any other, and
// counts as an attempt: a run that kills its worker is a dead letter too.
//
// Times are those of the database's clock, on every machine.
//
// Goals: no job is lost and no verdict doubled whoever is killed, everything goes on by itself when the database, the blobs or the disk are
// there again. Not goals: who may put jobs: whoever writes to the store has programs of their choice run in the jails of its workers.
package queue

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// Version is that of jobs: it grows where an older worker would do a job otherwise, or could not read the recordings that it is about.
const Version = 2

// What is done.
const (
	Replay    = "replay"
	Test      = "test"
	Verify    = "verify"
	Retention = "retention"
)

// Kinds are all that can be done.
var Kinds = []string{Replay, Test, Verify, Retention}

// A Job is one thing to do.
type Job struct {
	What      string        `json:"what"`
	Project   string        `json:"project"`
	Run       string        `json:"run,omitempty"`
	Mode      string        `json:"mode,omitempty"`    // as fidelity.ParseMode has it; "" is what tapedeck.yaml says
	Timeout   time.Duration `json:"timeout,omitempty"` // of the replay; 0 is gate.DefaultTimeout
	team.Rule               // retention: what goes
}

// Kind implements river.JobArgs.
func (j Job) Kind() string { return j.What }

// A client is a *river.Client of any database.
type client interface {
	InsertMany(ctx context.Context, params []river.InsertManyParams) ([]*rivertype.JobInsertResult, error)
	JobList(ctx context.Context, params *river.JobListParams) (*river.JobListResult, error)
	JobCancel(ctx context.Context, id int64) (*rivertype.JobRow, error)
	JobRetry(ctx context.Context, id int64) (*rivertype.JobRow, error)
	Start(ctx context.Context) error
	Stopped() <-chan struct{}
}

// An execer runs a statement.
type execer func(ctx context.Context, query string, args ...any) error

// Jobs are what who puts jobs does with a queue: a Queue gives them to who has the keys of the store's database, package remote to who has a token.
type Jobs interface {
	Put(ctx context.Context, jobs []Job, o *PutOptions) ([]int64, error)
	Workers(ctx context.Context, project, program string) (int, error)
	Wait(ctx context.Context, ids []int64, report func(*gate.Result), trouble func(error)) (*gate.Summary, error)
	List(ctx context.Context, project string, limit int, states ...string) ([]Entry, error)
	Cancel(ctx context.Context, project string, ids ...int64) error
	Retry(ctx context.Context, project string, ids ...int64) error
	Close()
}

// A Queue is the jobs of a store. It may be used by several goroutines, and must be closed before the store.
type Queue struct {
	store  *team.Store
	client client
	rows   riverdriver.Executor
	// complete ends a job that a worker has, in one transaction with what put writes.
	complete func(ctx context.Context, job *river.Job[Job], put func(execer) error) error
	close    func()
}

// Open opens the queue of a store, for who puts jobs.
func Open(ctx context.Context, s *team.Store) (*Queue, error) {
	return open(ctx, s, &river.Config{Logger: slog.New(slog.DiscardHandler)})
}

func open(ctx context.Context, s *team.Store, config *river.Config) (*Queue, error) {
	lite, postgres, err := s.Pool(ctx)
	if err != nil {
		return nil, err
	}
	if postgres != nil {
		return connect[pgx.Tx](ctx, s, riverpgxv5.New(postgres), config, postgres.Close)
	}
	return connect[*sql.Tx](ctx, s, riversqlite.New(lite), config, func() { lite.Close() })
}

func connect[T any](ctx context.Context, s *team.Store, d riverdriver.Driver[T], config *river.Config, closePool func()) (*Queue, error) {
	err := migrate(ctx, d)
	var c *river.Client[T]
	if err == nil {
		c, err = river.NewClient(d, config)
	}
	if err != nil {
		closePool()
		return nil, fmt.Errorf("the queue in %s: %w", s.Name(), err)
	}
	return &Queue{s, c, d.GetExecutor(), func(ctx context.Context, job *river.Job[Job], put func(execer) error) error {
		tx, err := d.GetExecutor().Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		if err := put(tx.Exec); err != nil {
			return err
		}
		if _, err := river.JobCompleteTx[riverdriver.Driver[T]](ctx, d.UnwrapTx(tx), job); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}, closePool}, nil
}

// migrate makes River's tables. Of several that do so at once all but one fail, and begin anew.
func migrate[T any](ctx context.Context, d riverdriver.Driver[T]) error {
	m, err := rivermigrate.New(d, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		have, err := m.ExistingVersions(ctx)
		if err == nil && len(have) == len(m.AllVersions()) {
			return nil
		}
		if _, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil); err == nil || try == 50 || ctx.Err() != nil {
			return err
		}
		_ = lane.Pause(ctx, nil, lookEvery) // so here
	}
}

// Close ends what the queue holds open.
func (q *Queue) Close() { q.close() }

// nameOf is River's name of the queue of a project and a version of the program.
func nameOf(project, program string, version int) string {
	return fmt.Sprintf("v%d-%s", version, cas.Sum([]byte(project + "\x00" + program)).String()[:24])
}

// PutOptions say how jobs are put. Nil and zero work.
type PutOptions struct {
	Program  string // only workers of this Options.Program take them; "" is those that have none
	Priority int    // 1 to 4, 1 goes first; 0 is 2
	Attempts int    // 0 is DefaultAttempts

	version int // of tests; 0 is Version
}

// DefaultAttempts is how often a job is tried.
const DefaultAttempts = 3

// Put adds jobs, all or none, and returns their numbers.
func (q *Queue) Put(ctx context.Context, jobs []Job, o *PutOptions) ([]int64, error) {
	if o == nil {
		o = new(PutOptions)
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i] = river.InsertManyParams{Args: j, InsertOpts: &river.InsertOpts{
			Queue: nameOf(j.Project, o.Program, cmp.Or(o.version, Version)), Priority: cmp.Or(o.Priority, 2), MaxAttempts: cmp.Or(o.Attempts, DefaultAttempts),
		}}
	}
	if len(params) == 0 {
		return nil, nil
	}
	put, err := q.client.InsertMany(ctx, params)
	ids := make([]int64, len(put))
	for i := range put {
		ids[i] = put[i].Job.ID
	}
	return ids, err
}

// carryOut puts a job for each rule of a project's retention into a queue, but for those that somebody put in the same hour.
func (q *Queue) carryOut(ctx context.Context, queue, project string, rules []team.Rule) error {
	once := river.UniqueOpts{ByArgs: true, ByQueue: true, ByPeriod: retentionEvery}
	var params []river.InsertManyParams
	for _, r := range rules {
		params = append(params, river.InsertManyParams{Args: Job{What: Retention, Project: project, Rule: r}, InsertOpts: &river.InsertOpts{Queue: queue, Priority: 4, MaxAttempts: DefaultAttempts, UniqueOpts: once}})
	}
	if len(params) == 0 {
		return nil
	}
	_, err := q.client.InsertMany(ctx, params)
	return err
}

// Workers is how many workers live that take the jobs of a project and a version of the program.
func (q *Queue) Workers(ctx context.Context, project, program string) (n int, err error) {
	live, err := q.store.Workers(ctx)
	for _, queue := range live {
		if queue == nameOf(project, program, Version) {
			n++
		}
	}
	return n, err
}

// How often it is looked whether jobs have ended, and how long cancelling them may take.
const (
	lookEvery   = 50 * time.Millisecond
	lookAtLeast = 5 * time.Second
	endWithin   = 10 * time.Second
)

// Wait waits for jobs that Put added, and gives the result of each to report as it ends. A database that does not answer is asked again: trouble
// is told of it. The error is ctx's: then the Summary holds those that had ended by then, and the others are cancelled.
func (q *Queue) Wait(ctx context.Context, ids []int64, report func(*gate.Result), trouble func(error)) (*gate.Summary, error) {
	ended := func(ctx context.Context, left []int64) (map[int64]*gate.Result, error) {
		return q.ended(ctx, left, func(*Job) bool { return true })
	}
	return WaitFor(ctx, ids, ended, q.cancel, report, trouble)
}

// WaitFor is Wait, given what says which jobs have ended, and what cancels some.
func WaitFor(ctx context.Context, ids []int64, ended func(ctx context.Context, ids []int64) (map[int64]*gate.Result, error), cancel func(ctx context.Context, ids []int64) error,
	report func(*gate.Result), trouble func(error)) (*gate.Summary, error) {
	began := time.Now()
	results := make(map[int64]*gate.Result)
	left := slices.Clone(ids)
	for len(left) > 0 && ctx.Err() == nil {
		asked := time.Now()
		found, err := ended(ctx, left)
		for _, id := range left {
			if r := found[id]; r != nil {
				results[id] = r
				report(r)
			}
		}
		left = slices.DeleteFunc(left, func(id int64) bool { return results[id] != nil })
		if err != nil && ctx.Err() == nil {
			trouble(err)
		}
		if len(left) > 0 {
			_ = lane.Pause(ctx, nil, min(max(lookEvery, 10*time.Since(asked)), lookAtLeast)) // what ctx says is asked next
		}
	}
	if len(left) > 0 {
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
		defer stop()
		_ = cancel(end, left) // a job that cannot be cancelled is done for nobody
	}
	s := &gate.Summary{Left: len(left), Took: time.Since(began)}
	for _, id := range ids {
		if r := results[id]; r != nil {
			s.Results = append(s.Results, r)
		}
	}
	return s, ctx.Err()
}

// Ended are the results of those of some jobs that have ended. One that is not of the project is one that somebody has deleted.
func (q *Queue) Ended(ctx context.Context, project string, ids []int64) (map[int64]*gate.Result, error) {
	return q.ended(ctx, ids, func(j *Job) bool { return j.Project == project })
}

func (q *Queue) ended(ctx context.Context, ids []int64, own func(*Job) bool) (map[int64]*gate.Result, error) {
	rows, err := q.rows.JobGetByIDMany(ctx, &riverdriver.JobGetByIDManyParams{ID: ids})
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*gate.Result)
	for _, id := range ids {
		out[id] = &gate.Result{Status: gate.Broken, Why: "somebody has deleted its job"}
	}
	for _, row := range rows {
		var j Job
		if err := json.Unmarshal(row.EncodedArgs, &j); err != nil {
			return nil, err
		}
		if !slices.Contains(Kinds, row.Kind) || !own(&j) {
			continue
		}
		if delete(out, row.ID); row.FinalizedAt == nil {
			continue
		}
		if out[row.ID], err = q.result(ctx, row, &j); err != nil {
			delete(out, row.ID)
			return out, err
		}
	}
	return out, nil
}

// A key is what a job says of its verdict.
type key struct {
	Tapedeck string `json:"tapedeck"`
	Program  string `json:"program"`
}

// result is what became of a job that has ended.
func (q *Queue) result(ctx context.Context, row *rivertype.JobRow, j *Job) (*gate.Result, error) {
	var k key
	r := &gate.Result{Case: gate.Case{Path: j.Run, Kind: gate.Packed}, Name: j.Run, Status: gate.Broken, Why: "its run was purged, or pushed anew, meanwhile"}
	out := row.Output()
	switch {
	case row.State == rivertype.JobStateCancelled:
		r.Why = "cancelled" + lastError(row, ": ")
	case len(out) == 0:
		r.Why = fmt.Sprintf("no verdict after %d attempts%s", row.Attempt, lastError(row, ": "))
	default:
		if err := json.Unmarshal(out, &k); err != nil {
			return nil, err
		}
		v, err := q.store.Verdict(ctx, j.Project, j.Run, k.Tapedeck, k.Program)
		if err != nil || v == nil {
			return r, err
		}
		return ResultOf(v)
	}
	return r, nil
}

// ResultOf is what a verdict was made of.
func ResultOf(v *team.Verdict) (*gate.Result, error) {
	r := new(gate.Result)
	return r, json.Unmarshal(v.Detail, r)
}

func lastError(row *rivertype.JobRow, before string) string {
	if len(row.Errors) == 0 {
		return ""
	}
	return before + row.Errors[len(row.Errors)-1].Error
}

// An Entry is a job as it stands.
type Entry struct {
	ID       int64     `json:"id"`
	What     string    `json:"what"`
	Run      string    `json:"run,omitempty"`
	State    string    `json:"state"` // River's: available, running, retryable, scheduled, completed, cancelled, discarded
	Priority int       `json:"priority"`
	Attempt  int       `json:"attempt"`
	Attempts int       `json:"attempts"` // at most
	PutAt    time.Time `json:"put_at"`
	Worker   string    `json:"worker,omitempty"` // that took it last
	Error    string    `json:"error,omitempty"`  // of the last attempt that failed
}

// MaxList is how many jobs List lists at most.
const MaxList = 10_000

// List lists the jobs of a project in some states, all where none is named, those that were put last first.
func (q *Queue) List(ctx context.Context, project string, limit int, states ...string) ([]Entry, error) {
	p := river.NewJobListParams().First(limit).OrderBy(river.JobListOrderByID, river.SortOrderDesc).Kinds(Kinds...).Where("args ->> 'project' = @project", river.NamedArgs{"project": project})
	var asked []rivertype.JobState
	for _, s := range states {
		asked = append(asked, rivertype.JobState(s))
	}
	if len(asked) > 0 {
		p = p.States(asked...)
	}
	found, err := q.client.JobList(ctx, p)
	if err != nil {
		return nil, err
	}
	out := []Entry{}
	for _, row := range found.Jobs {
		var j Job
		if err := json.Unmarshal(row.EncodedArgs, &j); err != nil {
			return nil, err
		}
		e := Entry{row.ID, j.What, j.Run, string(row.State), row.Priority, row.Attempt, row.MaxAttempts, row.CreatedAt, "", lastError(row, "")}
		if n := len(row.AttemptedBy); n > 0 {
			e.Worker = row.AttemptedBy[n-1]
		}
		out = append(out, e)
	}
	return out, nil
}

// Count is how many jobs of all projects are in a state.
func (q *Queue) Count(ctx context.Context, state string) (int, error) {
	return q.rows.JobCountByState(ctx, &riverdriver.JobCountByStateParams{State: rivertype.JobState(state)})
}

// Cancel ends jobs of a project: those that wait at once, those under way within seconds.
func (q *Queue) Cancel(ctx context.Context, project string, ids ...int64) error {
	if err := q.own(ctx, project, ids); err != nil {
		return err
	}
	return q.cancel(ctx, ids)
}

func (q *Queue) cancel(ctx context.Context, ids []int64) error {
	return each(ids, func(id int64) error { _, err := q.client.JobCancel(ctx, id); return err })
}

// Retry has jobs of a project that have ended tried once more.
func (q *Queue) Retry(ctx context.Context, project string, ids ...int64) error {
	if err := q.own(ctx, project, ids); err != nil {
		return err
	}
	return each(ids, func(id int64) error { _, err := q.client.JobRetry(ctx, id); return err })
}

// ErrNoJob is wrapped by what is said of a job that the project does not have.
var ErrNoJob = errors.New("the project has no such job")

// own refuses jobs that are not of a project, as it does those that there are not.
func (q *Queue) own(ctx context.Context, project string, ids []int64) error {
	rows, err := q.rows.JobGetByIDMany(ctx, &riverdriver.JobGetByIDManyParams{ID: ids})
	if err != nil {
		return err
	}
	return each(ids, func(id int64) error {
		var j Job
		for _, row := range rows {
			if row.ID == id && json.Unmarshal(row.EncodedArgs, &j) == nil && slices.Contains(Kinds, row.Kind) && j.Project == project {
				return nil
			}
		}
		return ErrNoJob
	})
}

func each(ids []int64, f func(int64) error) error {
	var errs []error
	for _, id := range ids {
		if err := f(id); err != nil {
			errs = append(errs, fmt.Errorf("job %d: %w", id, err))
		}
	}
	return errors.Join(errs...)
}
