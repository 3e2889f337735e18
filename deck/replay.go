package deck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Verdict is what Replay found.
type Verdict struct {
	*fidelity.Report
	Exit Exit `json:"-"` // of the replayed program
}

// replayer is one Replay under way.
type replayer struct {
	o       *ReplayOptions
	rec     *Recording
	dir     string // of the replay's own tape
	scratch string

	env     []string // of the program
	secrets []secretVar

	s     *session
	book  *exchange.Book
	trees *trees
	notes []string
}

// Replay runs the program of rec again as a closed world and compares the two tapes lane by lane. An error means that it
// could not be run or compared; a program that diverged is no error.
func Replay(ctx context.Context, rec *Recording, o *ReplayOptions) (*Verdict, error) {
	if o == nil {
		o = new(ReplayOptions)
	}
	if err := jail.Available(); err != nil {
		return nil, err
	}
	r := &replayer{o: o, rec: rec}
	defer r.clean()
	if err := r.prepare(); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// prepare makes the replay's tape and loads what it answers from.
func (r *replayer) prepare() error {
	m := r.rec.Manifest
	var err error
	if r.scratch, err = newScratch(m.ID, r.overlaid()); err != nil {
		return err
	}
	if r.dir = r.o.Out; r.dir == "" {
		r.dir = filepath.Join(r.scratch, "tape")
	}
	if r.dir, err = filepath.Abs(r.dir); err != nil {
		return err
	}
	if err := makeEmpty(r.dir); err != nil {
		return err
	}
	r.env, r.secrets = replayEnv(m.Env, r.callerEnv())
	argv := r.argv()
	r.s, err = newSession(&sessionOptions{
		dir:    r.dir,
		header: &tape.Header{ScriptPath: &m.Program.Path, Argv: append([]string(nil), argv[1:]...)},
		env:    r.env, replay: true, secrets: r.secrets, args: argv[1:], roots: m.Roots, masking: m.Masking, configDir: r.o.ConfigDir, log: r.o.Log,
	})
	if err != nil {
		return err
	}
	store, err := r.rec.Store()
	if err != nil {
		return err
	}
	if err := r.loadTree(store); err != nil {
		return err
	}
	return r.loadBook(store)
}

// loadTree reads the work tree as recorded. The replay's snapshot adds to the recording's blobs only what is new.
func (r *replayer) loadTree(store cas.Store) (err error) {
	lib := LibraryOf(r.rec.Manifest.Roots.Tree)
	r.trees = &trees{
		s: r.s, root: r.rec.Manifest.Roots.Tree, store: &layeredStore{top: r.s.store, below: store},
		cache: filepath.Join(lib.Dir, statCacheName), exclude: []string{lib.Dir, r.rec.Dir, r.dir},
	}
	r.trees.before, err = r.rec.Tree()
	return err
}

func (r *replayer) loadBook(store cas.Store) error {
	f, err := r.rec.OpenTape()
	if err != nil {
		return err
	}
	defer f.Close()
	r.book, err = exchange.NewBook(f.Records(), r.s.class, store)
	return err
}

func (r *replayer) argv() []string {
	if len(r.o.Argv) > 0 {
		return r.o.Argv
	}
	return r.rec.Manifest.Argv
}

// callerEnv is where the values of secrets are taken from.
func (r *replayer) callerEnv() []string {
	if r.o.Env == nil {
		return os.Environ()
	}
	return r.o.Env
}

// overlaid lists the directories that the program may change: they get layers, so that nothing outlives the replay. The
// work tree is among them even where its path is absent here.
func (r *replayer) overlaid() []string {
	roots := r.rec.Manifest.Roots
	dirs := roots.writable(nil)
	if roots.Tree != "" && !slices.Contains(dirs, roots.Tree) {
		dirs = append(dirs, roots.Tree)
	}
	return dirs
}

// run runs the program, compares and reports.
func (r *replayer) run(ctx context.Context) (*Verdict, error) {
	p, stdin, err := r.program()
	if err != nil {
		return nil, err
	}
	if stdin != nil {
		defer stdin.Close()
	}
	e, err := p.do(ctx)
	if err != nil {
		return nil, errors.Join(err, r.s.close())
	}
	if err := errors.Join(p.recordEnd(e, r.trees, false), r.s.close()); err != nil {
		return nil, err
	}
	report, err := r.compare()
	if err != nil {
		return nil, err
	}
	return &Verdict{Report: report, Exit: e.exit}, r.keep()
}

// program describes the run: the recorded program, or the caller's, over the restored work tree.
func (r *replayer) program() (*run, io.Closer, error) {
	m := r.rec.Manifest
	path := m.Program.Path
	if len(r.o.Argv) > 0 {
		var err error
		if path, err = lookPath(r.o.Argv[0], m.Cwd, r.env); err != nil {
			return nil, nil, err
		}
	}
	p := &run{
		s: r.s, path: path, argv: r.argv(), env: r.env, dir: m.Cwd, tty: m.TTY, hostname: m.Host.Name,
		std: r.o.Streams, signals: r.o.Signals,
		net:   network.Config{Book: r.book, Blobs: r.trees.store, Speed: r.o.Speed},
		ports: m.Ports,
		masks: append(masksFor(r.o.ConfigDir, r.env), r.rec.Dir, filepath.Dir(r.scratch), r.dir),
	}
	if m.Roots.Tree != "" {
		p.masks = append(p.masks, LibraryOf(m.Roots.Tree).Dir)
		p.after = r.trees.takeAfter
	}
	if err := r.mountPlan(p); err != nil {
		return nil, nil, err
	}
	stdin, err := r.stdin()
	if stdin != nil {
		p.std.Stdin = stdin
	}
	return p, stdin, err
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
	in, err := p.Open(r.trees.store)
	if err != nil {
		return nil, fmt.Errorf("recorded stdin: %w", err)
	}
	return in, nil
}

// mountPlan lays a layer over every directory that the program may change, and the recorded tree over the work tree.
func (r *replayer) mountPlan(p *run) error {
	for i, d := range r.overlaid() {
		dir := filepath.Join(r.scratch, fmt.Sprint(i))
		lowers := []string{d}
		if d == r.rec.Manifest.Roots.Tree && r.trees.before != nil {
			layer, err := r.layer(dir)
			if err != nil {
				return err
			}
			lowers = layer
		}
		o, err := overlayOver(d, dir, lowers...)
		if err != nil {
			return err
		}
		p.overlays = append(p.overlays, o)
	}
	return nil
}

// layer makes the recorded tree: what differs from the disk as it is now, on top of the disk.
func (r *replayer) layer(dir string) ([]string, error) {
	real, layer := r.rec.Manifest.Roots.Tree, filepath.Join(dir, "recorded")
	stats, err := files.BuildLayer(r.trees.before, r.trees.store, real, layer, &files.LayerOptions{
		Scrubber: r.s.scrub, ScrubID: r.s.scrubID, CachePath: r.trees.cache, Exclude: r.trees.exclude,
	})
	if err != nil {
		return nil, fmt.Errorf("restoring the work tree: %w", err)
	}
	for _, n := range stats.Notes {
		r.notes = append(r.notes, fmt.Sprintf("%s was not shown as recorded (%s)", n.Path, n.Why))
	}
	if !isDir(real) {
		return []string{layer}, nil
	}
	return []string{layer, real}, nil
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
	o := laneOptions(recorded.Store, replay.Store, r.s.mask)
	o.Crossed, o.Masked, o.Notes = r.book.Audit(), r.s.mask.Used(), r.notes
	o.Watch, o.ProgramReplaced = r.o.Watch, len(r.o.Argv) > 0
	if !r.rec.Finished() {
		o.NotCompared = append(o.NotCompared, "the recorder was killed: what the program did after that is not on the tape")
	}
	return fidelity.CompareLanes(r.o.Mode, recorded.Records(), replay.Records(), o)
}

// keep puts the work tree as the replay left it where the caller wants it.
func (r *replayer) keep() error {
	if r.o.Keep == "" {
		return nil
	}
	if r.trees.after == nil {
		return fmt.Errorf("--keep %s: there is no work tree in this recording", r.o.Keep)
	}
	_, err := files.Restore(r.trees.after, r.trees.store, r.o.Keep)
	return err
}

// clean removes everything that the replay made, but what the caller asked to keep.
func (r *replayer) clean() {
	if r.scratch != "" {
		removeScratch([]string{r.scratch})
	}
}
