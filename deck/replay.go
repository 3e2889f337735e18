package deck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Verdict is what Replay found.
type Verdict struct {
	*fidelity.Report
	Exit     Exit `json:"-"` // of the replayed program
	OpenLine bool `json:"-"` // what it wrote to a terminal ended within a line
}

// replayer is one Replay under way.
type replayer struct {
	o       *ReplayOptions
	rec     *Recording
	dir     string // of the replay's own tape
	scratch *scratch
	played  *played
	moved   moved // of a replay outside the jail
	roots   Roots // as the program finds them now

	s        *session
	recorded *files.Tree            // as the run found it; nil for none
	found    map[string]*files.Tree // by directory: what else the run found at the paths that it changed
	store    cas.Store              // the recording's blobs
	book     *exchange.Book
	trees    *trees
	ran      string // path of the program
	notes    []string
	gaps     []string        // what could not be compared
	changed  map[string]bool // paths of the work tree that the recorded run changed
	asked    int             // exchanges on the recording's tape
	screens  *fidelity.Screens
	rowMask  *scrub.Masker    // of screens, which it counts for
	shown    [2]*terminalSide // what the terminals showed, as recorded and now
	altered  bool             // the program, or what it is given, is not as recorded
}

// Replay runs the program of rec again as a closed world and compares the two tapes lane by lane. An error means that it
// could not be run or compared; a program that diverged is no error.
func Replay(ctx context.Context, rec *Recording, o *ReplayOptions) (*Verdict, error) {
	if o == nil {
		o = new(ReplayOptions)
	}
	if err := worldFor(o.Proxy); err != nil {
		return nil, err
	}
	if rec.Live() == LiveYes {
		return nil, fmt.Errorf("%s %w: wait for its end", rec.Dir, ErrLive)
	}
	r := &replayer{o: o, rec: rec, roots: rec.Manifest.Roots}
	defer func() { r.scratch.remove() }()
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
		if err := makeEmpty(r.o.Keep); err != nil {
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
		r.moved = moved{from: m.Roots.Tree, to: filepath.Join(r.scratch.dir, "moved", filepath.Base(m.Roots.Tree))}
		r.roots.Tree = r.moved.to
	}
	if r.dir = r.o.Out; r.dir == "" {
		r.dir = filepath.Join(r.scratch.dir, "tape")
	}
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	if err := makeEmpty(r.dir); err != nil {
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
	return r.restoreMoved()
}

func (r *replayer) openSession() error {
	m := r.rec.Manifest
	env := r.o.Env
	if env == nil {
		env = os.Environ()
	}
	r.played = m.play(env)
	r.played.env = r.moved.env(r.played.env)
	if len(r.o.Argv) > 0 {
		r.played.argv = r.o.Argv
	}
	g, err := newReplayGuard(r.o.ConfigDir, m.Cwd, r.played, &r.roots, m.Masking)
	if err != nil {
		return err
	}
	if r.recorded, err = r.rec.Tree(); err != nil {
		return err
	}
	n := keyed(r.recorded)
	for _, t := range r.found {
		n += keyed(t)
	}
	id := g.scrub.KeyID()
	if said := r.rec.otherKey(id, fmt.Sprintf("the one in %s is %s", keyPath(r.o.ConfigDir), id), n); said != "" {
		r.notes = append(r.notes, said)
	}
	g.learnFiles(r.recorded, r.store, m.Roots.Tree)
	for dir, t := range r.found {
		g.learnFiles(t, r.store, dir)
	}
	g.learnSettings(m.Roots.Tree, r.recorded)
	g.begun = g.scrub.Mark()
	r.s, err = newSession(&sessionOptions{
		guard: g, dir: r.dir, script: m.Program.Path, args: r.played.argv[1:], roots: r.roots, replay: true, log: r.o.Log,
	})
	return err
}

// loadTree reads the work tree as recorded. The replay's snapshot adds to the recording's blobs only what is new.
func (r *replayer) loadTree() (err error) {
	m := r.rec.Manifest
	lib := LibraryOf(m.Roots.libraryRoot(m.Cwd))
	r.trees = &trees{
		s: r.s, root: r.roots.Tree, store: &layeredStore{top: r.s.store, below: r.store},
		cache: filepath.Join(lib.Dir, statCacheName), exclude: append(lib.hidden(r.rec.Dir), r.dir),
	}
	if r.o.TreeNow {
		return r.treeNow()
	}
	r.trees.before = r.recorded
	if r.trees.before == nil && m.Roots.Tree != "" {
		return fmt.Errorf("%s: %s is missing: the work tree cannot be restored", r.rec.Dir, treeName)
	}
	return nil
}

// treeNow takes the work tree as it is for the one that the run found.
func (r *replayer) treeNow() (err error) {
	tree := r.rec.Manifest.Roots.Tree
	if tree == "" || !isDir(tree) {
		return fmt.Errorf("there is no work tree at %q now: replay over the recorded one", tree)
	}
	r.notes = append(r.notes, "replayed over the work tree as it is now, not as recorded")
	r.trees.at = time.Now()
	if r.trees.before, err = r.trees.snap(tree, files.SnapOptions{Store: r.trees.store, KeepCache: true}); err != nil {
		return fmt.Errorf("work tree as it is now: %w", err)
	}
	return nil
}

func (r *replayer) loadBook() error {
	f, err := r.rec.OpenTape()
	if err != nil {
		return err
	}
	defer f.Close()
	r.changed = make(map[string]bool)
	records := func(yield func(*tape.Record, error) bool) {
		for rec, err := range f.Records() {
			if err == nil {
				r.survey(rec.Kind)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
	r.book, err = exchange.NewBook(records, r.s.class, r.store)
	if r.o.Proxy && r.rec.Manifest.Proxy && r.asked == 0 {
		r.gaps = append(r.gaps, NothingCame)
	}
	return err
}

// loadScreens says how the terminals compare. The replay's own is there by its end.
func (r *replayer) loadScreens() (err error) {
	m := r.rec.Manifest
	if r.rowMask, err = m.Masking.screenMasker(&r.roots); err != nil {
		return err
	}
	r.shown = [2]*terminalSide{r.rec.terminal(), {dir: r.dir, finished: true}}
	if r.o.Screens && r.o.Mode == fidelity.Outcome {
		return errors.New("--tty compares screens, and --mode outcome nothing that was printed: leave out one of them")
	}
	r.screens, err = screens(m.TTY, r.rowMask, r.o.Screens, r.shown)
	return err
}

// eyes are those of a replay whose screens are compared; nil for none.
func (r *replayer) eyes() (*eyes, error) {
	if !r.o.Screens {
		return nil, nil
	}
	seen, err := r.shown[fidelity.Recorded].show()
	if err != nil {
		return nil, err
	}
	return newEyes(r.rec.Manifest.TTY, r.screens, seen), nil
}

// survey remembers what the recorded run changed, and counts what it asked for.
func (r *replayer) survey(k tape.Kind) {
	if tape.ExchangeOf(k) != nil {
		r.asked++
	}
	switch k := k.(type) {
	case *tape.FileWrite:
		r.changed[k.Path] = true
	case *tape.FileDelete:
		r.changed[k.Path] = true
	}
}

// checkBlobs lists the blobs that the recording names and does not hold: what compares by digest alone would be green
// without them.
func (r *replayer) checkBlobs() error {
	missing, err := r.rec.missingBlobs(r.store)
	r.gaps = append(r.gaps, missing...)
	return err
}

// run runs the program, compares and reports.
func (r *replayer) run(ctx context.Context) (*Verdict, error) {
	if err := interrupted(r.o.Signals); err != nil {
		return nil, err
	}
	p, err := r.program()
	if err != nil {
		return nil, err
	}
	stdin, err := r.stdin()
	if err != nil {
		return nil, err
	}
	if stdin != nil {
		defer stdin.Close()
		p.std.Stdin = r.revealed(stdin)
	}
	if m := r.rec.Manifest; m.TTY != nil && len(m.TTY.Keys) > 0 {
		p.keys = bytes.NewReader(m.TTY.Keys)
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
	l, err := p.recordEnd(e, lateOptions{off: !r.rec.Manifest.ScrubLate})
	if cause := r.s.failure(); cause != nil {
		return nil, r.unwritten(programHadEnded, cause)
	}
	if err != nil {
		return nil, err
	}
	r.notes = slices.Concat(r.notes, e.gaps, e.unmasked)
	if e.signals > 0 {
		r.gaps = append(r.gaps, "the replay was interrupted by a signal")
	}
	if err := errors.Join(r.keep(), r.describe(e, l)); err != nil {
		return nil, err
	}
	report, err := r.compare()
	if err != nil {
		return nil, err
	}
	return &Verdict{Report: report, Exit: e.exit, OpenLine: e.streams.shown.OpenLine()}, nil
}

// program describes the run: the recorded program, or the caller's, over the restored work tree.
func (r *replayer) program() (*run, error) {
	m := r.rec.Manifest
	p := &run{
		s: r.s, path: r.moved.path(m.Program.Path), argv: r.played.argv, env: r.played.env, dir: r.moved.path(m.Cwd), tty: m.TTY,
		std: r.o.Streams, signals: r.o.Signals, proxy: r.o.Proxy, loopback: m.Loopback, hostname: m.Host.Name,
		net:   network.Config{Book: r.book, Blobs: r.trees.store, Speed: r.o.Speed, Reveal: r.reveal()},
		ports: m.Ports,
		masks: append(masksFor(r.o.ConfigDir, r.played.env), filepath.Dir(r.scratch.dir)),
	}
	p.masks = append(p.masks, r.trees.exclude...)
	if len(r.o.Argv) > 0 {
		var err error
		if p.path, err = lookPath(r.o.Argv[0], p.dir, r.played.env); err != nil {
			return nil, err
		}
		r.altered = true
	} else if d := fileDigest(p.path).String(); d != m.Program.Digest {
		r.altered = true
		r.notes = append(r.notes, p.path+" is another file than was recorded")
	}
	r.ran = p.path
	var err error
	if p.eyes, err = r.eyes(); err != nil {
		return nil, err
	}
	p.changing = newChanging(r.s, r.trees, r.roots.followed(m.Writable))
	p.changing.passing = r.o.Out == ""
	if m.Roots.Tree != "" {
		p.after = r.trees.takeAfter
	}
	if r.o.Proxy {
		r.notes = append(r.notes, slices.Concat(outsideNotes, r.moved.notes(p.argv, p.env))...)
		return p, nil
	}
	return p, r.mountPlan(p)
}

// stdin opens what the program was given; nil where that was nothing, or is not known because the recorder was killed.
func (r *replayer) stdin() (io.ReadCloser, error) {
	p, err := tape.ParsePayload(r.rec.Manifest.Stdin)
	if err != nil {
		return nil, fmt.Errorf("recorded stdin: %w", err)
	}
	if p == nil {
		return nil, nil
	}
	in, err := p.Open(r.store)
	if err != nil {
		return nil, fmt.Errorf("recorded stdin: %w", err)
	}
	return in, nil
}

// compare reads both tapes again and says where they differ.
func (r *replayer) compare() (*fidelity.Report, error) {
	recorded, err := r.rec.OpenTape()
	if err != nil {
		return nil, err
	}
	defer recorded.Close()
	replay, err := tape.Open(filepath.Join(r.dir, tapeName), nil)
	if err != nil {
		return nil, err
	}
	defer replay.Close()
	o := laneOptions(r.store, replay.Store, r.s.mask)
	o.Crossed, o.Masked, o.ProgramReplaced = r.book.Audit(), r.s.mask.Used(), len(r.o.Argv) > 0
	o.Notes, o.NotCompared = r.notes, slices.Concat(r.gaps, r.book.Damaged(), r.rec.unfinished())
	o.Watch = r.rec.Manifest.Roots.watched(r.rec.Manifest.Cwd, r.o.Watch)
	if r.o.Proxy || !r.rec.Manifest.seesOutside() {
		o.NotCompared = append(o.NotCompared, unwatchable(o.Watch, r.trees.before)...)
	}
	o.NotCovered = r.rec.Manifest.NotCovered()
	o.SameStart = !r.altered && !r.o.TreeNow && r.o.Proxy == r.rec.Manifest.Proxy
	if r.o.TreeNow {
		o.Inputs = r.inputsNow()
		o.Held = func(rec *tape.Record) bool {
			return r.trees.before.Holds(rec) && r.trees.after != nil && r.trees.after.Holds(rec)
		}
	}
	o.Screens = r.screens
	report, err := fidelity.CompareLanes(r.o.Mode, recorded.Records(), replay.Records(), o)
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
	left, err := files.Restore(r.trees.after, r.trees.made, r.o.Keep)
	for _, path := range left {
		r.notes = append(r.notes, path+" holds a secret and was not kept")
	}
	return err
}

// adoptChanges puts into the replay's own store what its tape names, and the recording has as well.
func (r *replayer) adoptChanges() error {
	t, err := tape.Open(filepath.Join(r.dir, tapeName), nil)
	if err != nil {
		return err
	}
	defer t.Close()
	for rec, err := range t.Records() {
		if err != nil {
			return err
		}
		if fileOf(rec.Kind) == nil {
			continue // what it exchanged and printed went into its own store
		}
		for _, p := range tape.Payloads(rec.Kind) {
			if p.Inline {
				continue
			}
			if err := adoptBlob(r.s.store, r.trees.store, p.Hash); err != nil {
				return fmt.Errorf("record %d: %w", rec.Seq, err)
			}
		}
	}
	return nil
}

// describe makes the replay a recording of its own, where the caller wants it: a child of the one that it replayed.
func (r *replayer) describe(e *ended, l *late) error {
	if r.o.Out == "" {
		return nil
	}
	m := *r.rec.Manifest
	fresh := newManifest(time.Now())
	m.ID, m.State, m.StartedAt, m.Host = fresh.ID, StateFinished, fresh.StartedAt, fresh.Host
	m.Parent, m.Exit, m.Sealed = &r.rec.Manifest.ID, &e.exit, false
	m.Masks, m.Records = r.s.mask.Used(), r.s.rec.Count()
	m.Secrets = joinedSecrets(m.Secrets, r.s.scrub.Found())
	m.Proxy, m.Axes = r.o.Proxy, ledgerFor(m.Axes, r.o.Proxy)
	m.Daemon = nil // a replay is told to none
	delete(m.Axes, axisDaemon)
	if len(r.o.Argv) > 0 {
		m.Raw = maps.Clone(m.Raw)
		maps.DeleteFunc(m.Raw, func(key string, _ []byte) bool { return strings.HasPrefix(key, "argv.") })
		m.ArgSecrets = nil
		m.noteArgs(r.s.scrub, r.o.Argv)
		m.Program = Program{r.moved.recorded(r.ran), fileDigest(r.ran).String()}
	}
	if err := errors.Join(r.trees.adopt(r.trees.store), r.adoptChanges()); err != nil {
		return err
	}
	if l != nil {
		m.clearLate(l.find)
		if err := l.sweep(); err != nil {
			return err
		}
	}
	if err := writeTalk(r.dir, &m, r.s, false, nil); err != nil {
		return err
	}
	return m.write(r.dir, false)
}
