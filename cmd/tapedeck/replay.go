package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/compare"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type replayOptions struct {
	verdictFlags
	deck.ReplayOptions
	tree treeFlag
}

func newReplayCommand(std *console) *cobra.Command {
	var o replayOptions
	cmd := command("replay", "REC…", orAnother(func(ctx context.Context, name string, argv []string) error {
		return runReplay(ctx, &o, name, argv, std)
	}))
	f := cmd.Flags()
	modeFlag(cmd, &o.Mode)
	parsedFlag(f, &o.Speed, "speed", "collapsed", "collapsed (no waiting), realtime (the head of an answer comes with its first bytes), or N times as fast", parseSpeed)
	f.StringVar(&o.Keep, "keep", "", "`directory` that gets the work tree as the replay left it")
	f.StringVarP(&o.Out, "output", "o", "", "`directory` that gets the replay as a recording of its own, unsealed")
	o.define(cmd)
	o.defineStrict(f)
	o.tree.define(cmd, "recorded")
	f.StringArrayVar(&o.Watch, "watch", nil, watchHelp)
	f.BoolVar(&o.Screens, "tty", false, "compare the terminal's screens in place of its bytes")
	f.BoolVar(&o.Proxy, "proxy", false, "run the program outside the jail and answer what heeds HTTP_PROXY")
	std.jsonFlag(cmd, "the report as JSON on stdout")
	completeFlag(cmd, "speed", "collapsed", "realtime")
	return cmd
}

func runReplay(ctx context.Context, o *replayOptions, name string, argv []string, std *console) error {
	o.TreeNow, o.TreeAt = o.tree.now, o.tree.at
	if math.IsInf(o.Speed, 1) {
		o.Speed = 0 // which does not wait
	}
	text := o.text(std.err)
	replay, err := o.replays(name, std)
	if err != nil {
		return err
	}
	signals, stop := catchSignals()
	defer stop()
	restored := sync.OnceFunc(std.progress().busy("restoring what the run found"))
	defer restored()
	o.Argv, o.Streams, o.Signals, o.Starting, o.Log = argv, std.outputs(), signals, restored, logger(std.err)
	v, err := replay(ctx, &o.ReplayOptions)
	if err != nil {
		return err
	}
	endLine(std.err, v.OpenLine)
	return o.hold(v.Report, std, std.err, text)
}

// replays returns what replays name: a recording, or a bare tape, whose program gets our stdin.
func (o *replayOptions) replays(name string, std *console) (func(context.Context, *deck.ReplayOptions) (*deck.Verdict, error), error) {
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() && !library.LooksPacked(name) {
		return func(ctx context.Context, opts *deck.ReplayOptions) (*deck.Verdict, error) {
			if !isTerminal(std.in) {
				opts.Stdin = std.in
			}
			return deck.ReplayTape(ctx, name, opts)
		}, nil
	}
	rec, err := openRecording(name)
	return func(ctx context.Context, opts *deck.ReplayOptions) (*deck.Verdict, error) {
		v, err := deck.Replay(ctx, rec, opts)
		switch {
		case err != nil:
		case len(opts.Argv) > 0: // another program's run says nothing about the recording
			library.Reported(rec, library.Judgement{Report: v.Report, Replay: idIn(opts.Out), Other: true})
		default:
			library.Judged(rec, library.Verdict{Status: string(gate.StatusOf(v.Report)), Summary: v.String(), By: "replay"},
				library.Judgement{Report: v.Report, Replay: idIn(opts.Out)})
		}
		return v, err
	}, err
}

// idIn is the id of the recording in dir; "" for none.
func idIn(dir string) string {
	if rec, err := recording.Open(dir); dir != "" && err == nil {
		return rec.Manifest.ID
	}
	return ""
}

type diffOptions struct {
	verdictFlags
	deck.CompareOptions
}

func newDiffCommand(std *console) *cobra.Command {
	var o diffOptions
	cmd := command("diff", "A B", func(cmd *cobra.Command, args []string) error {
		return runDiff(cmd.Context(), &o, args[0], args[1], std)
	})
	f := cmd.Flags()
	modeFlag(cmd, &o.Mode)
	f.BoolVar(&o.Aligned, "aligned", false, "align the records, so that an inserted or moved one reads as one (recordings always are)")
	f.BoolVar(&o.Screens, "tty", false, "compare the screens of two recordings' terminals in place of their bytes")
	f.StringArrayVar(&o.Watch, "watch", nil, watchHelp)
	o.define(cmd)
	o.defineStrict(f)
	std.jsonFlag(cmd, "the report as JSON")
	return cmd
}

func runDiff(ctx context.Context, o *diffOptions, a, b string, std *console) error {
	text := o.text(std.out)
	var paths [2]string
	for i, name := range []string{a, b} {
		path, clean, err := anyTape(ctx, name, std.progress())
		if err != nil {
			return err
		}
		paths[i] = path
		defer clean()
	}
	stop := std.progress().busy("comparing")
	r, err := deck.Compare(paths[0], paths[1], &o.CompareOptions)
	stop()
	if err != nil {
		return err
	}
	totals, err := totalsOf(paths[:])
	switch {
	case err != nil:
		return err
	case totals == nil:
		return o.hold(r, std, std.out, text)
	case std.json:
		err = printJSON(std.out, joined{r, map[string]any{"totals": totals}})
	default:
		if err = r.WriteText(std.out, text); err == nil {
			visible.Fprintln(std.out)
			err = compare.WriteUse(std.out, []string{"A", "B"}, totals)
		}
	}
	if err != nil {
		return err
	}
	return o.held(r, verdictOf(r))
}

// totalsOf are what recordings come to, at the prices of now; nil where one of the paths is a bare tape.
func totalsOf(paths []string) (totals []*recording.Totals, err error) {
	prices, err := projectPrices()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		rec, err := recording.OpenIfRecording(path)
		if rec == nil {
			return nil, err
		}
		a, err := account.Of(rec, prices)
		if err != nil {
			return nil, err
		}
		totals = append(totals, &a.Total)
	}
	return totals, nil
}

// tapeOrRecording returns the path of a bare tape, or of the recording that name stands for.
func tapeOrRecording(name string) (string, error) {
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	rec, err := openRecording(name)
	if err != nil {
		return "", err
	}
	return rec.Dir, nil
}

// besideWidth is how wide a terminal is where a verdict puts what was recorded beside the replay without being asked to.
const besideWidth = 110

// modesHelp says what each mode compares.
const modesHelp = `
--mode says what must match:
  semantic        every field of every record, but for times and durations
  outcome         the files in the end, the exit code and the number of model calls
  byte-identical  every field, times too: they differ between any two real runs, so this is for tapes of a virtual clock
  phase-aware     as byte-identical what the program did, times too; as semantic what the runtime did after it
`

// verdictFlags say how a verdict is written as text.
type verdictFlags struct {
	colorFlag
	sideBySide string
	all        bool
	strict     bool // of two recordings
}

func (o *verdictFlags) define(cmd *cobra.Command) {
	o.defineColor(cmd)
	wordFlag(cmd, &o.sideBySide, "side-by-side", "auto", "recorded beside replay: `WHEN` is auto, always or never", whens...)
	cmd.Flags().Lookup("side-by-side").NoOptDefVal = "always"
	cmd.Flags().BoolVar(&o.all, "all", false, "every divergence, whole")
}

func (o *verdictFlags) defineStrict(f *pflag.FlagSet) {
	f.BoolVar(&o.strict, "strict", false, "a verdict that leaves a doubt (FAITHFUL, masked), and side traffic that differs, end with 2")
}

// hold prints a report of two recordings and returns what makes the exit status, as --strict wants it.
func (o *verdictFlags) hold(r *fidelity.Report, std *console, w io.Writer, text *fidelity.TextOptions) error {
	return o.held(r, printReport(r, std, w, text))
}

// held is err, or what --strict makes of a report that holds.
func (o *verdictFlags) held(r *fidelity.Report, err error) error {
	if err == nil && o.strict && (r.Doubtful() > 0 || !r.Strictly()) {
		return &statusError{status: statusDiverged}
	}
	return err
}

// watchHelp is the help of --watch.
const watchHelp = "`path` or pattern that must match too though it lies outside the work tree or Git ignores it, as in '~/.agent/*' or '$TMP/log' (again for more)"

func (o *verdictFlags) text(w io.Writer) *fidelity.TextOptions {
	t := &fidelity.TextOptions{Color: o.colours(w), Width: width(w), All: o.all, More: "--all"}
	wide := isTerminal(w) && t.Width >= besideWidth && os.Getenv("TERM") != "dumb"
	t.SideBySide = o.sideBySide == "always" || o.sideBySide == "auto" && wide
	return t
}

// printReport writes a report, as text to w, and returns what makes the exit status.
func printReport(r *fidelity.Report, std *console, w io.Writer, o *fidelity.TextOptions) error {
	var err error
	if std.json {
		err = printJSON(std.out, r)
	} else {
		err = r.WriteText(w, o)
	}
	return cmp.Or(err, verdictOf(r))
}

// verdictOf is what makes the exit status of a report; nil of a faithful one.
func verdictOf(r *fidelity.Report) error {
	switch {
	case len(r.NotCompared) > 0:
		return &statusError{status: statusFailed}
	case !r.Faithful():
		return &statusError{status: statusDiverged}
	}
	return nil
}

type compareOptions struct {
	colorFlag
	compare.Options
	markdown bool
}

func newCompareCommand(std *console) *cobra.Command {
	var o compareOptions
	cmd := command("compare", "REC REC…", interruptibly(func(cmd *cobra.Command, args []string) error { return runCompare(cmd.Context(), &o, args, std) }))
	f := cmd.Flags()
	f.StringVar(&o.Verify, "verify", "", "`command` of the shell that is run over the files as each run left them")
	f.DurationVar(&o.Timeout, "verify-timeout", compare.DefaultTimeout, "how long it may take, as in 30s or 2m")
	f.IntVarP(&o.Jobs, "jobs", "j", 0, "how many recordings at once; 0 is as many as there are processors")
	f.BoolVar(&o.markdown, "markdown", false, "tables of Markdown")
	o.defineColor(cmd)
	std.jsonFlag(cmd, "the comparison as JSON")
	cmd.MarkFlagsMutuallyExclusive("markdown", "json")
	return cmd
}

func runCompare(ctx context.Context, o *compareOptions, names []string, std *console) error {
	if len(names) > compare.Most {
		return fmt.Errorf("compare takes %d recordings at most, got %d", compare.Most, len(names))
	}
	return withRecordings(ctx, names, std.progress(), func(ctx context.Context, recs []*recording.Recording, prices *llm.Prices) error {
		var done func()
		o.Prices = prices
		o.Step, done = std.progress().counted("comparing")
		c, err := compare.Run(ctx, recs, &o.Options)
		done()
		if err != nil {
			return err
		}
		if std.json {
			err = printJSON(std.out, c)
		} else {
			err = c.Write(std.out, compare.Form{Markdown: o.markdown, Colour: o.colours(std.out)})
		}
		return errors.Join(err, checked(c))
	})
}

// withRecordings calls f with recordings by their names, packed ones too, and the project's prices, until ^C.
func withRecordings(ctx context.Context, names []string, p *progress, f func(context.Context, []*recording.Recording, *llm.Prices) error) error {
	prices, err := projectPrices()
	if err != nil {
		return err
	}
	recs, clean, err := openAll(ctx, names, p)
	defer clean()
	if err != nil {
		return err
	}
	return f(ctx, recs, prices)
}

// checked is the end of a command whose check did not pass everywhere: 1 where it did not run in some end state.
func checked(c *compare.Comparison) error {
	status, names := statusDiverged, []string{}
	for _, r := range c.Failed() {
		names = append(names, r.Name())
		if r.Check.Why != "" {
			status = statusFailed
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &statusError{status, fmt.Errorf("--verify did not pass for %s", strings.Join(names, ", "))}
}

// openAll opens recordings, packed ones too, which stay as they are. clean is to be called in any case.
func openAll(ctx context.Context, names []string, p *progress) (recs []*recording.Recording, clean func(), err error) {
	var cleans []func()
	clean = func() {
		for _, c := range cleans {
			c()
		}
	}
	for _, name := range names {
		path, done, err := anyTape(ctx, name, p)
		if err != nil {
			return nil, clean, err
		}
		cleans = append(cleans, done)
		rec, err := recording.OpenIfRecording(path)
		if err == nil && rec == nil {
			err = fmt.Errorf("%s is a bare tape, and this takes recordings: tapedeck show reads a bare tape, tapedeck diff compares two", name)
		}
		if err != nil {
			return nil, clean, err
		}
		recs = append(recs, rec)
	}
	return recs, clean, nil
}

// projectPrices are those of the tapedeck.yaml of the work tree that holds the working directory, and those that are built in.
func projectPrices() (*llm.Prices, error) {
	lib, err := openLibrary()
	if err != nil {
		return nil, err
	}
	return recording.PricesOf(filepath.Dir(lib.Dir))
}
