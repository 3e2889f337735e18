package queue

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/adrg/xdg"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/internal/version"
)

// Where a real PostgreSQL is, and a command that starts it anew at once: .ci/run store has both. A worker that is a process of its own is told by
// workerVar what to do.
const postgresVar, restartVar, workerVar = "TAPEDECK_TEST_POSTGRES", "TAPEDECK_TEST_POSTGRES_RESTART", "QUEUE_TEST_WORKER"

// beat is that of tests.
const beat = 200 * time.Millisecond

type place struct {
	Runs, Blobs, Tree string
	Full              string // a directory whose disk is full for a while
}

func TestMain(m *testing.M) {
	deck.Enter()
	if told := os.Getenv(workerVar); told != "" {
		fmt.Println(work(told))
		os.Exit(1)
	}
	os.Setenv(secretVar, "its-own-Xw2Lk9Vb4Nm6Tr8")
	var err error
	if xdg.ConfigHome, err = os.MkdirTemp("", "queue-test-"); err != nil { // where workers keep the key that signs tombstones
		panic(err)
	}
	status := m.Run()
	os.RemoveAll(xdg.ConfigHome)
	os.Exit(status)
}

// secretVar is a secret of who runs the tests' workers, and of who recorded: another one.
const secretVar = "QUEUE_TEST_TOKEN"

// work is a worker that is to be killed.
func work(told string) error {
	var at place
	if err := json.Unmarshal([]byte(told), &at); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := team.Open(ctx, at.Runs, at.Blobs)
	if err != nil {
		return err
	}
	if at.Full != "" {
		if err := unix.Mount("tmpfs", at.Full, "tmpfs", 0, "size=4k"); err != nil {
			return err
		}
		time.AfterFunc(3*beat, func() { _ = unix.Mount("", at.Full, "", unix.MS_REMOUNT, "size=64m") })
	}
	return Run(ctx, s, &Options{Tree: at.Tree, Beat: beat, Report: func(r *gate.Result) { fmt.Println(r.Name) }})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eachDatabase runs a test on each database that there is here, with a store in which some runs are.
func eachDatabase(t *testing.T, runs int, f func(t *testing.T, r *rig)) {
	if err := deck.Available(); err != nil {
		t.Skip(err)
	}
	databases := map[string]func(t *testing.T) string{"sqlite": func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "runs.sqlite") }}
	if os.Getenv(postgresVar) != "" {
		databases["postgres"] = schema
	}
	t.Parallel()
	for name, d := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &rig{place: place{Runs: d(t), Blobs: "file://" + filepath.Join(t.TempDir(), "blobs"), Tree: t.TempDir()}}
			var err error
			r.store, err = team.Open(t.Context(), r.Runs, r.Blobs)
			must(t, err)
			t.Cleanup(func() { r.store.Close() })
			r.queue, err = Open(t.Context(), r.store)
			must(t, err)
			t.Cleanup(r.queue.Close)
			r.program(t, agent)
			r.push(t, runs)
			f(t, r)
		})
	}
}

// schema is a schema of its own in the database of a test.
func schema(t *testing.T) string {
	db, err := sql.Open("pgx", os.Getenv(postgresVar))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	name := fmt.Sprintf("q%d", time.Now().UnixNano())
	_, err = db.ExecContext(t.Context(), "CREATE SCHEMA "+name)
	must(t, err)
	t.Cleanup(func() { _, _ = db.Exec("DROP SCHEMA " + name + " CASCADE") })
	u, err := url.Parse(os.Getenv(postgresVar))
	must(t, err)
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// A rig is a store with runs, and the tree of the program that they ran.
type rig struct {
	place
	store *team.Store
	queue *Queue
	jobs  []Job
}

// agent is the program that is recorded, and hangs one that does not end.
const agent, hangs = "echo the prompt is: be kind", "while :; do :; done"

func (r *rig) program(t *testing.T, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(r.Tree, "agent.sh"), []byte(text+"\n"), 0o644))
}

// recorded is a recording of the agent, made once, without a seal so that it can be given other ids.
var recorded = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "queue-test-")
	if err != nil {
		return "", err
	}
	tree := filepath.Join(dir, "tree")
	if err := errors.Join(os.Mkdir(tree, 0o700), os.WriteFile(filepath.Join(tree, "agent.sh"), []byte(agent+"\n"), 0o644)); err != nil {
		return "", err
	}
	rec := filepath.Join(dir, "one.rec")
	_, err = deck.Record(context.Background(), &deck.RecordOptions{Argv: []string{"sh", "agent.sh"}, Dir: tree, Tree: tree, Env: append(os.Environ(), secretVar+"=lt4Xw2Lk9Vb4Nm6Tr8Yp"), Output: rec, NoSeal: true})
	return rec, err
})

// push puts runs into the store, and makes a job of each.
func (r *rig) push(t *testing.T, runs int) {
	t.Helper()
	from, err := recorded()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "one.rec")
	must(t, os.CopyFS(dir, os.DirFS(from)))
	for i := range runs {
		rec, err := recording.Open(dir)
		must(t, err)
		rec.Manifest.ID = fmt.Sprintf("run%02d", i)
		must(t, rec.Manifest.Write(dir, false))
		_, _, err = r.store.Push(t.Context(), rec, nil)
		must(t, err)
		r.jobs = append(r.jobs, Job{What: Test, Run: rec.Manifest.ID})
	}
}

// worker starts a worker in this process, which ends when the test does or stop is called.
func (r *rig) worker(t *testing.T, o Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if o.Beat = beat; testing.Verbose() {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := Run(ctx, r.store, &o); err != nil && ctx.Err() == nil {
			t.Errorf("a worker: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

func (r *rig) put(t *testing.T, o *PutOptions) []int64 {
	t.Helper()
	ids, err := r.queue.Put(t.Context(), r.jobs, o)
	must(t, err)
	return ids
}

// wait waits for jobs, and returns what came of each run.
func (r *rig) wait(t *testing.T, ids []int64) map[string]*gate.Result {
	t.Helper()
	out := make(map[string]*gate.Result)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	s, err := r.queue.Wait(ctx, ids, func(g *gate.Result) { out[g.Name] = g }, func(err error) { t.Logf("asked again: %v", err) })
	if err != nil || len(s.Results) != len(ids) {
		jobs, _ := r.queue.List(t.Context(), "", 100)
		t.Fatalf("%v, %d results of %d: %+v", err, len(s.Results), len(ids), jobs)
	}
	return out
}

func (r *rig) verdicts(t *testing.T, run string) []team.Verdict {
	t.Helper()
	all, err := r.store.Verdicts(t.Context(), "", []string{run, "no such"})
	must(t, err)
	return all[run]
}

// jobState waits until a job has one of some states, and says which.
func (r *rig) jobState(t *testing.T, id int64, states ...string) string {
	t.Helper()
	for range 1500 {
		jobs, err := r.queue.List(t.Context(), "", 100, states...)
		must(t, err)
		if i := slices.IndexFunc(jobs, func(e Entry) bool { return e.ID == id }); i >= 0 {
			return jobs[i].State
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("job %d does not become %s", id, states)
	return ""
}

// TestVersions: a verdict is of a run, a version of tapedeck and a version of the program; the last of each is there, with all that was found.
func TestVersions(t *testing.T) {
	eachDatabase(t, 1, func(t *testing.T, r *rig) {
		stop := r.worker(t, Options{Tree: r.Tree})
		if got := r.wait(t, r.put(t, nil))["run00"]; got == nil || got.Status != gate.Faithful || got.Report == nil {
			t.Fatalf("the program as it was: %+v", got)
		}
		r.program(t, "echo the prompt is: be curt")
		got := r.wait(t, r.put(t, nil))["run00"]
		if got.Status != gate.Diverged || !strings.Contains(got.First, "be curt") || got.Path != "run00" {
			t.Errorf("the changed program: %+v", got)
		}
		var xml bytes.Buffer
		must(t, (&gate.Summary{Results: []*gate.Result{got}}).WriteJUnit(&xml, false))
		if !strings.Contains(xml.String(), `<failure message="DIVERGED`) {
			t.Errorf("JUnit: %s", &xml)
		}
		r.wait(t, r.put(t, nil)) // once more: it takes the place of the one before
		all := r.verdicts(t, "run00")
		if len(all) != 2 || all[0].Status != "diverged" || all[1].Status != "faithful" || all[0].Program == all[1].Program {
			t.Fatalf("verdicts: %+v", all)
		}
		if v := &all[0]; v.Tapedeck != version.Version || v.Kernel == "" || v.Lacks == nil || v.Worker == "" || v.By != Test || v.MS <= 0 {
			t.Errorf("a verdict: %+v", v)
		}
		r.jobs[0].What = Verify
		if got := r.wait(t, r.put(t, nil))["run00"]; got.Status != gate.Faithful {
			t.Errorf("verify: %+v", got)
		}
		if all := r.verdicts(t, "run00"); len(all) != 3 {
			t.Errorf("what verify found stands in the place of what a program did: %+v", all)
		}
		r.jobs[0].What = Test
		r.program(t, `echo "${`+secretVar+`%????}"`)
		if got := r.wait(t, r.put(t, nil))["run00"]; got.Status != gate.Diverged || strings.Contains(fmt.Sprint(got.First, got.Report), "its-own") {
			t.Errorf("a program was given a secret of the worker's: %+v", got)
		}
		stop()
		skey, _, err := note.GenerateKey(nil, "test")
		must(t, err)
		signer, err := note.NewSigner(skey)
		must(t, err)
		_, err = r.store.Remove(t.Context(), "", "run00", "", signer)
		if must(t, err); len(r.verdicts(t, "run00")) > 0 {
			t.Error("verdicts of what was purged")
		}
		if file, ok := strings.CutPrefix(r.Runs, "sqlite://"); ok {
			b, err := os.ReadFile(file)
			if must(t, err); bytes.Contains(b, []byte("be curt")) {
				t.Error("the database still holds what a verdict said")
			}
		}
	})
}

// TestKilled: workers are killed at random moments, and each run has one verdict.
func TestKilled(t *testing.T) {
	workers := 4
	if os.Getenv("TAPEDECK_LONG") != "" || os.Getenv(postgresVar) != "" {
		workers = 10
	}
	eachDatabase(t, 2*workers, func(t *testing.T, r *rig) {
		told, err := json.Marshal(r.place)
		must(t, err)
		ids := r.put(t, &PutOptions{Attempts: 2 * workers})
		var killed atomic.Int32
		for i := range workers {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), workerVar+"="+string(told))
			must(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			if i > 0 {
				time.AfterFunc(time.Duration(100+rand.IntN(1500))*time.Millisecond, func() {
					if cmd.Process.Kill() == nil {
						killed.Add(1)
					}
				})
			}
		}
		for run, got := range r.wait(t, ids) {
			if got.Status != gate.Faithful || len(r.verdicts(t, run)) != 1 {
				t.Errorf("%s: %+v, %d verdicts", run, got, len(r.verdicts(t, run)))
			}
		}
		t.Logf("killed %d of %d", killed.Load(), workers)
	})
}

// TestCancelled: a job that waits and one that is under way end when they are cancelled, and when who waits for them gives up.
func TestCancelled(t *testing.T) {
	eachDatabase(t, 2, func(t *testing.T, r *rig) {
		r.program(t, hangs)
		r.worker(t, Options{Tree: r.Tree})
		ids := r.put(t, nil)
		r.jobState(t, ids[0], "running")
		if a, b := r.queue.Cancel(t.Context(), "other", ids...), r.queue.Retry(t.Context(), "other", ids...); a == nil || b == nil {
			t.Error("another project has cancelled or retried jobs")
		}
		must(t, r.queue.Cancel(t.Context(), "", ids...))
		for run, got := range r.wait(t, ids) {
			if got.Status != gate.Broken || !strings.HasPrefix(got.Why, "cancelled") {
				t.Errorf("%s: %+v", run, got)
			}
		}
		ids = r.put(t, nil)
		r.jobState(t, ids[0], "running")
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if s, err := r.queue.Wait(ctx, ids, nil, nil); !errors.Is(err, context.Canceled) || s.Left != 2 {
			t.Errorf("%+v, %v", s, err)
		}
		r.jobState(t, ids[0], "cancelled")
		r.jobState(t, ids[1], "cancelled")
		if got := r.verdicts(t, "run00"); len(got) > 0 {
			t.Errorf("a verdict of what was cancelled: %+v", got)
		}
	})
}

// TestStopped: what is under way when a worker is told to end, and does not end, is given back without an attempt.
func TestStopped(t *testing.T) {
	eachDatabase(t, 1, func(t *testing.T, r *rig) {
		r.program(t, hangs)
		stop := r.worker(t, Options{Tree: r.Tree})
		ids := r.put(t, &PutOptions{Attempts: 1})
		r.jobState(t, ids[0], "running")
		stop()
		r.jobState(t, ids[0], "available")
		if live, err := r.store.Workers(t.Context()); err != nil || len(live) > 0 {
			t.Errorf("workers: %v %v", live, err)
		}
		r.program(t, agent)
		r.worker(t, Options{Tree: r.Tree})
		if got := r.wait(t, ids)["run00"]; got.Status != gate.Faithful {
			t.Errorf("%+v", got)
		}
	})
}

// TestDeadLetter: what cannot be tried is tried again, becomes a dead letter with a verdict, and can be tried once more.
func TestDeadLetter(t *testing.T) {
	eachDatabase(t, 1, func(t *testing.T, r *rig) {
		r.program(t, hangs)
		r.jobs[0].Timeout = 700 * time.Millisecond
		r.worker(t, Options{Tree: r.Tree, Program: "v2"})
		ids := r.put(t, &PutOptions{Attempts: 2, Program: "v2"})
		if got := r.wait(t, ids)["run00"]; got.Status != gate.Hangs {
			t.Errorf("what hangs: %+v", got)
		}
		jobs, err := r.queue.List(t.Context(), "", 9, "discarded")
		must(t, err)
		if len(jobs) != 1 || jobs[0].Attempt != 2 || jobs[0].Error != "hangs" {
			t.Errorf("dead letters: %+v", jobs)
		}
		r.program(t, agent)
		for ended := ""; ended != "completed"; { // a machine with more to do may take longer than the job's time once more
			must(t, r.queue.Retry(t.Context(), "", ids...))
			ended = r.jobState(t, ids[0], "completed", "discarded")
		}
		if all := r.verdicts(t, "run00"); len(all) != 1 || all[0].Status == "hangs" || all[0].Program != "v2" {
			t.Errorf("verdicts: %+v", all)
		}
	})
}

// TestRetention: workers carry out what their options say of the project, once for all of them, and leave what is on hold.
func TestRetention(t *testing.T) {
	eachDatabase(t, 6, func(t *testing.T, r *rig) {
		_, err := r.store.Hold(t.Context(), "", "run00", "somebody", "evidence")
		must(t, err)
		for range 2 {
			r.worker(t, Options{Retain: []team.Rule{{Keep: 3}, {MaxSize: 1 << 40}}})
		}
		for range 1500 {
			if n, err := r.store.Count(t.Context()); err != nil || n == 4 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		runs, err := r.store.Runs(t.Context(), &team.Query{})
		if must(t, err); len(runs) != 4 || runs[3].ID != "run00" || runs[2].ID != "run03" {
			t.Errorf("left: %+v", runs)
		}
		time.Sleep(3 * beat)
		if jobs, err := r.queue.List(t.Context(), "", 100); err != nil || len(jobs) > 4 { // 2, and 2 where an hour began meanwhile
			t.Errorf("jobs: %+v %v", jobs, err)
		}
	})
}

// TestNewer: a job of a newer version is left alone by an older worker, and done by a newer one, which does older ones too.
func TestNewer(t *testing.T) {
	eachDatabase(t, 1, func(t *testing.T, r *rig) {
		stop := r.worker(t, Options{})
		newer := r.put(t, &PutOptions{version: Version + 1})
		r.wait(t, r.put(t, nil))
		jobs, err := r.queue.List(t.Context(), "", 9, "available")
		if must(t, err); len(jobs) != 1 || jobs[0].ID != newer[0] || jobs[0].Attempt != 0 {
			t.Errorf("left: %+v", jobs)
		}
		stop()
		r.worker(t, Options{version: Version + 1})
		r.wait(t, append(newer, r.put(t, nil)...))
	})
}

// TestClocks: clocks an hour apart change nothing: each run is tried as often as it should be, at the time of the database.
func TestClocks(t *testing.T) {
	eachDatabase(t, 4, func(t *testing.T, r *rig) {
		for _, apart := range []time.Duration{time.Hour, -time.Hour} {
			r.worker(t, Options{Tree: r.Tree, now: func() time.Time { return time.Now().Add(apart) }})
		}
		r.wait(t, r.put(t, nil))
		for _, j := range r.jobs {
			if all := r.verdicts(t, j.Run); len(all) != 1 || time.Since(all[0].At).Abs() > time.Minute {
				t.Errorf("%s: %+v", j.Run, all)
			}
		}
		r.program(t, hangs)
		r.jobs = r.jobs[:1]
		r.jobs[0].Timeout = 100 * time.Millisecond
		r.wait(t, r.put(t, &PutOptions{Attempts: 2})) // the second attempt is soon, and not in an hour
	})
}

// TestGone: a run that is purged while its job waits is no verdict, and a damaged one is.
func TestGone(t *testing.T) {
	eachDatabase(t, 2, func(t *testing.T, r *rig) {
		blobs, err := team.OpenBlobs(t.Context(), r.Blobs)
		must(t, err)
		run, err := r.store.Run(t.Context(), "", "run00")
		must(t, err)
		must(t, blobs.Delete(t.Context(), run.Digest))
		r.jobs[1].Run = "run0" // the beginning of two
		r.worker(t, Options{})
		got := r.wait(t, r.put(t, nil))
		if a := got["run00"]; a.Status != gate.Damaged {
			t.Errorf("damaged: %+v", a)
		}
		if b := got["run0"]; b.Status != gate.Broken || len(r.verdicts(t, "run01")) > 0 {
			t.Errorf("gone: %+v", b)
		}
	})
}

// TestFullDisk: a worker whose disk is full uses up no attempt, and goes on when there is place again.
func TestFullDisk(t *testing.T) {
	eachDatabase(t, 1, func(t *testing.T, r *rig) {
		r.Full = t.TempDir()
		told, err := json.Marshal(r.place)
		must(t, err)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), workerVar+"="+string(told), "TMPDIR="+r.Full)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		var said bytes.Buffer
		cmd.Stdout = &said
		must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); t.Logf("%s", &said) })
		if got := r.wait(t, r.put(t, nil))["run00"]; got.Status != gate.Faithful {
			t.Errorf("%+v", got)
		}
		jobs, err := r.queue.List(t.Context(), "", 9, "completed")
		if must(t, err); len(jobs) != 1 || jobs[0].Attempt != 1 {
			t.Errorf("jobs: %+v", jobs)
		}
	})
}

// TestTooLarge: a run that unpacks to more than a worker takes is not unpacked.
func TestTooLarge(t *testing.T) {
	eachDatabase(t, 1, func(t *testing.T, r *rig) {
		r.worker(t, Options{MaxBytes: 100})
		if got := r.wait(t, r.put(t, &PutOptions{Attempts: 1}))["run00"]; got.Status != gate.Broken || !strings.Contains(got.Why, "100") {
			t.Errorf("%+v", got)
		}
	})
}

// TestBucket: a bucket that answers 500, or slowly, is asked again.
func TestBucket(t *testing.T) {
	eachDatabase(t, 3, func(t *testing.T, r *rig) {
		var asked atomic.Int32
		files := http.FileServer(http.Dir(strings.TrimPrefix(r.Blobs, "file://")))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			path, blob := strings.CutPrefix(q.URL.Path, "/runs/b/")
			if n := asked.Add(1); blob && n%3 != 0 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			if blob {
				time.Sleep(50 * time.Millisecond)
				q.URL.Path = path
				w.Header().Set("ETag", `"x"`)
				files.ServeHTTP(w, q)
			}
		}))
		defer server.Close()
		defer r.store.Close()
		var err error
		r.store, err = team.Open(t.Context(), r.Runs, "s3://runs/b?region=us-east-1&endpoint="+server.URL)
		must(t, err)
		stop := r.worker(t, Options{Tree: r.Tree})
		for run, got := range r.wait(t, r.put(t, nil)) {
			if got.Status != gate.Faithful || len(r.verdicts(t, run)) != 1 {
				t.Errorf("%s: %+v", run, got)
			}
		}
		stop()
		r.store.Close()
	})
}

// pushOn pushes one run after the other, whatever the store says, and returns which were acknowledged.
func (r *rig) pushOn(ctx context.Context, t *testing.T) (acknowledged []string) {
	from, err := recorded()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "more.rec")
	must(t, os.CopyFS(dir, os.DirFS(from)))
	for i := 0; ctx.Err() == nil; i++ {
		rec, err := recording.Open(dir)
		must(t, err)
		rec.Manifest.ID = fmt.Sprintf("more%03d", i)
		must(t, rec.Manifest.Write(dir, false))
		if _, _, err := r.store.Push(ctx, rec, nil); err == nil {
			acknowledged = append(acknowledged, rec.Manifest.ID)
		}
	}
	return acknowledged
}

// TestRestart: PostgreSQL is started anew amid work, and everything goes on.
func TestRestart(t *testing.T) {
	restart := os.Getenv(restartVar)
	if restart == "" {
		t.Skip(restartVar + " is not set")
	}
	eachDatabase(t, 12, func(t *testing.T, r *rig) {
		if !strings.HasPrefix(r.Runs, "postgres") {
			return
		}
		r.worker(t, Options{Tree: r.Tree})
		r.worker(t, Options{Tree: r.Tree})
		ids := r.put(t, nil)
		pushed := make(chan []string) // what was acknowledged
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { pushed <- r.pushOn(ctx, t) }()
		r.jobState(t, ids[0], "completed") // the workers are at work: one that starts now could not
		time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, func() {
			if out, err := exec.Command("bash", "-c", restart).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		for run, got := range r.wait(t, ids) {
			if got.Status != gate.Faithful || len(r.verdicts(t, run)) != 1 {
				t.Errorf("%s: %+v", run, got)
			}
		}
		stop()
		acknowledged := <-pushed
		for _, id := range acknowledged {
			if _, err := r.store.Pull(t.Context(), "", id, filepath.Join(t.TempDir(), id), nil); err != nil {
				t.Errorf("%s was acknowledged: %v", id, err)
			}
		}
		t.Logf("%d acknowledged meanwhile", len(acknowledged))
	})
}
