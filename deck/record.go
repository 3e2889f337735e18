package deck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Result is what Record leaves behind.
type Result struct {
	Recording  *recording.Recording
	Exit       recording.Exit
	Counts     map[string]int     // records by kind
	Changed    int                // files of the work tree that the program changed, but for those that Git ignores
	Beside     int                // other files that it changed: in HOME, the temporary directory, ignored ones
	OpenLine   bool               // what the program wrote to a terminal ended within a line
	Signals    int                // that came from outside and were passed on to the program, as ^C is
	Silent     []string           // requests that no upstream answered: "host: why", each once
	Unanswered map[string]int     // exchanges that got no answer, by kind; Counts has them too
	MCP        recording.MCPSeen  // tool servers
	Unreached  []follow.Unreached // ports of this host that were asked for and that no upstream names
	Sealed     *sealing.Sealing   // nil where the recording is not sealed
	NotSealed  error              // why not, where it was to be: the recording is whole all the same, and Recording.Seal seals it
	DaemonLost error              // why the daemon did not learn how the run ended; nil where it did, or there is none
}

// recorder is one Record under way.
type recorder struct {
	o        *RecordOptions
	env      []string
	withheld []string // env with what the program does not get of it
	why      string   // why there is no snapshot of the work tree
	lib      *library.Library
	manifest *recording.Manifest
	config   recording.Config
	redactor *redactor
	dir      string   // of the recording
	held     *os.File // dir, open and locked: see safe
	hidden   []string // from the program and from snapshots: see Library.Hidden

	s         *session
	trees     *trees
	changing  *changing
	spawns    *spawns     // nil outside the jail
	processes *processes  // nil where time and randomness are the kernel's
	scratch   *scratch    // of an isolated run; to be removed
	daemon    *daemon.Run // nil where the run is told to none
	seen      *surveyed   // the tape, once it has its end
	prepared  *jail.Prepared
	ca        *network.CA
	prices    func() (*llm.Prices, error)
	key       func() (*seal.Key, error)
}

// Record runs a program in the jail with every axis on and leaves a recording. The program's exit status is in the
// result, whatever it is. Errors: a *NotFoundError where the program is not there, one that wraps ErrUnavailable where the
// jail cannot be, ErrInterrupted, a *WriteError where the recording could not be written, which ends the program, else what
// kept it from being made; the recording then stays as far as it came.
func Record(ctx context.Context, o *RecordOptions) (*Result, error) {
	prepared, err := prepareWorld(o.Proxy, false)
	if err != nil {
		return nil, err
	}
	r, err := newRecorder(o)
	if err != nil {
		prepared.Close()
		return nil, err
	}
	defer func() { r.scratch.removeAfter(prepared) }()
	var ready sync.WaitGroup
	defer ready.Wait()
	ready.Go(r.readyEnd)
	if r.ca, err = network.NewCA(); err != nil {
		return nil, err
	}
	if err := prepared.Check(); err != nil {
		return nil, err
	}
	r.prepared = prepared
	if err := r.connect(ctx); err != nil {
		return nil, err
	}
	res, err := r.record(ctx)
	lost := r.daemon.Complete(r.ended(res, err))
	if res != nil {
		res.DaemonLost = lost
	}
	return res, err
}

// record makes the recording.
func (r *recorder) record(ctx context.Context) (*Result, error) {
	defer func() { recording.Unlock(r.held) }() // nobody writes to the recording any more
	if err := r.begin(); err != nil {
		return nil, err
	}
	defer r.s.close() // on the way out of a failure; finish closes it, and looks at the error
	return r.run(ctx)
}

// newRecorder settles everything that can fail before anything is written, but for the jail.
func newRecorder(o *RecordOptions) (*recorder, error) {
	if len(o.Argv) == 0 {
		return nil, errors.New("no program to record")
	}
	r := &recorder{o: o, env: o.Env, manifest: recording.NewManifest(time.Now())}
	if r.env == nil {
		r.env = os.Environ()
	}
	r.withheld = r.env
	r.env = program.ToRecord(slices.DeleteFunc(slices.Clone(r.env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(o.Withheld, name)
	}))
	m := r.manifest
	var err error
	if m.Cwd, err = recording.WorkingDir(o.Dir); err != nil {
		return nil, err
	}
	if m.Program.Path, err = program.Find(o.Argv[0], m.Cwd, r.env); err != nil {
		return nil, err
	}
	if m.Roots, r.why, err = recording.FindRoots(m.Cwd, o.Tree, r.env); err != nil {
		return nil, err
	}
	if o.Proxy {
		if err := checkOutside(o); err != nil {
			return nil, err
		}
	}
	if m.Writable, err = directories("--writable", o.Writable); err != nil {
		return nil, err
	}
	if r.config, err = recording.ReadConfig(m.Roots.Tree); err != nil {
		return nil, err
	}
	r.prices, r.key = sync.OnceValues(r.config.PriceTable), sealing.Key(o.ConfigDir)
	own := *o
	own.Upstreams = make(map[string]string)
	maps.Copy(own.Upstreams, r.config.Upstreams)
	maps.Copy(own.Upstreams, o.Upstreams)
	r.o = &own
	if err := network.CheckUpstreams(r.o.Upstreams); err != nil {
		return nil, err
	}
	m.Masking, m.SecretNames = r.config.Masks, r.config.Secrets
	if m.Masking == nil {
		m.Masking = new(recording.Masking)
	}
	m.Masking.Rules = masks.Rules
	if m.Masking.Agents == nil {
		m.Masking.Agents = recording.AgentsIn(r.o.Argv)
	}
	return r, r.describe()
}

// describe fills in the manifest through the guard.
func (r *recorder) describe() (err error) {
	m := r.manifest
	if r.redactor, err = newRedactor(r.o.ConfigDir, m.Cwd, r.o.Argv[1:], r.withheld, r.config.Secrets, &m.Roots, m.Masking); err != nil {
		return err
	}
	paths := []string{m.Program.Path, m.Cwd, m.Roots.Tree, m.Roots.Home, m.Roots.Temp}
	if slices.ContainsFunc(paths, func(p string) bool { return r.redactor.scrub.String(p) != p }) {
		return errors.New("the path of the program, its directory or its HOME holds a secret, and a recording needs them as " +
			"they are: move it to a path without one")
	}
	m.ScrubKey = r.redactor.scrub.KeyID()
	r.redactor.followMCP()
	r.redactor.learnSettings(m.Roots.Tree, nil)
	m.Program.Digest = program.DigestOf(m.Program.Path).String()
	r.noteAgain()
	m.Ports, m.Loopback = program.Ports(r.o.Upstreams), program.NamesLoopback(r.o.Upstreams)
	m.Proxy, m.Umask = r.o.Proxy, umask()
	if !m.Proxy {
		m.Host.Proc = procNow()
	}
	m.TTY = findTTY(r.o)
	r.lib = library.Of(m.Roots.LibraryRoot(m.Cwd))
	return nil
}

// directories checks that each of list is a directory, and returns them absolute and without symbolic links.
func directories(flag string, list []string) ([]string, error) {
	var out []string
	for _, d := range list {
		abs, err := filepath.Abs(d)
		if err != nil {
			return nil, err
		}
		if !recording.IsDir(abs) {
			return nil, fmt.Errorf("%s %s: no such directory", flag, d)
		}
		out = append(out, recording.Resolved(abs))
	}
	return out, nil
}

// findTTY decides which of the program's streams are a terminal; nil for none.
func findTTY(o *RecordOptions) *recording.TTY {
	std := [3]any{o.Stdin, o.Stdout, o.Stderr}
	streams := o.Terminal.Streams(std)
	if len(streams) == 0 {
		return nil
	}
	_, size := terminal.Host(std)
	tty := &recording.TTY{Streams: streams, Rows: size.Rows, Cols: size.Cols, Width: size.Width, Height: size.Height}
	// In the background the modes are those of the shell's own prompt.
	host := terminal.NewCaller(std)
	defer host.Close()
	if host != nil && host.Foreground() {
		tty.Modes = terminal.Modes(host.File())
	}
	return tty
}

// begin makes the recording's directory, its manifest and its tape.
func (r *recorder) begin() (err error) {
	m := r.manifest
	if r.dir, r.held, err = r.lib.Place(m.ID, r.o.Output, r.o.Sync); err != nil {
		return err
	}
	if err := m.Write(r.safe(), r.o.Sync); err != nil {
		return r.unwritten(programNotStarted, err)
	}
	r.s, err = newSession(&sessionOptions{
		redactor: r.redactor, dir: r.safe(), script: m.Program.Path, args: r.o.Argv[1:], roots: m.Roots, sync: r.o.Sync, log: r.o.Log,
	})
	if err != nil {
		return r.unwritten(programNotStarted, err)
	}
	if r.o.Configured != nil {
		for _, name := range configured(r.o, r.config.Upstreams) {
			r.o.Configured(name, visible.WithoutUser(r.o.Upstreams[name]))
		}
	}
	if err := r.introduce(); err != nil {
		r.s.log.Warn("the recording is known by its path alone, not by its id", "path", r.dir, "err", err)
	}
	r.hidden = r.lib.Hidden(r.dir)
	r.trees = &trees{s: r.s, root: m.Roots.Tree, store: r.s.store, exclude: slices.Concat(r.hidden, r.ownOutput())}
	if recording.IsDir(r.lib.Dir) {
		r.trees.cache = filepath.Join(r.lib.Dir, library.StatCacheName)
	}
	return nil
}

// introduce makes the libraries know a recording that lies elsewhere: that of the work tree, and that of the working directory,
// for that is where people look for it. In a work tree that cannot be written to there is none.
func (r *recorder) introduce() error {
	m := r.manifest
	roots, _, err := recording.FindRoots(m.Cwd, "", r.env)
	if err != nil {
		return err
	}
	err = r.lib.Point(m.ID, r.dir, r.o.Sync)
	if here := library.Of(roots.LibraryRoot(m.Cwd)); here.Dir != r.lib.Dir {
		err = errors.Join(err, here.Point(m.ID, r.dir, r.o.Sync))
	}
	return err
}

// safe is a path of the recording's directory that leads nowhere else, whatever the program does: it may rename the directories
// above it and put a link where it was, and so, from its start on, nothing is written by the path that the recording has.
func (r *recorder) safe() string { return recording.DescriptorPath(r.held, r.dir) }

// takeBefore keeps the work tree as the run finds it. The program has not started, so the blobs may be put by the path
// under which a later snapshot will link to them.
func (r *recorder) takeBefore() error {
	store, err := cas.OpenDir(filepath.Join(r.dir, recording.TapeName+tape.StoreSuffix), &cas.DirOptions{Sync: r.o.Sync})
	if err != nil {
		return err
	}
	r.trees.store = store
	defer func() { r.trees.store = r.s.store }()
	if err := r.trees.takeBefore(r.o.Progress, r.o.Sync); err != nil {
		return err
	}
	// What the secrets look like of files whose stored form came from an earlier recording is noted for a replay that lacks them.
	r.redactor.eachSecretFile(r.trees.before, store, r.manifest.Roots.Tree, r.redactor.scrub.Unshaped, func(_, real []byte) { r.redactor.scrub.Bytes(real) })
	return nil
}

// ownOutput lists the files of the work tree that our own stdout and stderr go to (tapedeck record … > log.txt): what is
// written there is ours, not the program's.
func (r *recorder) ownOutput() []string {
	return slices.DeleteFunc(OutputFiles(r.o.Stdout, r.o.Stderr), func(path string) bool { return !recording.Within(path, r.manifest.Roots.Tree) })
}

// OutputFiles lists the paths of those writers that are regular files.
func OutputFiles(writers ...io.Writer) (paths []string) {
	for _, w := range writers {
		f, ok := w.(*os.File)
		if !ok {
			continue
		}
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			continue
		}
		if path, ok := recording.PathOf(f); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// run records the program and finishes the recording.
func (r *recorder) run(ctx context.Context) (*Result, error) {
	p := r.program()
	var errBefore error
	p.before = func() error {
		errBefore = cmp.Or(r.unwritten(programNotStarted, r.takeBefore()), interrupted(r.o.Signals))
		return errBefore
	}
	if err := r.mountPlan(p); err != nil {
		return nil, err
	}
	defer p.changing.close()
	if r.o.Begun != nil {
		r.o.Begun(r.dir)
	}
	r.daemon.Begin(&daemon.Tape{Path: filepath.Join(r.s.dir, recording.TapeName), Store: r.s.store, Rec: r.s.rec, Log: r.s.log})
	e, err := p.do(ctx)
	r.daemon.Stop()
	if errBefore != nil {
		return nil, errBefore
	}
	if cause := r.s.failure(); cause != nil {
		return nil, r.unwritten(programOf(e), cause)
	}
	if errors.Is(err, errWorldEnded) {
		dir, records := r.left()
		return nil, fmt.Errorf("%w; %s", err, stays(dir, records))
	}
	if err != nil {
		return nil, err
	}
	if err := r.finish(p, e); err != nil {
		return nil, r.unwritten(programHadEnded, err)
	}
	res := r.result(ctx, e.exit)
	res.OpenLine, res.Signals = e.streams.shown.OpenLine(), e.signals
	return res, nil
}

// readyEnd does what can be done while the init comes up, which the recorder waits for. Its errors are told at the end. A key that is still to
// be made is not made here: where its directory lies in the work tree, that would be a change of the program's.
func (r *recorder) readyEnd() {
	_, _ = r.prices()
	if _, err := os.Lstat(filepath.Join(recording.ConfigDir(r.o.ConfigDir), seal.PrivateKeyFile)); err == nil && !r.o.NoSeal {
		_, _ = r.key()
	}
}

// result is what a finished recording has come to. It is sealed now.
func (r *recorder) result(ctx context.Context, exit recording.Exit) *Result {
	res := &Result{
		Exit: exit, Counts: r.seen.counts, MCP: r.seen.mcp, Unanswered: r.seen.unanswered, Silent: r.seen.silent, Unreached: r.seen.unreached,
	}
	res.Sealed, res.NotSealed = r.seal(ctx)
	for _, inTree := range r.seen.changed {
		if inTree {
			res.Changed++
		} else {
			res.Beside++
		}
	}
	res.Recording = &recording.Recording{Dir: r.where(), Manifest: r.manifest}
	return res
}

func (r *recorder) program() *run {
	m := r.manifest
	p := &run{
		s: r.s, prepared: r.prepared, ca: r.ca, path: m.Program.Path, argv: r.o.Argv, env: r.env, dir: m.Cwd,
		std: r.o.Streams, tty: m.TTY, id: m.ID, sync: r.o.Sync, host: &m.Host, umask: m.Umask, signals: r.o.Signals, proxy: r.o.Proxy, loopback: m.Loopback,
		net:   network.Config{Upstreams: r.o.Upstreams, Passthrough: r.o.Passthrough, ProxyEnv: r.env},
		ports: m.Ports,
		masks: append(masksFor(r.o.ConfigDir, r.env), r.hidden...),
	}
	r.changing = newChanging(r.s, r.trees, m.Roots.Followed(m.Writable))
	p.changing = r.changing
	if !r.o.Proxy && !r.o.RealTime {
		seed := ambient.NewSeed(r.redactor.key[:], m.ID)
		p.processes = newProcesses(r.s, r.changing, &seed)
		r.s.answered, p.net.Asker = p.processes.answered, p.processes.asker
	}
	r.processes = p.processes
	if !r.o.Proxy {
		r.spawns = newSpawns(r.s, r.changing, nil)
		r.spawns.hears, r.spawns.inputs = p.processes != nil, p.processes
		p.spawns = r.spawns
	}
	if r.manifest.Roots.Tree != "" {
		p.after = r.trees.takeAfter
	}
	return p
}

// mountPlan lets the program write to the host's directories or, isolated, to layers over them.
func (r *recorder) mountPlan(p *run) (err error) {
	dirs := r.manifest.Roots.Writable(r.manifest.Writable)
	if !r.o.Isolated {
		p.writable = dirs
		return nil
	}
	if r.scratch, err = newScratch(r.manifest.ID, dirs); err != nil {
		return err
	}
	p.masks = append(p.masks, filepath.Dir(r.scratch.Dir))
	p.overlays, err = r.scratch.over(dirs)
	return err
}

// finish puts the end on the tape and closes the recording.
func (r *recorder) finish(p *run, e *ended) error {
	r.redactor.settings(r.manifest.Roots.Tree, nil) // what files that the run wrote give away became known late
	l, err := p.recordEnd(e, rescrubOptions{sync: r.o.Sync, progress: r.o.Hiding})
	if err == nil {
		err = r.rescrubManifest(l)
	}
	if err != nil {
		return r.exposed(err)
	}
	m := r.manifest
	if m.TTY != nil {
		typed, keys := e.streams.con.noted()
		m.TTY.Typed = typed
		m.TTY.Keys, _ = r.redactor.scrub.Bytes(keys)
	}
	if e.stdin != nil {
		m.Stdin = e.stdin.AppendJSON(nil)
	}
	return r.conclude(l, e.exit, func() map[string]recording.Axis { return r.axes(l, r.seen.lost, slices.Concat(e.gaps, e.unmasked)) })
}

// conclude writes what stands beside a tape that has its end: the session log, and the manifest of a finished recording. axes is asked
// once the tape has been looked through.
func (r *recorder) conclude(l *rescrub.Pass, exit recording.Exit, axes func() map[string]recording.Axis) (err error) {
	prices, err := r.prices()
	if err != nil {
		return err
	}
	if r.seen, err = survey(filepath.Join(r.safe(), recording.TapeName), r.o.Upstreams, prices); err != nil {
		return err
	}
	m := r.manifest
	m.Records, m.Ports = r.s.rec.Count(), program.MergePorts(m.Ports, r.seen.ports)
	m.MCP, m.Totals = r.seen.mcp.OrNil(), &r.seen.totals
	m.State, m.Exit, m.Axes = recording.StateFinished, &exit, axes()
	if err := derive.WriteLog(r.safe(), m, r.s.logOptions(r.o.Sync, r.daemon.Again())); err != nil {
		return err
	}
	if gaps := r.daemon.Settle(); gaps != nil {
		m.Axes[recording.AxisDaemon] = recording.Axis{On: true, NotCovered: gaps}
	}
	m.Masks, m.Secrets = r.s.mask.Used(), l.Marked(r.s.scrub.Found())
	m.ScrubLate = true
	os.Remove(filepath.Join(r.safe(), recording.PartName)) // empty by now; one that is not stays as evidence
	return m.Write(r.safe(), r.o.Sync)
}

// rescrubManifest notes the arguments and variables anew, with what is known by now, and ends l: the recording is clean but for
// its recording.json, which is written next.
func (r *recorder) rescrubManifest(l *rescrub.Pass) error {
	if err := l.Noted(r.noteAgain); err != nil {
		return err
	}
	return l.Sweep()
}

// noteAgain notes the arguments, variables and upstreams with what is known by now.
func (r *recorder) noteAgain() {
	m := r.manifest
	m.ArgSecrets, m.Raw = nil, nil
	m.NoteArgs(r.redactor.scrub, r.o.Argv)
	m.NoteEnv(r.redactor.scrub, r.env)
	m.Again = againOf(r.o, r.redactor.scrub.String)
	m.Again.Configured = configured(r.o, r.config.Upstreams)
}

// exposed has the recording say that it may hold secrets, where err is that. It stays unfinished.
func (r *recorder) exposed(err error) error {
	var exposed *rescrub.Error
	if !errors.As(err, &exposed) {
		return err
	}
	exposed.Dir = r.dir
	r.noteAgain()
	r.manifest.Axes = map[string]recording.Axis{"secrets": {On: true, NotCovered: []string{exposed.Error()}}}
	return errors.Join(err, r.manifest.Write(r.safe(), r.o.Sync))
}

// procNames are the files of /proc that tell of the machine, and of what it is busy with: free, nproc, lscpu and uptime print them.
// That which tells how long the machine is up is none: ps tells by it when a process began.
var procNames = []string{"cpuinfo", "loadavg", "meminfo", "stat"}

// maxProcFile is the length in bytes of the longest one that a recording holds: that of a machine of many hundred processors is longer.
const maxProcFile = 1 << 20

// procNow reads them. One that is not to be had is shown as it is.
func procNow() map[string]string {
	out := make(map[string]string)
	for _, name := range procNames {
		if b, err := recording.ReadBounded("/proc/"+name, maxProcFile); err == nil {
			out[name] = string(b)
		}
	}
	return out
}

// umask is the recorder's own; nil where it cannot be told without changing it.
func umask() *int {
	n, err := strconv.ParseInt(statusOf("self")["Umask"], 8, 32)
	if err != nil {
		return nil
	}
	return new(int(n))
}

// statusOf is what the kernel says of a process or a thread (proc_pid_status(5)), by its names; nothing where it is gone.
func statusOf(process string) map[string]string {
	b, _ := os.ReadFile("/proc/" + process + "/status")
	out := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		out[name] = strings.TrimSpace(value)
	}
	return out
}

// procFiles are those files of a recording's machine as a jail shows them.
func procFiles(h *recording.Host) (out []jail.File) {
	for _, name := range slices.Sorted(maps.Keys(h.Proc)) {
		if slices.Contains(procNames, name) { // and no other that a recording names
			out = append(out, jail.File{Path: "/run/tapedeck/proc/" + name, Data: []byte(h.Proc[name]), Over: []string{"/proc/" + name}})
		}
	}
	return out
}
