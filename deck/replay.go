package deck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Verdict is what Replay found.
type Verdict struct {
	*fidelity.Report
	Exit     recording.Exit `json:"-"` // of the replayed program
	TimedOut bool           `json:"-"` // it took longer than its limit, and was ended
	OpenLine bool           `json:"-"` // what it wrote to a terminal ended within a line
}

// replayer is one Replay under way.
type replayer struct {
	o       *ReplayOptions
	rec     *recording.Recording
	dir     string // of the replay's own tape
	scratch *scratch
	played  *played
	fork    *forking        // nil for a replay to its end
	moved   moved           // of a replay outside the jail
	roots   recording.Roots // as the program finds them now

	prepared *jail.Prepared        // the init of its jail; nil outside
	mounts   func(dir string) bool // see mountedBelow

	s             *session
	recorded      *files.Tree            // as the run found it; nil for none
	found         map[string]*files.Tree // by directory: what else the run found at the paths that it changed
	store         cas.Store              // the recording's blobs
	book          *exchange.Book
	side          *fidelity.SideRules
	conversations *recordedConversations // with MCP servers; nil where the recording does not follow them
	spawns        *spawns                // what answers for them on pipes; nil where nothing does
	again         *recordedProcesses
	processes     *processes // nil where time and randomness are the kernel's
	trees         *trees
	ran           string // path of the program
	notes         []string
	gaps          []string        // what could not be compared
	changed       map[string]bool // paths that the recorded run changed
	removed       map[string]bool // those of them at which nothing stood then
	asked         int             // exchanges on the recording's tape
	screens       *fidelity.Screens
	rowMask       *masks.Masker     // of screens, which it counts for
	shown         [2]*screen.Side   // what the terminals showed, as recorded and now
	altered       bool              // the program, or what it is given, is not as recorded
	unshown       bool              // a file was not shown as the run found it
	long          map[string]string // files that the replay left and that are too large to keep
	notGiven      []string          // what of time and randomness was not given again
}

// Replay runs the program of rec again as a closed world and compares the two tapes lane by lane. An error means that it
// could not be run or compared; a program that diverged is no error.
func Replay(ctx context.Context, rec *recording.Recording, o *ReplayOptions) (*Verdict, error) {
	if o == nil {
		o = new(ReplayOptions)
	}
	if err := replayable(rec); err != nil {
		return nil, err
	}
	prepared, err := prepareWorld(o.Proxy, o.Out != "" || o.Keep != "")
	if err != nil {
		return nil, err
	}
	r := &replayer{o: o, rec: rec, roots: rec.Manifest.Roots, prepared: prepared}
	defer func() { r.scratch.removeAfter(prepared) }()
	return r.replay(ctx)
}

// replayable refuses what cannot be run again.
func replayable(rec *recording.Recording) error {
	if rec.Live() == recording.LiveYes {
		return fmt.Errorf("%s %w: wait for its end", rec.Dir, recording.ErrLive)
	}
	if rec.Manifest.Wrapped {
		return fmt.Errorf("%s holds what was said with an MCP server, and no run: tapedeck mcp serve answers from it", rec.Dir)
	}
	return nil
}

func (r *replayer) replay(ctx context.Context) (*Verdict, error) {
	if err := r.prepare(); err != nil {
		return nil, err
	}
	defer r.s.close() // on the way out of a failure; run closes it, and looks at the error
	return r.run(ctx)
}

// prepare makes the replay's tape and loads what it answers from.
func (r *replayer) prepare() (err error) {
	m := r.rec.Manifest
	if r.o.Keep != "" {
		if err := recording.MakeEmpty(r.o.Keep); err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
	}
	if r.found, err = r.rec.Found(); err != nil {
		return err
	}
	if r.scratch, err = newScratch(m.ID, r.overlaid()); err != nil {
		return err
	}
	if r.o.Proxy && m.Roots.Tree != "" {
		r.moved = moved{from: m.Roots.Tree, to: filepath.Join(r.scratch.Dir, "moved", filepath.Base(m.Roots.Tree))}
		r.roots.Tree, r.roots.Moved = r.moved.to, r.moved.from
	}
	if r.dir = r.o.Out; r.dir == "" {
		r.dir = filepath.Join(r.scratch.Dir, "tape")
	}
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	if err := recording.MakeEmpty(r.dir); err != nil {
		return err
	}
	if r.store, err = r.rec.Store(); err != nil {
		return err
	}
	if err := r.openSession(); err != nil {
		return err
	}
	if err := errors.Join(r.loadTree(), r.loadBook(), r.checkBlobs(), r.loadScreens()); err != nil {
		return err
	}
	if r.fork != nil { // it says that it is one while it is made, and over which files it runs: what is live cannot be made again
		if err := errors.Join(r.trees.adopt(), r.child().Write(r.dir, false)); err != nil {
			return err
		}
	}
	return r.restoreMoved()
}

// run runs the program, compares and reports.
func (r *replayer) run(ctx context.Context) (*Verdict, error) {
	e, err := r.perform(ctx)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Exit: e.exit, TimedOut: e.overdue == overdueLimit, OpenLine: e.streams.shown.OpenLine()}
	if v.Report, err = r.compare(nil); err != nil {
		return nil, err
	}
	return r.varying(ctx, v), nil
}

// perform runs the program and puts on the tape what it did.
func (r *replayer) perform(ctx context.Context) (*ended, error) {
	if err := interrupted(r.o.Signals); err != nil {
		return nil, err
	}
	p, err := r.program()
	if err != nil {
		return nil, err
	}
	stdin, err := r.rec.OpenStdin(r.store)
	if err != nil {
		return nil, err
	}
	if stdin != nil {
		defer stdin.Close()
		if p.std.Stdin = stdin; r.played.reveals() { // keys that were typed into a terminal are counted as they came
			p.std.Stdin = r.s.scrub.Revealing(stdin)
		}
	}
	if r.o.Starting != nil {
		r.o.Starting()
	}
	defer p.changing.close()
	e, err := p.do(ctx)
	if cause := r.s.failure(); cause != nil {
		return nil, r.unwritten(programOf(e), cause)
	}
	if err != nil {
		return nil, err
	}
	l, err := p.recordEnd(e, rescrubOptions{off: !r.rec.Manifest.ScrubLate})
	if cause := r.s.failure(); cause != nil {
		return nil, r.unwritten(programHadEnded, cause)
	}
	if err != nil {
		return nil, err
	}
	r.note(e)
	r.long = p.changing.long()
	if err := errors.Join(r.keep(), r.fork.conclude(ctx, r, e), r.describe(e, l)); err != nil {
		return nil, err
	}
	return e, nil
}

// note takes what the run says of itself into the report.
func (r *replayer) note(e *ended) {
	r.notes = slices.Concat(r.notes, e.gaps, e.unmasked, r.spawns.unmade())
	r.gaps = slices.Concat(r.gaps, r.spawns.unseen(), r.s.mcp.Lost())
	unlike := r.processes.unlike()
	inputs, _ := splitGaps(e.gaps, jail.InputGap)
	r.notes, r.notGiven = append(r.notes, unlike...), slices.Concat(inputs, unlike)
	if r.rec.Manifest.Axes[axisClock].On && !r.processes.replays() {
		r.notGiven = append(r.notGiven, gapClock)
	}
	switch e.overdue {
	case overdueLimit:
		r.gaps = append(r.gaps, fmt.Sprintf("the program was not over after %v, and was ended", r.o.Limit))
	case overdueStill: // that it is another run is known
		r.notes = append(r.notes, "the program was ended: once a request was refused, nothing happened any more")
	}
	if e.signals > 0 && !r.fork.past() { // what came before the point is not touched by one that came later
		r.gaps = append(r.gaps, "the replay was interrupted by a signal")
	}
}

// program describes the run: the recorded program, or the caller's, over the restored work tree.
func (r *replayer) program() (*run, error) {
	m := r.rec.Manifest
	p := &run{
		s: r.s, prepared: r.prepared, path: r.moved.path(m.Program.Path), argv: r.played.argv, env: r.played.env, dir: r.moved.path(m.Cwd), tty: m.TTY,
		std: r.o.Streams, signals: r.o.Signals, proxy: r.o.Proxy, loopback: m.Loopback, host: &m.Host, umask: m.Umask,
		net:   network.Config{Book: r.book, Blobs: r.trees.store, Speed: r.o.Speed, Reveal: r.reveal()},
		ports: m.Ports, patience: r.o.Patience,
		masks: append(masksFor(r.o.ConfigDir, r.played.env), filepath.Dir(r.scratch.Dir)),
	}
	p.masks = append(p.masks, r.trees.exclude...)
	if r.fork == nil {
		p.overdue = &overdue{limit: r.o.Limit, still: max(stillLeast, r.book.Took()), refused: r.s.tap.Refused, records: r.s.rec.Count}
	}
	r.fork.connect(p)
	if m.TTY != nil && len(m.TTY.Keys) > 0 {
		p.keys = bytes.NewReader(m.TTY.Keys)
	}
	if err := r.choose(p); err != nil {
		return nil, err
	}
	var err error
	if p.watcher, err = r.watcher(); err != nil {
		return nil, err
	}
	p.changing = newChanging(r.s, r.trees, r.roots.Followed(m.Writable))
	p.changing.passing = r.o.Out == ""
	if p.processes, err = r.giveAgain(p.changing); err != nil {
		return nil, err
	}
	if m.Roots.Tree != "" {
		p.after = r.trees.takeAfter
	}
	if r.conversations != nil && !m.Proxy && !r.o.Proxy {
		r.spawns = newSpawns(r.s, p.changing, r.conversations)
		r.spawns.speed, r.spawns.hears, r.spawns.inputs = r.o.Speed, p.processes != nil, p.processes
		p.spawns = r.spawns
		if f := r.fork; f != nil && f.servers != nil { // those that go on by themselves run
			r.spawns.running, p.net.Asker = f.servers, p.processes.asker
		}
	}
	if r.o.Proxy {
		r.notes = append(r.notes, slices.Concat(outsideNotes, r.moved.notes(p.argv, p.env))...)
		return p, nil
	}
	return p, r.mountPlan(p)
}

// choose settles which file runs, and whether it is the recorded one.
func (r *replayer) choose(p *run) (err error) {
	if len(r.o.Argv) > 0 {
		if p.path, err = program.Find(r.o.Argv[0], p.dir, r.played.env); err != nil {
			return err
		}
		r.altered = true
	} else if program.DigestOf(p.path).String() != r.rec.Manifest.Program.Digest {
		r.altered = true
		r.notes = append(r.notes, p.path+" is another file than was recorded")
	}
	r.ran = p.path
	return nil
}

// config is the directory whose tapedeck.yaml says how the run compares.
func (r *replayer) config() string { return cmp.Or(r.o.Config, r.rec.Manifest.Roots.Tree) }

// compare reads both tapes again and says where they differ. What another replay of the program tells of chance counts, where there is one.
func (r *replayer) compare(second *replayer) (*fidelity.Report, error) {
	recorded, err := r.rec.OpenTape()
	if err != nil {
		return nil, err
	}
	defer recorded.Close()
	replay, err := tape.Open(filepath.Join(r.dir, recording.TapeName), nil)
	if err != nil {
		return nil, err
	}
	defer replay.Close()
	m := r.rec.Manifest
	o, now, err := laneOptions(m, r.store, &layeredStore{replay.Store, r.store}, &r.roots, r.config(), r.o.Watch)
	if err != nil {
		return nil, err
	}
	if second != nil {
		done, err := second.tells(o, now)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	o.Remasked, o.SameSecrets = now.Changed, m.ScrubKey == r.s.scrub.KeyID() && !r.unshown && r.played.genuine(r.s.scrub)
	o.Exact = givenTime(m.Axes) && r.processes.replays() && len(r.notGiven) == 0
	if o.Exact {
		o.New = r.processes.reads.hold
		o.Times[fidelity.Recorded], o.Times[fidelity.Replay] = r.processes.clock.Times()
		if r.processes.clock.Beyond() > 0 {
			o.OwnTimes = m.StartedAt
		}
	}
	o.Crossed, o.Masked, o.ProgramReplaced = r.book.Audit(), r.s.mask.Used(), len(r.o.Argv) > 0
	o.Notes, o.NotCompared = slices.Concat(r.notes, r.book.Order().Lost()), slices.Concat(r.gaps, r.book.Damaged(), r.rec.Unfinished())
	if r.o.Proxy || !r.rec.Manifest.SeesOutside() {
		o.NotCompared = append(o.NotCompared, recording.Unwatchable(o.Watch, r.trees.before)...)
	}
	o.SameStart, o.Unseen = !r.altered && !r.o.TreeNow && r.o.Proxy == r.rec.Manifest.Proxy, r.unseen()
	if r.o.TreeNow {
		o.Inputs = r.inputsNow()
		o.Held = func(rec *tape.Record) bool {
			return r.trees.before.Holds(rec) && r.trees.after != nil && r.trees.after.Holds(rec)
		}
	}
	if o.SameSecrets {
		o.LongFiles = [2]map[string]string{m.LongFiles, r.long}
	}
	o.Screens, o.Side = r.screens, r.side
	was, is := r.fork.upTo(r, recorded.Records(), replay.Records(), o)
	report, err := fidelity.CompareLanes(r.o.Mode, was, is, o)
	if err == nil {
		r.processes.timesRead(report)
	}
	if err == nil && r.o.Screens {
		for name, n := range r.rowMask.Used() {
			report.Masked[name] += n
		}
	}
	return report, err
}

// keep puts the work tree as the replay left it where the caller wants it.
func (r *replayer) keep() error {
	if r.o.Keep == "" {
		return nil
	}
	if r.trees.after == nil {
		return fmt.Errorf("--keep %s: there is no work tree in this recording", r.o.Keep)
	}
	notes, err := r.trees.keep(r.o.Keep)
	r.notes = append(r.notes, notes...)
	return err
}

// adoptChanges puts into the replay's own store what its tape names, and the recording has as well.
func (r *replayer) adoptChanges() error {
	for rec, err := range recording.RecordsOf(filepath.Join(r.dir, recording.TapeName)) {
		if err != nil {
			return err
		}
		if tape.ChangedFile(rec.Kind) == nil {
			continue // what it exchanged and printed went into its own store
		}
		for _, p := range tape.Payloads(rec.Kind) {
			if p.Inline {
				continue
			}
			if err := r.trees.adoptBlob(p.Hash); err != nil {
				return fmt.Errorf("record %d: %w", rec.Seq, err)
			}
		}
	}
	return nil
}

// describe makes the replay a recording of its own, where the caller wants it: a child of the one that it replayed.
func (r *replayer) describe(e *ended, l *rescrub.Pass) error {
	if r.o.Out == "" {
		return nil
	}
	m := r.child()
	m.State, m.Exit = recording.StateFinished, &e.exit
	m.Masks, m.Records = r.s.mask.Used(), r.s.rec.Count()
	m.Secrets = l.Marked(recording.JoinSecrets(m.Secrets, r.s.scrub.Found()))
	m.Proxy, m.Axes = r.o.Proxy, ledgerFor(m.Axes, r.o.Proxy)
	clock := m.Axes[axisClock]
	clock.NotCovered = slices.Concat(clock.NotCovered, r.notGiven)
	m.Axes[axisClock] = clock
	m.LongFiles = r.long
	r.fork.note(m, r)
	if len(r.o.Argv) > 0 {
		m.Raw = maps.Clone(m.Raw)
		maps.DeleteFunc(m.Raw, func(key string, _ []byte) bool { return strings.HasPrefix(key, "argv.") })
		m.ArgSecrets = nil
		m.NoteArgs(r.s.scrub, r.o.Argv)
		m.Program = recording.Program{Path: r.moved.recorded(r.ran), Digest: program.DigestOf(r.ran).String()}
	}
	if err := errors.Join(r.trees.adopt(), r.adoptChanges()); err != nil {
		return err
	}
	l.Manifest(m)
	if err := l.Sweep(); err != nil {
		return err
	}
	prices, err := recording.PricesOf(r.config())
	if err != nil {
		return err
	}
	seen, err := survey(filepath.Join(r.dir, recording.TapeName), nil, prices)
	if err != nil {
		return err
	}
	m.MCP, m.Totals = seen.mcp.OrNil(), &seen.totals
	if err := errors.Join(derive.WriteLog(r.dir, m, r.s.logOptions(false, nil)), r.rec.PassSeed(r.dir)); err != nil {
		return err
	}
	return m.Write(r.dir, false)
}

// child is the manifest of the replay while it goes on: that of what it replays, but for what is its own.
func (r *replayer) child() *recording.Manifest {
	m := *r.rec.Manifest
	fresh := recording.NewManifest(time.Now())
	m.Seed = m.SeededBy()
	m.ID, m.State, m.StartedAt, m.Host = fresh.ID, fresh.State, fresh.StartedAt, fresh.Host
	m.Host.Name, m.Host.Proc = r.rec.Manifest.Host.Name, r.rec.Manifest.Host.Proc // which the program saw
	m.Parent, m.Exit, m.Sealed, m.Fork, m.ForkSeq = &r.rec.Manifest.ID, nil, false, nil, nil
	m.Axes = maps.Clone(m.Axes)
	m.Daemon, m.Totals = nil, nil // a replay is told to none
	delete(m.Axes, recording.AxisDaemon)
	r.fork.describe(&m)
	return &m
}

// inputsNow lists what the program of a replay over the work tree of now found in another form than was recorded: first the
// files that the recorded run did not write itself.
func (r *replayer) inputsNow() []fidelity.Input {
	if !r.o.TreeNow || r.recorded == nil || r.trees.before == nil {
		return nil
	}
	paths := differing(r.recorded, r.trees.before)
	others := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return r.changed[path] })
	own := slices.DeleteFunc(paths, func(path string) bool { return !r.changed[path] })
	return treeInputs(slices.Concat(others, own), r.recorded, r.trees.before, r.store, r.trees.store)
}

// unseen are the files that the recorded command line names and that are read as they are now, as a script elsewhere.
func (r *replayer) unseen() (out []string) {
	m := r.rec.Manifest
	for _, arg := range m.Argv[min(1, len(m.Argv)):] {
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(m.Cwd, path)
		}
		if is, err := os.Stat(path); err != nil || !is.Mode().IsRegular() {
			continue
		}
		shown := false
		if r.trees.before != nil {
			_, shown = r.trees.before.Lookup(m.Roots.TapePath(recording.Resolved(path)))
		}
		if !shown && !slices.Contains(out, arg) {
			out = append(out, arg)
		}
	}
	return out
}

// unwritten is the end of a replay for err, which kept its tape from being written.
func (r *replayer) unwritten(program string, err error) error {
	return &WriteError{What: "replay's tape", Dir: r.dir, Program: program, Records: -1, Err: err}
}
