package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
)

// Options say what a worker does. Nil and zero work.
type Options struct {
	Project string
	Tree    string   // programs run over this directory; "" is the recorded work tree
	Program string   // the version of the program, and whose jobs it takes; "" is that of Tree, and those of no version
	Rules   string   // the directory of the tapedeck.yaml that replays go by; "" is none
	Watch   []string // paths that gate too
	Jobs    int      // how many at once; 0 is 1

	MaxBytes int64              // what a run may unpack to; 0 is packed.DefaultMaxBytes
	Report   func(*gate.Result) // of each verdict, by several goroutines
	Retain   []team.Rule        // of Project: each is carried out once an hour, by one of its workers
	Log      *slog.Logger       // nil is silent

	Beat time.Duration // between two signs of life; 0 is DefaultBeat. What failed is tried again after as long

	version int              // of tests; 0 is Version
	now     func() time.Time // of tests: this machine's clock
}

// DefaultBeat is how often a worker says that it lives. After four without a sign it is dead.
const DefaultBeat = 5 * time.Second

const retentionEvery = time.Hour

const (
	grace      = 2              // beats for what is under way when a worker is told to end
	stall      = time.Minute    // without a byte of a run that is pulled
	beyond     = 24 * time.Hour // how much longer than its replay a job may take: for a store that is slow
	rescueLate = 48 * time.Hour // River's own rescue goes by the clock of one machine: it comes after ours in any case
)

// A worker takes jobs.
type worker struct {
	river.WorkerDefaults[Job]
	o     Options
	q     *Queue
	name  string
	queue string
	jail  struct {
		kernel string
		lacks  []string
	}
	clock    *clock
	log      *slog.Logger
	stopping context.Context
	tree     treeVersion
}

// Run takes jobs until ctx ends. What is under way then has ten seconds to end, and is given back if it does not.
func Run(ctx context.Context, s *team.Store, options *Options) error {
	w := &worker{stopping: ctx}
	if options != nil {
		w.o = *options
	}
	d := deck.Diagnose()
	if !d.Works {
		return fmt.Errorf("%w: tapedeck doctor says what is missing", deck.ErrUnavailable)
	}
	w.jail.kernel, w.jail.lacks = recording.NewManifest(time.Now()).Host.Kernel, []string{}
	for _, c := range d.Checks {
		if !c.OK {
			w.jail.lacks = append(w.jail.lacks, c.Name)
		}
	}
	host, _ := os.Hostname()
	w.name = fmt.Sprintf("%.40s-%d-%.8s", host, os.Getpid(), rand.Text()) // River's id of a client, of at most 100 bytes
	w.o.Jobs, w.o.Beat, w.log = max(w.o.Jobs, 1), cmp.Or(w.o.Beat, DefaultBeat), cmp.Or(w.o.Log, slog.New(slog.DiscardHandler))
	w.clock = &clock{now: w.o.now}
	w.queue = nameOf(w.o.Project, w.o.Program, cmp.Or(w.o.version, Version))
	if w.tree = (treeVersion{dir: w.o.Tree}); w.o.Tree != "" {
		cache, err := recording.NewTemp(os.TempDir(), library.OpenPrefix)
		if err != nil {
			return err
		}
		defer cache.Remove()
		w.tree.cache = filepath.Join(cache.Dir, "stat")
	}
	return w.run(ctx, s)
}

func (w *worker) run(ctx context.Context, s *team.Store) (err error) {
	config := &river.Config{
		ID: w.name, Logger: w.log, Workers: river.NewWorkers(), Queues: make(map[string]river.QueueConfig), Test: river.TestConfig{Time: w.clock},
		FetchCooldown: time.Millisecond, FetchPollInterval: time.Second, SoftStopTimeout: grace * w.o.Beat, JobTimeout: beyond, RescueStuckJobsAfter: rescueLate,
	}
	for v := cmp.Or(w.o.version, Version); v > 0; v-- {
		config.Queues[nameOf(w.o.Project, w.o.Program, v)] = river.QueueConfig{MaxWorkers: w.o.Jobs}
	}
	for _, what := range Kinds {
		river.AddWorkerArgs(config.Workers, Job{What: what}, w)
	}
	if w.q, err = open(ctx, s, config); err != nil {
		return err
	}
	defer w.q.Close()
	if err := w.beat(ctx); err != nil { // before the first job is taken
		return err
	}
	var beats sync.WaitGroup
	ended := make(chan struct{})
	beats.Go(func() { w.beats(ended) })
	err = w.q.client.Start(ctx)
	if err == nil {
		<-w.q.client.Stopped()
	}
	close(ended)
	beats.Wait()
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), w.o.Beat)
	defer stop()
	_, _ = s.Alive(last, w.name, w.queue, 0)
	return err
}

// beats says that the worker lives, and gives back what dead ones had taken, until its jobs have ended. After a database that did not answer others
// get the time to say that they live before they are taken for dead.
func (w *worker) beats(ended <-chan struct{}) {
	tick := time.NewTicker(w.o.Beat)
	defer tick.Stop()
	var retained time.Time // the hour whose retention was seen to
	for last := time.Now(); ; {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		ctx, stop := context.WithTimeout(context.Background(), w.o.Beat)
		err := w.beat(ctx)
		if err == nil && time.Since(last) < 2*w.o.Beat {
			err = w.rescue(ctx)
		}
		if hour := w.clock.Now().Truncate(retentionEvery); err == nil && hour != retained {
			if err = w.q.carryOut(ctx, w.queue, w.o.Project, w.o.Retain); err == nil {
				retained = hour
			}
		}
		if stop(); err == nil {
			last = time.Now()
		} else {
			w.log.Warn("the store does not answer", "error", err)
		}
	}
}

// beat says that the worker lives, and sets its clock by the database's.
func (w *worker) beat(ctx context.Context) error {
	now, err := w.q.store.Alive(ctx, w.name, w.queue, 4*w.o.Beat)
	if err == nil {
		w.clock.set(now)
	}
	return err
}

// rescue gives back what workers had taken that do not live.
func (w *worker) rescue(ctx context.Context) error {
	const page = 1000
	now := w.clock.Now().UTC()
	far := now.AddDate(1, 0, 0) // all that run
	for after := int64(0); ; {
		rows, err := w.q.rows.JobGetStuck(ctx, &riverdriver.JobGetStuckParams{AfterID: after, Max: page, StuckHorizon: far})
		if err != nil || len(rows) == 0 {
			return err
		}
		after = rows[len(rows)-1].ID
		live, err := w.q.store.Workers(ctx) // after the jobs: who took one lived before
		if err != nil {
			return err
		}
		p := &riverdriver.JobRescueManyParams{StuckHorizon: far}
		for _, row := range rows {
			if n := len(row.AttemptedBy); n > 0 && live[row.AttemptedBy[n-1]] == "" {
				giveBack(p, row, now)
			}
		}
		if len(p.ID) > 0 {
			if _, err := w.q.rows.JobRescueMany(ctx, p); err != nil {
				return err
			}
			w.log.Warn("gave back jobs of dead workers", "jobs", p.ID)
		}
	}
}

func giveBack(p *riverdriver.JobRescueManyParams, row *rivertype.JobRow, now time.Time) {
	var meta struct {
		Cancelled time.Time `json:"cancel_attempted_at"`
	}
	_ = json.Unmarshal(row.Metadata, &meta) // what is no JSON was not cancelled
	state, ended := rivertype.JobStateAvailable, (*time.Time)(nil)
	switch {
	case !meta.Cancelled.IsZero():
		state, ended = rivertype.JobStateCancelled, &now
	case row.Attempt >= row.MaxAttempts:
		state, ended = rivertype.JobStateDiscarded, &now
	}
	failed, _ := json.Marshal(rivertype.AttemptError{At: now, Attempt: max(row.Attempt, 0), Error: "its worker died"})
	p.ID, p.Error, p.FinalizedAt = append(p.ID, row.ID), append(p.Error, failed), append(p.FinalizedAt, ended)
	p.ScheduledAt, p.State = append(p.ScheduledAt, now), append(p.State, string(state))
}

// A clock is the database's, as far as this machine knows. It implements rivertype.TimeGenerator.
type clock struct {
	now   func() time.Time // this machine's; nil is time.Now
	ahead atomic.Int64     // how much the database's is ahead
}

func (c *clock) local() time.Time {
	if c.now != nil {
		return c.now()
	}
	return time.Now()
}

func (c *clock) set(now time.Time) { c.ahead.Store(int64(now.Sub(c.local()))) }

// Now is the time by the database's clock.
func (c *clock) Now() time.Time { return c.local().Add(time.Duration(c.ahead.Load())) }

// NowOrNil leaves the time of a statement to the database.
func (c *clock) NowOrNil() *time.Time { return nil }
