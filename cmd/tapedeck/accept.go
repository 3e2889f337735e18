package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type acceptOptions struct {
	tree   treeFlag
	dryRun bool
	force  bool
}

func newAcceptCommand(std *console) *cobra.Command {
	var o acceptOptions
	cmd := command("accept", "REC…", orAnother(func(ctx context.Context, name string, argv []string) error {
		return runAccept(ctx, &o, name, argv, std)
	}))
	f := cmd.Flags()
	o.tree.define(cmd, "now")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would change, and change nothing")
	f.BoolVar(&o.force, "force", false, "take a run that ended otherwise")
	std.jsonFlag(cmd, "the result as JSON on stdout, with the report; the program's output goes to stderr")
	return cmd
}

type rerecordOptions struct {
	upstreams map[string]string
	dryRun    bool
	force     bool
}

func newRerecordCommand(std *console) *cobra.Command {
	var o rerecordOptions
	cmd := command("rerecord", "REC…", orAnother(func(ctx context.Context, name string, argv []string) error {
		return runRerecord(ctx, &o, name, argv, std)
	}))
	f := cmd.Flags()
	upstreamFlag(f, &o.upstreams, "`NAME[:PORT]=URL` in place of the recorded one (repeatable)")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "run and show what would change, and keep the recording as it is")
	f.BoolVar(&o.force, "force", false, "take a run that ended otherwise, or that an upstream did not answer")
	std.jsonFlag(cmd, "the result as JSON on stdout, with the report; the program's output goes to stderr")
	return cmd
}

func runRerecord(ctx context.Context, o *rerecordOptions, name string, argv []string, std *console) error {
	rec, clean, err := openReference(ctx, name)
	if err != nil {
		return err
	}
	defer clean()
	if m := rec.Manifest; m.Fork != nil {
		of := "another recording"
		if m.Parent != nil {
			of = *m.Parent
		}
		return fmt.Errorf("%s is a fork of %s, %s: its command line alone would run without that; fork %[2]s again", name, of, forkedSo(m))
	}
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	if err := lib.MaySucceed(rec.Recording); err != nil { // before anything is paid for
		return err
	}
	made, done, err := library.Beside(rec.Dir)
	if err != nil {
		return err
	}
	var res *deck.Result
	defer func() {
		done()
		if res != nil {
			forget(res.Recording.Manifest.ID)
		}
	}()
	signals, stop := catchSignals()
	defer stop()
	opts := &deck.RecordOptions{
		Argv: argv, Streams: std.ofProgram(), Signals: signals,
		Upstreams: o.upstreams, Configured: sayConfigured(std.err), Output: made, NoSeal: true, Log: logger(std.err),
	}
	if err := deck.Again(rec.Recording, opts); err != nil {
		return err
	}
	std.say("live: %s", toWhom(slices.Sorted(maps.Keys(opts.Upstreams)), opts.Upstreams))
	if missing := deck.MissingSecrets(rec.Recording); len(missing) > 0 {
		std.say("not set here, and set when it was recorded: %s", strings.Join(missing, ", "))
	}
	if res, err = deck.Record(ctx, opts); err != nil {
		return err
	}
	endLine(std.err, res.OpenLine)
	report, err := deck.Compare(rec.Dir, res.Recording.Dir, &deck.CompareOptions{Sides: [2]string{"recorded", "the new run"}})
	if err != nil {
		return err
	}
	out := &acceptance{Recording: rec.path, ID: rec.Manifest.ID, Report: report}
	if !std.json {
		tellChanges(std.err, report)
	}
	if !o.dryRun {
		if err := out.take(ctx, lib, rec, res.Recording.Dir, res.Signals, o.force); err != nil {
			return err
		}
	}
	return out.tell(std)
}

// toWhom says in a line to which hosts, or what stands for them, a program will talk.
func toWhom(hosts []string, upstreams map[string]string) string {
	if len(hosts) == 0 {
		return "whatever the program asks for"
	}
	said := make([]string, len(hosts))
	for i, host := range hosts {
		if said[i] = host; upstreams[host] != "" {
			said[i] += " at " + visible.WithoutUser(upstreams[host])
		}
	}
	return strings.Join(said, ", ") + ", and whatever else the program asks for"
}

// forget takes away what leads to a recording that is gone, or has another id now.
func forget(id string) {
	if lib, err := openLibrary(); err == nil {
		if e, err := lib.Entry(id); err == nil && e.Recording == nil {
			_, _ = lib.Remove(e)
		}
	}
}

// A reference is a recording whose place another one may take: a directory, or what a packed file holds.
type reference struct {
	*recording.Recording
	path   string // of the directory or the file
	packed bool
}

// openReference opens one; clean removes what was unpacked for it.
func openReference(ctx context.Context, name string) (r *reference, clean func(), err error) {
	rec, clean, err := openRecordingOrPacked(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	r = &reference{rec, rec.Dir, library.LooksPacked(name)}
	if r.packed {
		r.path = name
	}
	return r, clean, nil
}

// supersede puts another recording in its place.
func (r *reference) supersede(ctx context.Context, fresh *recording.Recording) error {
	if r.packed {
		return library.SupersedePacked(ctx, r.path, fresh)
	}
	return library.Supersede(r.Recording, fresh)
}

// An acceptance is what accept --json prints.
type acceptance struct {
	Recording string           `json:"recording"`
	ID        string           `json:"id"`
	Accepted  bool             `json:"accepted"` // false where nothing differs, or nothing was to be changed
	Sealed    *sealing.Sealing `json:"sealed"`
	Report    *fidelity.Report `json:"report"` // of the recording so far and the run that takes its place
}

func runAccept(ctx context.Context, o *acceptOptions, name string, argv []string, std *console) error {
	rec, clean, err := openReference(ctx, name)
	if err != nil {
		return err
	}
	defer clean()
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	if err := lib.MaySucceed(rec.Recording); err != nil && !o.dryRun {
		return err
	}
	made, done, err := library.Beside(rec.Dir)
	if err != nil {
		return err
	}
	defer done()
	signals, stop := catchSignals()
	defer stop()
	opts, err := (&gate.Options{TreeNow: o.tree.now && rec.Manifest.Roots.Tree != "", TreeAt: o.tree.at}).ReplayOptions(rec.Recording, rec.path) // as test has it
	if err != nil {
		return err
	}
	opts.Argv, opts.Streams, opts.Signals = argv, std.outputs(), signals
	opts.Out, opts.Log = made, logger(std.err)
	v, err := deck.Replay(ctx, rec.Recording, opts)
	if err != nil {
		return err
	}
	endLine(std.err, v.OpenLine)
	out := &acceptance{Recording: rec.path, ID: rec.Manifest.ID, Report: v.Report}
	if !std.json {
		tellChanges(std.err, v.Report)
	}
	switch {
	case len(v.Refused) > 0:
		err = fmt.Errorf("%s was refused: a new answer comes from its upstream alone (tapedeck rerecord %s)",
			plural(len(v.Refused), "request that is not on the tape", "requests that are not on the tape"), name)
	case len(v.NotCompared) > 0:
		err = errors.New("not all could be compared: " + strings.Join(v.NotCompared, "; "))
	case !v.Faithful() && !o.dryRun:
		err = out.take(ctx, lib, rec, made, 0, o.force)
	}
	if err != nil {
		return err
	}
	return out.tell(std)
}

// take puts the recording at made, whose run got so many signals from outside, in the place of rec, sealed where that one was. One that is
// worse is taken by force alone.
func (a *acceptance) take(ctx context.Context, lib *library.Library, rec *reference, made string, signals int, force bool) error {
	next, err := recording.Open(made)
	if err != nil {
		return err
	}
	if why, err := deck.Worse(rec.Recording, next, signals); err != nil {
		return err
	} else if why != "" && !force {
		return fmt.Errorf("%s: %s stays as it is (--force takes the new run all the same)", why, shortPath(rec.path))
	}
	fresh, err := lib.Succeed(rec.Recording, made)
	if err != nil {
		return err
	}
	if rec.Manifest.Sealed {
		if a.Sealed, err = sealing.Seal(ctx, fresh, nil); err != nil {
			return err
		}
	}
	if err := rec.supersede(ctx, fresh); err != nil {
		return err
	}
	a.Accepted = true
	if next, err := recording.Open(rec.path); err == nil && !rec.packed {
		page.Prepare(next)
	}
	return nil
}

func (a *acceptance) tell(std *console) error {
	what := "would change"
	switch {
	case std.json:
		return printJSON(std.out, a)
	case a.Accepted:
		what = "the new run is the reference now"
	case a.Report.Faithful():
		what = "nothing differs: it stays as it is"
	}
	return std.say("%s: %s", shortPath(a.Recording), what)
}

// shownOfCategory is how many divergences of one category accept names.
const shownOfCategory = 5

// tellChanges lists divergences by category, in the order in which the categories first appear.
func tellChanges(w io.Writer, r *fidelity.Report) {
	var order []fidelity.Category
	by := make(map[fidelity.Category][]string)
	for i := range r.Divergences {
		d := &r.Divergences[i]
		if !slices.Contains(order, d.Category) {
			order = append(order, d.Category)
		}
		by[d.Category] = append(by[d.Category], d.Message)
	}
	for _, c := range order {
		visible.Fprintf(w, "%s (%d)\n", c, len(by[c]))
		for i, message := range by[c] {
			if i == shownOfCategory {
				visible.Fprintf(w, "  and %d more\n", len(by[c])-i)
				break
			}
			visible.Fprintf(w, "  %s\n", visible.Line(message))
		}
	}
	if r.Omitted > 0 {
		visible.Fprintf(w, "and %s\n", plural(r.Omitted, "more divergence", "more divergences"))
	}
}

type applyOptions struct {
	reverse bool
}

func newApplyCommand(std *console) *cobra.Command {
	var o applyOptions
	cmd := command("apply", "REC", func(_ *cobra.Command, args []string) error { return runApply(&o, args[0], std) })
	cmd.Flags().BoolVar(&o.reverse, "reverse", false, "undo what the run did")
	std.jsonFlag(cmd, "the changed paths as JSON")
	return cmd
}

func runApply(o *applyOptions, name string, std *console) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	if err := inTree(rec); err != nil {
		return err
	}
	done := std.progress().busy("applying")
	changed, inGit, err := derive.Apply(rec, o.reverse)
	done()
	if conflict := (*files.ConflictError)(nil); errors.As(err, &conflict) {
		sayOtherKey(rec, len(conflict.Conflicts), std)
	}
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"changed": nonNil(changed), "reverse": o.reverse, "left_in_git": inGit})
	}
	for _, path := range changed {
		visible.Fprintln(std.out, path)
	}
	if inGit > 0 {
		std.say("%s in .git left as they are: commits are not undone", plural(inGit, "file", "files"))
	}
	return std.say("%s changed in %s", plural(len(changed), "path", "paths"), rec.Manifest.Roots.Tree)
}

// inTree refuses a recording of another work tree than that of the working directory: a recording that came from elsewhere
// must not say where files are written.
func inTree(rec *recording.Recording) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	want := rec.Manifest.Roots.Tree
	if want == "" {
		return fmt.Errorf("%s: %w", rec.Dir, derive.ErrNoTree)
	}
	if filepath.Dir(lib.Dir) != want {
		return fmt.Errorf("the recording is of the work tree %s, and this is %s: run apply in that tree", want, filepath.Dir(lib.Dir))
	}
	return nil
}

// nonNil makes an absent list an empty one in JSON.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func newRestoreCommand(std *console) *cobra.Command {
	cmd := command("restore", "REC DIR", func(_ *cobra.Command, args []string) error { return runRestore(args[0], args[1], std) })
	std.jsonFlag(cmd, "what was left out as JSON")
	return cmd
}

func runRestore(name, dir string, std *console) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	done := std.progress().busy("restoring")
	left, err := derive.Restore(rec, dir)
	done()
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"directory": dir, "left_out": nonNil(left)})
	}
	for _, path := range left {
		std.say("left out, it holds a secret: %s", path)
	}
	sayOtherKey(rec, len(left), std)
	return std.say("restored into %s", dir)
}

// sayOtherKey says of a recording some of whose files held secrets that this machine has not the key which tells them.
func sayOtherKey(rec *recording.Recording, files int, std *console) {
	if files == 0 {
		return
	}
	if said := rec.OtherKey(""); said != "" {
		std.say("%s", said)
	}
}
