package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/queue"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/deck/team/remote"
	"github.com/tapedeck-dev/tapedeck/internal/daemon/metric"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

const programHelp = "`version` of the program: "

type workerOptions struct {
	colorFlag
	storeFlags
	queue.Options
	tree    treeFlag
	metrics string
}

func newWorkerCommand(std *console) *cobra.Command {
	var o workerOptions
	cmd := command("worker", "", func(cmd *cobra.Command, _ []string) error {
		return o.with(cmd.Context(), func(ctx context.Context, s *team.Store) error { return runWorker(ctx, s, &o, std) })
	})
	f := cmd.Flags()
	o.define(f)
	parsedFlag(f, &o.tree, "tree", "recorded", "over what the programs run: recorded, or a `directory` in which they have changed", parseTree)
	f.StringVar(&o.Program, "program-version", "", programHelp+"takes only the jobs that ask for it; default: that of what is in --tree, and jobs that ask for none")
	f.IntVarP(&o.Jobs, "jobs", "j", 1, "how many `at once`")
	f.StringArrayVar(&o.Watch, "watch", nil, watchHelp)
	parsedFlag(f, &o.MaxBytes, "max-size", "8G", "try no run that unpacks to more `bytes` than this: a number with K, M, G or T", parseSize)
	f.StringVar(&o.metrics, "metrics", "", "serve /metrics for Prometheus on this `address`, as in 127.0.0.1:9101")
	std.jsonFlag(cmd, "a line of JSON a verdict")
	o.defineColor(cmd)
	return cmd
}

func runWorker(ctx context.Context, s *team.Store, o *workerOptions, std *console) error {
	colours := o.colours(std.out)
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	if o.Jobs < 1 {
		return fmt.Errorf("-j %d: want at least 1", o.Jobs)
	}
	o.Project, o.Log, o.Rules = o.project, logger(std.err), filepath.Dir(lib.Dir)
	switch {
	case o.tree.at != "":
		o.Tree, o.Rules = o.tree.at, o.tree.at
	case o.tree.now:
		return errors.New("--tree now: a worker has no work tree of a recording's own: want recorded, or a directory")
	}
	if o.Retain, err = o.rules(); err != nil {
		return err
	}
	count := func(*gate.Result) {}
	if o.metrics != "" {
		var stop func()
		if count, stop, err = serveMetrics(ctx, s, o.metrics, std); err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
		defer stop()
	}
	var lines sync.Mutex
	o.Report = func(r *gate.Result) {
		count(r)
		lines.Lock()
		defer lines.Unlock()
		if std.json {
			printTestJSON(std.out, r)
			return
		}
		new(testOptions).print(std.out, r, colours)
	}
	std.say("takes jobs from %s", s.Name())
	return queue.Run(ctx, s, &o.Options)
}

// serveMetrics shows what a worker has found, which count is told of, and how its store and queue stand when they are asked for.
func serveMetrics(ctx context.Context, s *team.Store, address string, std *console) (count func(*gate.Result), stop func(), err error) {
	q, err := queue.Open(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		q.Close()
		return nil, nil, err
	}
	set := new(metric.Set)
	set.Process()
	verdicts := set.Counters("tapedeck_verdicts_total", "Verdicts of this worker.", "status")
	took := set.Histogram("tapedeck_replay_seconds", "How long its replays took.", metric.Doubling(0.05, 14))
	count = func(r *gate.Result) { verdicts.With(string(r.Status)).Inc(); took.Observe(r.Took.Seconds()) }
	gauge := func(name, help string, n func(context.Context) (int, error)) {
		set.GaugeFunc(name, help, func() float64 {
			ctx, stop := context.WithTimeout(ctx, 5*time.Second)
			defer stop()
			n, err := n(ctx)
			if err != nil {
				return math.NaN()
			}
			return float64(n)
		})
	}
	for _, state := range jobStates {
		gauge("tapedeck_jobs_"+state, "Jobs of all projects that are "+state+".", func(ctx context.Context) (int, error) { return q.Count(ctx, state) })
	}
	gauge("tapedeck_store_runs", "Runs of all projects in the store.", s.Count)
	gauge("tapedeck_store_bytes", "Bytes of the packed recordings of all runs in the store.", s.Bytes)
	gauge("tapedeck_workers", "Workers of all projects that live.", func(ctx context.Context) (int, error) {
		live, err := s.Workers(ctx)
		return len(live), err
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", set)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go server.Serve(l) // until Close
	std.say("metrics at http://%s/metrics", l.Addr())
	return count, func() { server.Close(); q.Close() }, nil
}

// openQueue opens the queue of a store, or of its server.
func openQueue(ctx context.Context, s team.Access) (queue.Jobs, error) {
	if c, ok := s.(*remote.Client); ok {
		return c.Queue(), nil
	}
	return queue.Open(ctx, s.(*team.Store))
}

// queueFlags say which runs of a store a queue's workers are to try, and how.
type queueFlags struct {
	storeFlags
	queue bool
	agent string
	as    string
	put   queue.PutOptions
}

func (o *queueFlags) define(cmd *cobra.Command) {
	f := cmd.Flags()
	o.storeFlags.define(f)
	f.BoolVar(&o.queue, "queue", false, "have workers try runs of --store, named by ID; all where none is named")
	f.StringVar(&o.agent, "agent", "", "with --queue: only those whose program is called `name`")
	wordFlag(cmd, &o.as, "as", queue.Test, "with --queue: test; replay, to which tapedeck.yaml's test does not apply; or verify", queue.Test, queue.Replay, queue.Verify)
	f.StringVar(&o.put.Program, "program-version", "", programHelp+"with --queue: only workers that were given it")
	f.IntVar(&o.put.Priority, "priority", 2, "with --queue: `1 to 4`, 1 goes first")
	f.IntVar(&o.put.Attempts, "attempts", queue.DefaultAttempts, "with --queue: how `often` what could not be tried is tried")
}

// checkQueue says which flags do not go together.
func (o *testOptions) checkQueue(cmd *cobra.Command) error {
	for _, name := range []string{"jobs", "tree", "watch", "changed-since", "list"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is not for --queue: a worker has a --tree, --watch and -j of its own", name)
		}
	}
	switch {
	case o.q.put.Priority < 1 || o.q.put.Priority > 4:
		return fmt.Errorf("--priority %d: want 1 to 4", o.q.put.Priority)
	case o.q.put.Attempts < 1 || o.q.put.Attempts > math.MaxInt16:
		return fmt.Errorf("--attempts %d: want 1 or more", o.q.put.Attempts)
	}
	return nil
}

// runQueued has workers try runs of a store, and says what they found as runTest does.
func runQueued(ctx context.Context, s team.Access, o *testOptions, ids []string, std *console) error {
	if err := o.fill(ctx); err != nil {
		return err
	}
	jobs, err := o.jobsOf(ctx, s, ids)
	if err != nil {
		return storeHint(err)
	}
	q, err := openQueue(ctx, s)
	if err != nil {
		return err
	}
	defer q.Close()
	put, err := q.Put(ctx, jobs, &o.q.put)
	if err != nil {
		return err
	}
	if n, err := q.Workers(ctx, o.q.project, o.q.put.Program); err == nil && n == 0 {
		std.say("no worker takes these jobs yet: tapedeck worker --store … starts one")
	}
	said := false
	return o.report(ctx, len(jobs), std, func(ctx context.Context, report func(*gate.Result)) (*gate.Summary, error) {
		return q.Wait(ctx, put, report, func(err error) {
			if !said {
				std.say("the store does not answer; asked again: %v", err)
			}
			said = true
		})
	})
}

// jobsOf are those of the runs that are named, or that the flags choose.
func (o *testOptions) jobsOf(ctx context.Context, s team.Access, ids []string) (jobs []queue.Job, err error) {
	var runs []team.Run
	for _, id := range ids {
		run, err := s.Find(ctx, o.q.project, id)
		if err != nil {
			return nil, err
		}
		runs = append(runs, *run)
	}
	if len(ids) == 0 {
		runs, err = s.Runs(ctx, &team.Query{Project: o.q.project, Agent: o.q.agent, Limit: math.MaxInt32})
	}
	mode := ""
	if o.Mode != nil {
		mode = o.Mode.String()
	}
	for i := range runs {
		jobs = append(jobs, queue.Job{What: o.q.as, Project: o.q.project, Run: runs[i].ID, Mode: mode, Timeout: o.Timeout})
	}
	if err == nil && len(jobs) == 0 {
		err = fmt.Errorf("%s has no such run; push one with: tapedeck push REC", s.Name())
	}
	return jobs, err
}

// gcQueued has a worker clean a store.
func gcQueued(ctx context.Context, s team.Access, o *gcOptions, std *console) error {
	rules, err := o.rules()
	if err != nil {
		return err
	}
	if o.dryRun {
		return gcStoreDry(ctx, s, o.store.project, rules, std)
	}
	if len(rules) == 0 {
		rules = make([]team.Rule, 1) // which sweeps
	}
	q, err := openQueue(ctx, s)
	if err != nil {
		return err
	}
	defer q.Close()
	jobs := make([]queue.Job, len(rules))
	for i := range rules {
		jobs[i] = queue.Job{What: queue.Retention, Project: o.store.project, Rule: rules[i]}
	}
	put, err := q.Put(ctx, jobs, nil)
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"jobs": put})
	}
	return std.say("put job %s", strings.Trim(fmt.Sprint(put), "[]"))
}

type jobsOptions struct {
	storeFlags
	states []string
	cancel []string
	retry  []string
	limit  int
}

// jobStates are River's.
var jobStates = []string{"available", "running", "retryable", "scheduled", "completed", "cancelled", "discarded"}

func newJobsCommand(std *console) *cobra.Command {
	var o jobsOptions
	cmd := o.accessCommand("jobs", "", func(ctx context.Context, s team.Access, _ []string) error { return storeHint(runJobs(ctx, s, &o, std)) })
	f := cmd.Flags()
	f.StringSliceVar(&o.states, "state", nil, "only those in this `state`: "+strings.Join(jobStates, ", ")+" (repeatable, or with commas)")
	f.StringSliceVar(&o.cancel, "cancel", nil, "end the job of this `number` (repeatable)")
	f.StringSliceVar(&o.retry, "retry", nil, "try the job of this `number`, which has ended, once more (repeatable)")
	f.IntVar(&o.limit, "limit", team.DefaultLimit, "`N` at most, those that were put last")
	std.jsonFlag(cmd, "the jobs as JSON")
	completeFlag(cmd, "state", jobStates...)
	return cmd
}

func runJobs(ctx context.Context, s team.Access, o *jobsOptions, std *console) error {
	q, err := openQueue(ctx, s)
	if err != nil {
		return err
	}
	defer q.Close()
	for _, c := range []struct {
		flag    string
		numbers []string
		f       func(context.Context, string, ...int64) error
	}{{"--cancel", o.cancel, q.Cancel}, {"--retry", o.retry, q.Retry}} {
		for _, number := range c.numbers {
			id, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return fmt.Errorf("%s %q: want the number of a job, as tapedeck jobs lists them", c.flag, number)
			}
			if err := c.f(ctx, o.project, id); err != nil {
				return err
			}
		}
	}
	if len(o.cancel)+len(o.retry) > 0 {
		return nil
	}
	for _, state := range o.states {
		if !slices.Contains(jobStates, state) {
			return fmt.Errorf("--state %q: want one of %s", state, strings.Join(jobStates, ", "))
		}
	}
	if o.limit < 1 || o.limit > queue.MaxList {
		return fmt.Errorf("--limit %d: want 1 to %d", o.limit, queue.MaxList)
	}
	jobs, err := q.List(ctx, o.project, o.limit, o.states...)
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"jobs": jobs})
	}
	for i := range jobs {
		j := &jobs[i]
		visible.Fprintf(std.out, "%d  %-9s  %s  %s %s  attempt %d of %d  %s\n", j.ID, j.State, stamp(j.PutAt), j.What, j.Run, j.Attempt, j.Attempts, j.Error)
	}
	return nil
}

// verdictsOf are what workers found of runs, by their ids.
func verdictsOf(ctx context.Context, s team.Access, project string, runs []team.Run) (map[string][]team.Verdict, error) {
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	return s.Verdicts(ctx, project, ids)
}

// workersVerdict is what a list shows of a worker's verdict.
func workersVerdict(v *team.Verdict) *library.Verdict {
	return &library.Verdict{Status: v.Status, Summary: v.Summary, By: v.By, Tapedeck: v.Tapedeck, At: v.At}
}

// keepVerdict has a recording that was pulled know what a worker found of it last.
func keepVerdict(ctx context.Context, s team.Access, project, id string, rec *recording.Recording) error {
	v, err := s.Verdict(ctx, project, id, "", "")
	if err != nil || v == nil {
		return err
	}
	r, err := queue.ResultOf(v)
	if err == nil {
		library.Judged(rec, *workersVerdict(v), library.Judgement{Report: r.Report})
	}
	return err
}
