package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Result is what Record leaves behind.
type Result struct {
	Recording *Recording
	Exit      Exit
	Counts    map[string]int // records by kind
}

// recorder is one Record under way.
type recorder struct {
	o        *RecordOptions
	argv     []string
	dir      string
	env      []string
	path     string
	roots    Roots
	why      string // why there is no snapshot of the work tree
	masking  *Masking
	lib      *Library
	manifest *Manifest
	recDir   string

	s      *session
	trees  *trees
	fresh  []string       // scratch to remove
	counts map[string]int // records by kind, known at the end
}

// Record runs a program in the jail with every axis on and leaves a recording. The program's exit status is in the
// result, whatever it is. Errors: a *NotFoundError where the program is not there, a *jail unavailable error with its
// reason where the jail cannot be, else what kept the recording from being written; the recording then stays as far as
// it came.
func Record(ctx context.Context, o *RecordOptions) (*Result, error) {
	r, err := newRecorder(o)
	if err != nil {
		return nil, err
	}
	if err := r.begin(); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

// newRecorder settles everything that can fail before anything is written.
func newRecorder(o *RecordOptions) (*recorder, error) {
	if len(o.Argv) == 0 {
		return nil, errors.New("no program to record")
	}
	r := &recorder{o: o, argv: o.Argv, env: o.Env}
	if r.env == nil {
		r.env = os.Environ()
	}
	dir, err := workingDir(o.Dir)
	if err != nil {
		return nil, err
	}
	r.dir = dir
	if r.path, err = lookPath(o.Argv[0], r.dir, r.env); err != nil {
		return nil, err
	}
	if r.roots, r.why, err = findRoots(r.dir, o.Tree, r.env); err != nil {
		return nil, err
	}
	if r.masking, err = readMasking(r.roots.Tree); err != nil {
		return nil, err
	}
	r.lib = LibraryOf(r.roots.libraryRoot(r.dir))
	return r, jail.Available()
}

// workingDir returns dir, or the process's own, absolute and without symbolic links: what the program sees of its
// directory must be a path that the jail has.
func workingDir(dir string) (string, error) {
	if dir == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		dir = wd
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// begin makes the recording's directory, its manifest and its tape.
func (r *recorder) begin() error {
	now := time.Now()
	id := newID(now)
	if err := r.lib.ensure(); err != nil {
		return fmt.Errorf("the library of recordings: %w", err)
	}
	r.recDir = filepath.Join(r.lib.Dir, id+recordingExt)
	if r.o.Output != "" {
		abs, err := filepath.Abs(r.o.Output)
		if err != nil {
			return err
		}
		r.recDir = abs
	}
	if err := makeEmpty(r.recDir); err != nil {
		return err
	}
	if r.o.Output != "" {
		if err := r.lib.point(id, r.recDir); err != nil {
			return err
		}
	}
	if err := r.writeManifest(id, now); err != nil {
		return err
	}
	return r.openSession()
}

func (r *recorder) openSession() (err error) {
	r.s, err = newSession(&sessionOptions{
		dir: r.recDir, partDir: filepath.Join(r.recDir, partName),
		header: &tape.Header{ScriptPath: &r.path, Argv: append([]string(nil), r.argv[1:]...)},
		env:    r.env, args: r.argv[1:], roots: r.roots, masking: r.manifest.Masking,
		configDir: r.o.ConfigDir, sync: r.o.Sync, log: r.o.Log,
	})
	if err != nil {
		return err
	}
	r.manifest.Argv = scrubAll(r.s.scrub, r.argv)
	r.manifest.Env = manifestEnv(r.s.scrub, r.env)
	r.trees = &trees{
		s: r.s, root: r.roots.Tree, store: r.s.store,
		cache: filepath.Join(r.lib.Dir, statCacheName), exclude: []string{r.lib.Dir, r.recDir},
	}
	return r.manifest.write(r.recDir, r.o.Sync)
}

// writeManifest writes the first recording.json. What may hold a secret is added when the session can hide it.
func (r *recorder) writeManifest(id string, now time.Time) error {
	host, _ := terminal.Host([3]any{r.o.Stdin, r.o.Stdout, r.o.Stderr})
	r.manifest = &Manifest{
		ID: id, Format: ManifestFormat, State: StateRecording,
		Program: Program{Path: r.path, Digest: fileDigest(r.path).String()},
		Cwd:     r.dir, Stdin: json.RawMessage("null"), Axes: map[string]Axis{},
		Host: thisHost(), Versions: Versions{Tapedeck: Version}, StartedAt: now.UTC(), Roots: r.roots,
		Ports: upstreamPorts(r.o.Upstreams), Masking: r.masking,
	}
	if streams := r.o.Terminal.Streams([3]any{r.o.Stdin, r.o.Stdout, r.o.Stderr}); len(streams) > 0 {
		_, size := terminal.Host([3]any{r.o.Stdin, r.o.Stdout, r.o.Stderr})
		if host == nil {
			size = terminal.Size{}
		}
		r.manifest.TTY = &TTY{Streams: streams, Rows: size.Rows, Cols: size.Cols}
	}
	return r.manifest.write(r.recDir, r.o.Sync)
}

// run records the program and finishes the recording.
func (r *recorder) run(ctx context.Context) (*Result, error) {
	if err := r.trees.takeBefore(r.o.Progress, r.o.Sync); err != nil {
		return nil, err
	}
	p := r.program()
	if err := r.mountPlan(p); err != nil {
		return nil, err
	}
	defer removeScratch(r.fresh)
	e, err := p.do(ctx)
	if err != nil {
		return nil, errors.Join(err, r.s.close())
	}
	if !r.o.Isolated {
		if err := r.trees.takeAfter(r.roots.Tree); err != nil {
			return nil, err
		}
	}
	if err := r.finish(p, e); err != nil {
		return nil, err
	}
	rec, err := Open(r.recDir)
	if err != nil {
		return nil, err
	}
	return &Result{Recording: rec, Exit: e.exit, Counts: r.counts}, nil
}

func (r *recorder) program() *run {
	p := &run{
		s: r.s, path: r.path, argv: r.argv, env: r.env, dir: r.dir,
		std: r.o.Streams, tty: r.manifest.TTY, hostname: r.manifest.Host.Name, signals: r.o.Signals,
		net: network.Config{
			Upstreams: r.o.Upstreams, Passthrough: r.o.Passthrough, ProxyEnv: r.env,
		},
		ports: r.manifest.Ports,
	}
	p.masks = append(masksFor(r.o.ConfigDir, r.env), r.lib.Dir, r.recDir)
	if r.o.Isolated {
		p.after = r.trees.takeAfter
	}
	return p
}

// mountPlan lets the program write to the host's directories or, isolated, to layers over them.
func (r *recorder) mountPlan(p *run) error {
	dirs := r.roots.writable(r.o.Writable)
	if !r.o.Isolated {
		p.writable = dirs
		return nil
	}
	scratch, err := newScratch(r.manifest.ID, dirs)
	if err != nil {
		return err
	}
	r.fresh = append(r.fresh, scratch)
	for i, d := range dirs {
		o, err := overlayOver(d, filepath.Join(scratch, fmt.Sprint(i)), d)
		if err != nil {
			return err
		}
		p.overlays = append(p.overlays, o)
	}
	p.masks = append(p.masks, filepath.Dir(scratch))
	return nil
}

// finish puts the end on the tape and closes the recording.
func (r *recorder) finish(p *run, e *ended) error {
	if err := errors.Join(p.recordEnd(e, r.trees, r.o.Sync), r.s.close()); err != nil {
		return err
	}
	seen, err := survey(filepath.Join(r.recDir, tapeName))
	if err != nil {
		return err
	}
	r.counts = seen.counts
	m := r.manifest
	m.State, m.Exit, m.Axes = StateFinished, &e.exit, r.axes(seen.lost, e.gaps)
	m.Masks = r.s.mask.Used()
	if m.TTY != nil {
		m.TTY.Typed = e.streams.keys()
	}
	if e.stdin != nil {
		m.Stdin = e.stdin.AppendJSON(nil)
	}
	os.Remove(filepath.Join(r.recDir, partName)) // empty by now; one that is not stays as evidence
	return m.write(r.recDir, r.o.Sync)
}
