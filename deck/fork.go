package deck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/deck/endcheck"
	"github.com/tapedeck-dev/tapedeck/deck/fork"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/mcptest"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ForkOptions say how Fork runs a recording again. Plan is required, the zero value of every other field works.
type ForkOptions struct {
	Plan    *fork.Plan
	Changes *fork.Changes
	// Live lets the program reach the network past the point, as it did while recording. Without it what follows a changed answer is
	// answered from the rest of the tape as far as it fits.
	Live      bool
	Upstreams map[string]string // as in RecordOptions; on top of those that the recording keeps
	// MCP names tool servers that are told what the tape tells up to the point, and answer themselves past it: the program of one over stdio is
	// started, one over HTTP needs Live. The others are answered from the tape.
	MCP []string

	Env []string // where secrets are taken from, and proxies; the process's own when nil
	Streams
	Signals <-chan os.Signal

	TreeNow bool          // as in ReplayOptions
	TreeAt  string        // likewise
	Output  string        // directory of the recording; a new one in the work tree's library when empty
	Verify  string        // a command of the shell that is run over the work tree as the fork left it; "" for none
	Timeout time.Duration // of that command; 0 is endcheck.DefaultTimeout

	Starting  func() // called before the program starts; nil is not
	ConfigDir string
	Log       *slog.Logger
}

// A Forked is what Fork leaves behind.
type Forked struct {
	Recording *recording.Recording
	Exit      recording.Exit
	OpenLine  bool
	// Report is about what comes before the point.
	Report *fidelity.Report
	// Came says that the run came to the point. Where it did not nothing was changed, and nothing live has happened.
	Came bool
	// Prefix is how long the run took to come there, and Recorded how long it had taken; 0 where that is not known.
	Prefix, Recorded time.Duration
	// Refused is what the program asked for and no tape answered, past the point too: method and URL, or method and tool server.
	Refused []string
	// Turns are those of the conversation from the point on, by fidelity.Side.
	Turns [2][]fork.Turn
	// Told are answers of tool servers that were started which are others before the point than on the tape.
	Told []*mcptest.Result
}

// forking is a replay that leaves its tape. Its methods do what a nil one needs: nothing.
type forking struct {
	o       *ForkOptions
	id      string
	at      *exchange.Fork
	started time.Time      // of the recording
	began   time.Time      // when the program was let go; zero before
	came    time.Time      // when it was at the point; zero before
	reach   *RecordOptions // where it is live: its upstreams, and what else the recording was let reach
	servers *running       // nil for none

	failed   string
	verified *recording.Check
	turns    [2][]fork.Turn
	refused  []string
}

// Fork runs the program of rec again. Up to the point of the plan it is answered from the tape, which must fit; from there on it is another
// run, which becomes a recording of its own. An error without a Forked means that it could not be run; what was recorded by then stays,
// unfinished. One with it is that of its seal.
func Fork(ctx context.Context, rec *recording.Recording, o *ForkOptions) (*Forked, error) {
	f := &forking{o: o, started: time.Now()}
	if o.Changes == nil {
		o.Changes = new(fork.Changes)
	}
	if err := errors.Join(replayable(rec), f.check(rec)); err != nil {
		return nil, err
	}
	prepared, err := prepareWorld(false, true)
	if err != nil {
		return nil, err
	}
	r := &replayer{fork: f, rec: rec, roots: rec.Manifest.Roots, prepared: prepared}
	defer func() { r.scratch.removeAfter(prepared) }()
	m := rec.Manifest
	f.id = recording.NewID(f.started)
	lib := library.Of(m.Roots.LibraryRoot(m.Cwd))
	dir, held, err := lib.Place(f.id, o.Output, false)
	if err != nil {
		return nil, err
	}
	defer func() { recording.Unlock(held) }()
	r.o = &ReplayOptions{
		Env: o.Env, Streams: o.Streams, Signals: o.Signals, TreeNow: o.TreeNow, TreeAt: o.TreeAt, Out: dir, Starting: func() { f.starting(lib, dir) },
		ConfigDir: o.ConfigDir, Log: o.Log,
	}
	v, err := r.replay(ctx)
	if err != nil {
		if f.began.IsZero() {
			os.RemoveAll(dir) // nothing has happened
		}
		return nil, err
	}
	return f.made(ctx, rec, dir, v)
}

// starting is called before the program starts: there will be a recording, whatever comes.
func (f *forking) starting(lib *library.Library, dir string) {
	if f.o.Output != "" {
		if err := lib.Point(f.id, dir, false); err != nil && f.o.Log != nil {
			f.o.Log.Warn("the recording is known by its path alone, not by its id", "path", dir, "err", err)
		}
	}
	if f.began = time.Now(); f.o.Starting != nil {
		f.o.Starting()
	}
}

// made is the recording at dir, which is locked, sealed where its parent is.
func (f *forking) made(ctx context.Context, rec *recording.Recording, dir string, v *Verdict) (*Forked, error) {
	made, err := recording.Open(dir)
	if err != nil {
		return nil, err
	}
	if rec.Manifest.Sealed {
		if _, err = sealing.SealDir(ctx, made.Dir, sealing.Key(f.o.ConfigDir), &seal.Options{ID: made.Manifest.ID, Sync: true}); err != nil {
			err = fmt.Errorf("%s is whole, and not sealed: %w", dir, err)
		} else if made, err = recording.Open(dir); err != nil {
			return nil, err
		}
	}
	out := &Forked{Recording: made, Exit: v.Exit, OpenLine: v.OpenLine, Report: v.Report, Turns: f.turns, Refused: f.refused, Came: f.at.Past(), Told: f.servers.answers()}
	if !f.came.IsZero() {
		out.Prefix = f.came.Sub(f.began)
	}
	if ms := f.at.CameMS(); ms != 0 {
		out.Recorded = time.UnixMilli(ms).Sub(rec.Manifest.StartedAt)
	}
	return out, err
}

// check refuses what cannot be forked so, and settles what is reached and what is started.
func (f *forking) check(rec *recording.Recording) (err error) {
	m := rec.Manifest
	if f.servers, err = runningOf(rec, f.o.MCP); err != nil {
		return err
	}
	switch need, far := f.o.Changes.NeedLive(), f.servers.far(); {
	case m.Proxy:
		return fmt.Errorf("%s was recorded outside the jail: a fork runs in it", rec.Dir)
	case f.o.Verify != "" && m.Roots.Tree == "":
		return fmt.Errorf("--verify: there is no work tree in %s", rec.Dir)
	case !f.o.Live && need != "":
		return fmt.Errorf("%s changes what a model is asked: add --live, which asks it", need)
	case !f.o.Live && far != nil:
		return fmt.Errorf("--mcp %s: it is at %s: add --live, which reaches it", far.Name, far.URL)
	case !f.o.Live && f.o.Changes.Answer == nil && f.servers == nil:
		return errors.New("nothing would differ: change the recorded answer (--edit, --set answer=TEXT), start a tool server (--mcp NAME), or add --live, which asks models anew from there on")
	case !f.o.Live:
		return nil
	}
	ro := &RecordOptions{Upstreams: f.o.Upstreams, Argv: []string{"-"}}
	if err := Again(rec, ro); err != nil {
		return err
	}
	f.reach = ro
	f.servers.place(ro.Upstreams)
	return network.CheckUpstreams(ro.Upstreams)
}

// Reached lists to whom the models' hosts of a plan lead, as a fork of rec reaches them: "HOST" or "HOST at URL"; and which tool servers it
// starts.
func Reached(rec *recording.Recording, o *ForkOptions) (out []string, starts []*ToolServer, err error) {
	f := &forking{o: o}
	if err := f.check(rec); err != nil {
		return nil, nil, err
	}
	if f.servers != nil {
		starts = f.servers.servers
	}
	if !o.Live {
		return nil, starts, nil
	}
	for _, host := range o.Plan.Hosts() {
		for _, scheme := range []string{"https", "http"} {
			if at := network.UpstreamOf(f.reach.Upstreams, &url.URL{Scheme: scheme, Host: host}); at != "" {
				host += " at " + at
				break
			}
		}
		out = append(out, host)
	}
	return out, starts, nil
}

func (f *forking) live() bool { return f != nil && f.o.Live }

// past reports whether the run has come to the point.
func (f *forking) past() bool { return f != nil && f.at.Past() }

// divide divides the book of r.
func (f *forking) divide(r *replayer) (err error) {
	if f == nil {
		return nil
	}
	o := exchange.ForkOptions{Closed: !f.o.Live, Passing: func() {
		f.came = time.Now()
		r.processes.leave(f.time(r))
		if r.s.http != nil {
			r.s.http.Leave()
		}
	}}
	if c := r.s.redactor.mcp; c != nil {
		o.Kept = c.Carries
	}
	if f.servers.far() != nil {
		r.s.http.GoLive(&mcp.LiveOptions{Serves: f.servers.has, Told: func(is *mcp.Recorded, a *mcp.ToldAnswer) { f.servers.tell(r.s.mcp, is, a) }})
		o.Leaves = r.s.http.Leaves
	}
	if f.at, err = r.book.Fork(f.o.Plan.First.Seq, o); f.servers != nil {
		f.servers.at = f.at
	}
	return err
}

// asks has the program be who asked what a recorded tool server did that runs now: the tape answers it again.
func (f *forking) asks(k tape.Kind) {
	if f == nil || !f.servers.holds(tape.OriginOf(k)) {
		return
	}
	switch k.(type) {
	case *tape.LLMCall, *tape.HTTPExchange, *tape.WSOpen:
		extra := tape.Extras(k)
		*extra = slices.DeleteFunc(slices.Clone(*extra), func(x tape.Field) bool { return x.Name == tape.ConversationKey })
	}
}

// time is the wall time of the program at the point; zero where the tape does not tell: that of a replay has other times than its program.
func (f *forking) time(r *replayer) (at time.Time) {
	if ms := f.at.CameMS(); ms != 0 && r.rec.Manifest.Parent == nil {
		return time.UnixMilli(ms)
	}
	return at
}

// connect lets the program of r reach what is live.
func (f *forking) connect(p *run) {
	if f == nil {
		return
	}
	nf := &network.Fork{At: f.at, Live: f.o.Live, Change: f.o.Changes.Of}
	if f.o.Changes.Answer != nil {
		nf.Answer = func(asked *network.Asked) (*network.Made, error) { return f.o.Changes.Made(asked, f.o.Plan.Usage) }
	}
	if p.net.Fork = nf; !f.o.Live {
		return
	}
	p.net.Upstreams = f.reach.Upstreams
	if p.net.ProxyEnv = f.o.Env; p.net.ProxyEnv == nil {
		p.net.ProxyEnv = os.Environ()
	}
	p.ports = program.MergePorts(p.ports, program.Ports(f.reach.Upstreams))
	p.loopback = p.loopback || program.NamesLoopback(f.reach.Upstreams)
}

// describe says in the manifest of r's child that it is a fork.
func (f *forking) describe(m *recording.Manifest) {
	if f == nil {
		return
	}
	m.ID, m.StartedAt = f.id, f.started.UTC()
	m.ForkSeq = &f.o.Plan.Seq
	m.Fork = &recording.Fork{Lane: f.o.Plan.Lane, Turn: f.o.Plan.Turn, Live: f.o.Live, MCP: f.o.MCP, Failed: f.failed, Verify: f.verified}
	if f.o.Live {
		m.Ports = program.MergePorts(m.Ports, program.Ports(f.reach.Upstreams))
		m.Loopback = m.Loopback || program.NamesLoopback(f.reach.Upstreams)
	}
}

// note adds to the manifest what may hold secrets.
func (f *forking) note(m *recording.Manifest, r *replayer) {
	if f == nil {
		return
	}
	changes, _ := json.Marshal(f.o.Changes) // strings and JSON alone
	m.Fork.Changes, _ = r.s.scrub.Bytes(changes)
	if f.o.Live {
		again := againOf(f.reach, r.s.scrub.String)
		if was := r.rec.Manifest.Again; was != nil {
			kept := *was
			kept.Upstreams, again = again.Upstreams, &kept
		}
		m.Again = again
	}
}

// conclude looks at what the fork of r came to.
func (f *forking) conclude(ctx context.Context, r *replayer, e *ended) error {
	if f == nil {
		return nil
	}
	own := filepath.Join(r.dir, recording.TapeName)
	now, err := fork.Read(recording.RecordsOf(own))
	if err != nil {
		return err
	}
	for i, path := range []string{r.rec.TapePath(), own} {
		if p := f.o.Plan; p.Turn > 0 {
			if f.turns[i], err = fork.TurnsOf(path, p.Lane, p.Turn); err != nil {
				return err
			}
		}
	}
	f.refused = slices.Concat(f.at.Refused(), f.o.Plan.Anew(now, f.o.Plan.Seq))
	f.failed = f.failure(e, r.rec.Manifest)
	if err := f.verify(ctx, r, e); err != nil {
		f.failed = cmp.Or(f.failed, "--verify: "+err.Error())
	}
	return nil
}

// failure says why a fork that came to its point did not come to its end; "" where it did.
func (f *forking) failure(e *ended, parent *recording.Manifest) string {
	now := f.turns[fidelity.Replay]
	switch {
	case e.signals > 0:
		return "interrupted by a signal"
	case !f.at.Past():
		return "it did not come to its point"
	case len(f.refused) > 0 && !f.o.Live:
		return fmt.Sprintf("%s is not on the tape: %s", f.refused[0], cmp.Or(fork.AnsweredBy(f.refused[0], parent), "--live asks models"))
	case len(now) == 0:
		return ""
	}
	if last := now[len(now)-1]; last.Error != "" {
		return fmt.Sprintf("turn %d: %s", last.Turn, last.Error)
	}
	return ""
}

// verify runs the command over the work tree as the fork left it. A signal ends it, and one that came before keeps it from running.
func (f *forking) verify(ctx context.Context, r *replayer, e *ended) error {
	if f.o.Verify == "" || !f.at.Past() || e.signals > 0 {
		return nil
	}
	ctx, stop := untilInterrupted(ctx, f.o.Signals)
	defer stop()
	dir := filepath.Join(r.scratch.Dir, "verify")
	leftOut, err := files.Restore(r.trees.after, r.trees.made, dir)
	if err != nil {
		return err
	}
	command := &endcheck.Command{Line: f.o.Verify, Env: f.o.Env, Timeout: f.o.Timeout, Output: f.o.Stderr, LeftOut: leftOut}
	if f.verified, err = command.Run(ctx, dir); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	for _, s := range []*string{&f.verified.Command, &f.verified.Why, &f.verified.Output} {
		*s = r.s.scrub.String(*s)
	}
	return nil
}

// upTo leaves of the tapes of r what comes before the point, and of what compares what is known of that. How a recording ended that is
// unfinished does not matter.
func (f *forking) upTo(r *replayer, recorded, now fidelity.Records, o *fidelity.LaneOptions) (fidelity.Records, fidelity.Records) {
	if f == nil {
		return recorded, now
	}
	o.Screens, o.LongFiles, o.SameStart = nil, [2]map[string]string{}, false
	if f.at.Past() {
		o.NotCompared = slices.Concat(r.gaps, r.book.Damaged())
	}
	if f.servers != nil && len(f.servers.on) > 0 {
		o.Notes = append(o.Notes, "what started tool servers change in files before the point does not gate")
	}
	if !f.at.Past() && f.at.Lost() == "" {
		o.Notes = append(o.Notes, "the program ended before it came to the point")
	}
	ended := r.rec.Manifest.State == recording.StateFinished // else its tape has no record of the program
	lateThen, lateNow := f.late(r.rec.TapePath(), true), f.late(filepath.Join(r.dir, recording.TapeName), false)
	return f.cut(recorded, true, ended, lateNow), f.cut(now, false, ended, lateThen)
}

// late are the files that were written past the point and the processes that began before it and ended there, of a tape that can be read.
func (f *forking) late(path string, recorded bool) map[string]bool {
	late := make(map[string]bool)
	for rec, err := range recording.RecordsOf(path) {
		if err == nil && besideOf(rec) != "" && !f.at.Before(rec, recorded) && f.at.Before(begunRecord(rec), recorded) == isSpawn(rec) {
			late[besideOf(rec)] = true
		}
	}
	return late
}

// isSpawn reports whether a record is of a process.
func isSpawn(rec *tape.Record) bool { _, ok := rec.Kind.(*tape.ProcessSpawn); return ok }

// begunRecord is the record of a process as it would stand where the process began; any other as it is.
func begunRecord(rec *tape.Record) *tape.Record {
	k, ok := rec.Kind.(*tape.ProcessSpawn)
	if !ok {
		return rec
	}
	began := *rec
	if at := begunAt(k); at != 0 {
		began.G = at
	}
	return &began
}

// besideOf is what a record tells of that goes on beside the conversation: the path and the bytes of a file that was written, a process
// that has ended; "" for another record.
func besideOf(rec *tape.Record) string {
	switch k := rec.Kind.(type) {
	case *tape.FileWrite:
		return fmt.Sprintln(k.Path, k.ContentHash)
	case *tape.ProcessSpawn:
		return fmt.Sprintf("%q %d %s", append([]string{k.Program}, k.Args...), k.ExitCode, k.Signal)
	}
	return ""
}

// cut leaves of a tape what comes before the point, and of the program that it was started. Not of late, which the other tape has past the
// point: threads that do not wait for each other come to it in any order.
func (f *forking) cut(records fidelity.Records, recorded, program bool, late map[string]bool) fidelity.Records {
	return func(yield func(*tape.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				p, spawn := rec.Kind.(*tape.ProcessSpawn)
				switch own := spawn && p.ParentSpawnID == 0 && tape.OriginOf(p) == 0; {
				case own && program:
					rec = begun(rec, p)
				case own, late[besideOf(rec)], f.servers.holds(files.ConversationOf(rec.Kind)), !f.at.Before(rec, recorded):
					continue
				}
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// begun is the record of the program without how it ended, and what it had printed by then.
func begun(rec *tape.Record, p *tape.ProcessSpawn) *tape.Record {
	now := *rec
	now.Kind = &tape.ProcessSpawn{SpawnID: p.SpawnID, Program: p.Program, Args: p.Args, Cwd: p.Cwd, Stdin: p.Stdin}
	return &now
}

// MissingSecrets lists the variables that held a secret while rec was made, and are not set here.
func MissingSecrets(rec *recording.Recording) (names []string) {
	for _, v := range rec.Manifest.Env {
		if v.Secret && os.Getenv(v.Name) == "" {
			names = append(names, v.Name)
		}
	}
	return names
}
