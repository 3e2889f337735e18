package deck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/network"
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
	mode    fidelity.Mode
	dir     string // of the replay's own tape
	scratch string

	s     *session
	book  *exchange.Book
	tree  *files.Tree // as recorded; nil for none
	after *files.Tree
	notes []string
}

// Replay runs the program of rec again as a closed world and compares the two tapes lane by lane. An error means that it
// could not be run or compared; a program that diverged is no error.
func Replay(ctx context.Context, rec *Recording, o *ReplayOptions) (*Verdict, error) {
	if o == nil {
		o = new(ReplayOptions)
	}
	mode, err := fidelity.ParseMode(o.Mode)
	if err != nil {
		return nil, err
	}
	if err := jail.Available(); err != nil {
		return nil, err
	}
	r := &replayer{o: o, rec: rec, mode: mode}
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
	argv := r.argv()
	r.s, err = newSession(&sessionOptions{
		dir:    r.dir,
		header: &tape.Header{ScriptPath: &m.Program.Path, Argv: append([]string(nil), argv[1:]...)},
		env:    r.env(), args: argv[1:], roots: m.Roots, configDir: r.o.ConfigDir, log: r.o.Log,
	})
	if err != nil {
		return err
	}
	if r.tree, err = r.rec.Tree(); err != nil {
		return err
	}
	return r.loadBook()
}

func (r *replayer) loadBook() error {
	f, err := r.rec.OpenTape()
	if err != nil {
		return err
	}
	defer f.Close()
	store, err := r.rec.Store()
	if err != nil {
		return err
	}
	r.book, err = exchange.NewBook(f.Records(), r.s.class, store)
	return err
}

func (r *replayer) argv() []string {
	if len(r.o.Argv) > 0 {
		return r.o.Argv
	}
	return r.rec.Manifest.Argv
}

func (r *replayer) env() []string {
	env := r.o.Env
	if env == nil {
		env = os.Environ()
	}
	return replayEnv(r.rec.Manifest.Env, env)
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
	if err := r.finish(p, e); err != nil {
		return nil, err
	}
	report, err := r.compare()
	if err != nil {
		return nil, err
	}
	return &Verdict{Report: report, Exit: e.exit}, r.keep()
}

// finish puts what the replay changed in the work tree, and its own spawn, on its tape.
func (r *replayer) finish(p *run, e *ended) error {
	var kinds []tape.Kind
	if r.tree != nil && r.after != nil {
		store, err := r.rec.Store()
		if err != nil {
			return err
		}
		if kinds, err = r.s.changes(r.tree, r.after, store, r.dir, false); err != nil {
			return err
		}
	}
	return errors.Join(p.recordEnd(e, kinds), r.s.close())
}

// program describes the run: the recorded program, or the caller's, over the restored work tree.
func (r *replayer) program() (*run, interface{ Close() error }, error) {
	m := r.rec.Manifest
	env := r.env()
	path := m.Program.Path
	if len(r.o.Argv) > 0 {
		var err error
		if path, err = lookPath(r.o.Argv[0], m.Cwd, env); err != nil {
			return nil, nil, err
		}
	}
	p := &run{
		s: r.s, path: path, argv: r.argv(), env: env, dir: m.Cwd, tty: m.TTY, hostname: m.Host.Name,
		std: r.o.Streams, signals: r.o.Signals,
		net:   network.Config{Book: r.book, Speed: r.o.Speed},
		ports: m.Ports,
		masks: append(masksFor(r.o.ConfigDir, env), r.rec.Dir, filepath.Dir(r.scratch), r.dir),
	}
	if m.Roots.Tree != "" {
		p.masks = append(p.masks, LibraryOf(m.Roots.Tree).Dir)
		p.after = r.snapAfter
	}
	if err := r.mountPlan(p); err != nil {
		return nil, nil, err
	}
	stdin, err := r.stdin()
	if err != nil {
		return nil, nil, err
	}
	p.std.Stdin = stdin
	return p, stdin, nil
}

// mountPlan lays a layer over every directory that the program may change, and the recorded tree over the work tree.
func (r *replayer) mountPlan(p *run) error {
	for i, d := range r.overlaid() {
		dir := filepath.Join(r.scratch, fmt.Sprint(i))
		lowers := []string{d}
		if d == r.rec.Manifest.Roots.Tree && r.tree != nil {
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
	store, err := r.rec.Store()
	if err != nil {
		return nil, err
	}
	real, layer := r.rec.Manifest.Roots.Tree, filepath.Join(dir, "recorded")
	stats, err := files.BuildLayer(r.tree, real, layer, &files.LayerOptions{
		Store: store, Scrub: r.s.scrub, Exclude: []string{LibraryOf(real).Dir, r.rec.Dir},
	})
	if err != nil {
		return nil, fmt.Errorf("restoring the work tree: %w", err)
	}
	r.notes = append(r.notes, stats.Notes...)
	if _, err := os.Stat(real); err != nil {
		return []string{layer}, nil
	}
	return []string{layer, real}, nil
}

// snapAfter looks at the work tree as the replay left it.
func (r *replayer) snapAfter(root string) (err error) {
	if r.tree == nil {
		return nil
	}
	r.after, err = files.Snap(root, &files.SnapOptions{Store: r.s.store, Scrub: r.s.scrub})
	return err
}

// compare reads both tapes again and says where they differ.
func (r *replayer) compare() (*fidelity.Report, error) {
	recorded, err := r.rec.OpenTape()
	if err != nil {
		return nil, err
	}
	defer recorded.Close()
	replay, err := tape.OpenFile(filepath.Join(r.dir, tapeName), nil)
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
	return fidelity.CompareLanes(r.mode, recorded.Records(), replay.Records(), o)
}

// keep puts the work tree as the replay left it where the caller wants it.
func (r *replayer) keep() error {
	if r.o.Keep == "" {
		return nil
	}
	if r.after == nil {
		return fmt.Errorf("--keep %s: there is no work tree in this recording", r.o.Keep)
	}
	_, err := files.Restore(r.after, r.s.store, r.o.Keep)
	return err
}

// clean removes everything that the replay made, but what the caller asked to keep.
func (r *replayer) clean() {
	if r.scratch != "" {
		removeScratch([]string{r.scratch})
	}
}
