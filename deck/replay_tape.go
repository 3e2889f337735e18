package deck

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A tapeReplayer is one ReplayTape under way. A bare tape says what was asked and answered, and nothing of a program: that runs as
// it would outside, in the working directory, over layers.
type tapeReplayer struct {
	o       *ReplayOptions
	path    string // of the tape
	cwd     string
	env     []string
	program string // its path
	roots   recording.Roots
	scratch *scratch

	prepared *jail.Prepared

	tape  *surveyed
	rules int // of scrub, that the tape was made with
	book  *exchange.Book
	s     *session
	trees *trees
	notes []string
}

// errBare is wrapped by the refusal of what a bare tape cannot give.
var errBare = errors.New("a bare tape holds exchanges and nothing of a program")

// ReplayTape runs the program of o.Argv as a closed world against the bare tape at path, and compares what it asked for. The
// program runs in the working directory, with the environment as it is, and nothing that it does outlives it but what o.Keep
// names. Of o count Argv, Env, Streams (Stdin too), Signals, Speed, Keep, Starting, ConfigDir and Log; the rest must be zero.
func ReplayTape(ctx context.Context, path string, o *ReplayOptions) (*Verdict, error) {
	if o == nil {
		o = new(ReplayOptions)
	}
	if err := checkBare(path, o); err != nil {
		return nil, err
	}
	prepared, err := prepareWorld(false, o.Keep != "")
	if err != nil {
		return nil, err
	}
	r := &tapeReplayer{o: o, path: path, prepared: prepared}
	defer func() { r.scratch.removeAfter(prepared) }()
	if err := r.prepare(); err != nil {
		return nil, err
	}
	defer r.s.close() // on the way out of a failure; run closes it, and looks at the error
	return r.run(ctx)
}

// checkBare refuses what cannot be asked of a bare tape.
func checkBare(path string, o *ReplayOptions) error {
	if dir := filepath.Dir(path); filepath.Base(path) == recording.TapeName && library.HoldsRecording(dir) {
		return fmt.Errorf("%s is the tape of a recording: tapedeck replay %s", path, dir)
	}
	asked := ""
	switch {
	case len(o.Argv) == 0:
		return fmt.Errorf("%s: %w: name one behind --, as in tapedeck replay %[1]s -- CMD [ARG…]", path, errBare)
	case o.Proxy:
		return fmt.Errorf("--proxy: %w: its program runs in the jail alone; without one, a Go test answers from it by httptape", errBare)
	case o.Screens:
		asked = "--tty"
	case o.TreeNow:
		asked = "--tree now (the work tree is as it is now)"
	case o.Out != "":
		asked = "-o"
	case len(o.Watch) > 0:
		asked = "--watch"
	case o.Mode != fidelity.Semantic:
		asked = "--mode"
	}
	if asked != "" {
		return fmt.Errorf("%w: leave out %s", errBare, asked)
	}
	return nil
}

// prepare reads the tape and makes the replay's own.
func (r *tapeReplayer) prepare() (err error) {
	if r.env = r.o.Env; r.env == nil {
		r.env = os.Environ()
	}
	if r.cwd, err = recording.WorkingDir(""); err != nil {
		return err
	}
	if r.program, err = program.Find(r.o.Argv[0], r.cwd, r.env); err != nil {
		return err
	}
	if r.roots, _, err = recording.FindRoots(r.cwd, "", r.env); err != nil {
		return err
	}
	if r.tape, err = survey(r.path, nil, nil); err != nil {
		return err
	}
	if r.o.Keep != "" {
		if err := recording.MakeEmpty(r.o.Keep); err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
	}
	if r.scratch, err = newScratch("tape", r.overlaid()); err != nil {
		return err
	}
	return r.load()
}

// overlaid lists the directories that the program may change: they get layers.
func (r *tapeReplayer) overlaid() []string { return r.roots.Writable([]string{r.cwd}) }

// load opens the tape to answer from it, and the session.
func (r *tapeReplayer) load() error {
	f, err := tape.Open(r.path, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	if r.rules, err = bare.RulesOf(f.Header()); err != nil {
		return err
	}
	g, err := r.guard()
	if err != nil {
		return err
	}
	dir := filepath.Join(r.scratch.Dir, "tape")
	if err := recording.MakeEmpty(dir); err != nil {
		return err
	}
	r.s, err = newSession(&sessionOptions{
		redactor: g, dir: dir, script: r.program, args: r.o.Argv[1:], roots: r.roots, replay: true, log: r.o.Log,
	})
	if err != nil {
		return err
	}
	r.book, err = exchange.NewBook(f.Records(), g.class, f.Store)
	if err != nil {
		return errors.Join(err, r.s.close())
	}
	r.book.TellSideTraffic(nil)
	r.trees = &trees{s: r.s, root: r.roots.Tree, store: r.s.store, exclude: []string{dir}}
	return nil
}

// guard finds the secrets of the run as those of the tape were found, and masks what a bare tape's requests are masked by.
func (r *tapeReplayer) guard() (*redactor, error) {
	masker, err := bare.NewMasker(&masks.Options{Home: r.roots.Home, WorkTree: r.roots.Tree, Temp: r.roots.Temp})
	if err != nil {
		return nil, err
	}
	s := bare.NewScrubber(&scrub.Options{Env: r.env, Rules: r.rules, Harmless: secrets.PathsFrom(r.cwd)})
	secrets.LearnArgs(s, r.o.Argv[1:])
	return &redactor{
		scrub: s, mask: masker, class: llm.NewClassifier(masker), id: redactorID(s, r.o.Argv[1:], r.env, nil), roots: &r.roots, begun: s.Mark(),
	}, nil
}

// run runs the program and compares.
func (r *tapeReplayer) run(ctx context.Context) (*Verdict, error) {
	if err := interrupted(r.o.Signals); err != nil {
		return nil, err
	}
	p, err := r.described()
	if err != nil {
		return nil, err
	}
	if r.o.Starting != nil {
		r.o.Starting()
	}
	defer p.changing.close()
	e, err := p.do(ctx)
	if err = errors.Join(r.s.failure(), err); err != nil {
		return nil, err
	}
	if _, err := p.recordEnd(e, rescrubOptions{off: true}); err != nil {
		return nil, err
	}
	notes, err := r.trees.keep(r.o.Keep)
	if r.notes = append(r.notes, notes...); err != nil {
		return nil, err
	}
	report, err := r.compare(e)
	if err != nil {
		return nil, err
	}
	return &Verdict{Report: report, Exit: e.exit, OpenLine: e.streams.shown.OpenLine()}, nil
}

// described is the program in its world.
func (r *tapeReplayer) described() (*run, error) {
	blobs, err := cas.OpenDir(r.path+tape.StoreSuffix, nil)
	if err != nil {
		return nil, err
	}
	p := &run{
		s: r.s, prepared: r.prepared, path: r.program, argv: r.o.Argv, env: r.env, dir: r.cwd,
		std: r.o.Streams, signals: r.o.Signals, host: new(recording.ThisHost()),
		net:   network.Config{Book: r.book, Blobs: blobs, Speed: r.o.Speed},
		ports: program.MergePorts(program.Ports(nil), r.tape.ports),
		masks: append(masksFor(r.o.ConfigDir, r.env), filepath.Dir(r.scratch.Dir)),
	}
	if r.o.Keep != "" { // the work tree is looked at where it is to be kept as the program leaves it
		if r.roots.Tree == "" {
			return nil, fmt.Errorf("--keep %s: %s is in no work tree: run git init there, or leave out --keep", r.o.Keep, r.cwd)
		}
		if err := r.trees.takeBefore(nil, false); err != nil {
			return nil, err
		}
	}
	if r.trees.before != nil {
		p.after = r.trees.takeAfter
	}
	p.changing = newChanging(r.s, r.trees, r.roots.Followed(nil))
	p.changing.passing = true
	p.overlays, err = r.scratch.over(r.overlaid())
	return p, err
}

// compare compares the exchanges of both tapes, lane by lane: nothing else stands on the first.
func (r *tapeReplayer) compare(e *ended) (*fidelity.Report, error) {
	recorded, err := tape.Open(r.path, nil)
	if err != nil {
		return nil, err
	}
	defer recorded.Close()
	replay, err := tape.Open(filepath.Join(r.s.dir, recording.TapeName), nil)
	if err != nil {
		return nil, err
	}
	defer replay.Close()
	o := laneOptionsOf(recorded.Store, replay.Store, [2]*masks.Masker{r.s.mask, r.s.mask}, false)
	o.Crossed, o.Masked = r.book.Audit(), r.s.mask.Used()
	o.Notes = append(slices.Concat(r.notes, e.gaps), "compared were the axes network and llm: what the program asked for, and what it got")
	if e.exit.Code != 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("the program ended with %d; the tape does not say how it should", e.exit.Code))
	}
	o.NotCompared, o.NotCovered = r.book.Damaged(), r.notCovered()
	if r.tape.counts["llm_call"]+r.tape.counts["http_exchange"] == 0 {
		o.NotCompared = append(o.NotCompared, "anything: the tape holds no exchange")
	}
	if e.signals > 0 {
		o.NotCompared = append(o.NotCompared, "the replay was interrupted by a signal")
	}
	return fidelity.CompareLanes(r.o.Mode, ofNetwork(recorded.Records()), ofNetwork(replay.Records()), o)
}

// notCovered is the ledger of a bare tape.
func (r *tapeReplayer) notCovered() []string {
	out := []string{"process (exit, output and arguments are on no bare tape)", "files (what the program changed is on no bare tape)", gapClock, gapRandom, gapMCP, recording.GapScreen, gapSockets}
	for _, kind := range slices.Sorted(maps.Keys(r.tape.counts)) {
		if !isNetwork(kind) {
			out = append(out, fmt.Sprintf("%s (%d on the tape, which nothing replays without a recording)", kind, r.tape.counts[kind]))
		}
	}
	return append(out, r.tape.lost...)
}

// isNetwork reports whether records of a kind are of the network.
func isNetwork(kind string) bool {
	return slices.Contains([]string{"llm_call", "http_exchange", "net_refused", "tls_refused"}, kind)
}

// ofNetwork leaves out what is not of the network, and what no bare tape tells of it.
func ofNetwork(records iter.Seq2[*tape.Record, error]) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for rec, err := range records {
			if (err != nil || isNetwork(countedAs(rec.Kind))) && !yield(rec, err) {
				return
			}
		}
	}
}
