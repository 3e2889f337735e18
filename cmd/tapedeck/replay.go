package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	mode, speed, tree string
}

func newReplayCommand(std *console) *cobra.Command {
	var o replayOptions
	cmd := command("replay", "REC…", func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); len(args) > 1 && dash != 1 {
			return fmt.Errorf("replay takes one REC; another program goes behind --: tapedeck replay %s -- %s", args[0], args[1])
		}
		return runReplay(cmd.Context(), &o, args[0], args[1:], std)
	})
	f := cmd.Flags()
	modeFlag(cmd, &o.mode, "semantic", "what must match")
	f.StringVar(&o.speed, "speed", "collapsed", "collapsed (no waiting), realtime (the head of an answer comes with its first bytes), or N times as fast")
	f.StringVar(&o.Keep, "keep", "", "`directory` that gets the work tree as the replay left it")
	f.StringVarP(&o.Out, "output", "o", "", "`directory` that gets the replay as a recording of its own, unsealed")
	o.define(cmd)
	o.defineStrict(f)
	treeFlag(cmd, &o.tree, "recorded")
	f.StringArrayVar(&o.Watch, "watch", nil, watchHelp)
	f.BoolVar(&o.Screens, "tty", false, "compare the terminal's screens in place of its bytes")
	f.BoolVar(&o.Proxy, "proxy", false, "run the program outside the jail and answer what heeds HTTP_PROXY")
	std.jsonFlag(cmd, "the report as JSON on stdout")
	completeFlag(cmd, "speed", "collapsed", "realtime")
	return cmd
}

func runReplay(ctx context.Context, o *replayOptions, name string, argv []string, std *console) error {
	var err error
	if o.Speed, err = parseSpeed(o.speed); err != nil {
		return err
	}
	if o.Mode, err = parseMode(o.mode); err != nil {
		return err
	}
	if o.TreeNow, o.TreeAt, err = parseTree(o.tree); err != nil {
		return err
	}
	text, err := o.text(std.err)
	if err != nil {
		return err
	}
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

// parseTree reads a --tree.
func parseTree(s string) (now bool, at string, err error) {
	switch s {
	case "recorded":
		return false, "", nil
	case "now":
		return true, "", nil
	}
	if at, err = filepath.Abs(s); err == nil && !recording.IsDir(at) {
		err = fmt.Errorf("--tree %q: want recorded, now, or a directory", s)
	}
	return true, recording.Resolved(at), err
}

func parseSpeed(s string) (float64, error) {
	switch s {
	case "collapsed", "":
		return 0, nil
	case "realtime":
		return 1, nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n <= 0 || n > 1e6 {
		return 0, fmt.Errorf("--speed %q: want collapsed, realtime, or how many times as fast, as in 10", s)
	}
	return n, nil
}

type diffOptions struct {
	verdictFlags
	deck.CompareOptions
	mode string
}

func newDiffCommand(std *console) *cobra.Command {
	var o diffOptions
	cmd := command("diff", "A B", func(cmd *cobra.Command, args []string) error {
		return runDiff(cmd.Context(), &o, args[0], args[1], std)
	})
	f := cmd.Flags()
	modeFlag(cmd, &o.mode, "semantic", "what must match")
	f.BoolVar(&o.Aligned, "aligned", false, "align the records, so that an inserted or moved one reads as one (recordings always are)")
	f.BoolVar(&o.Screens, "tty", false, "compare the screens of two recordings' terminals in place of their bytes")
	f.StringArrayVar(&o.Watch, "watch", nil, watchHelp)
	o.define(cmd)
	o.defineStrict(f)
	std.jsonFlag(cmd, "the report as JSON")
	return cmd
}

func runDiff(ctx context.Context, o *diffOptions, a, b string, std *console) error {
	text, err := o.text(std.out)
	if err != nil {
		return err
	}
	if o.Mode, err = parseMode(o.mode); err != nil {
		return err
	}
	var paths [2]string
	for i, name := range []string{a, b} {
		var clean func()
		if paths[i], clean, err = anyTape(ctx, name, std.progress()); err != nil {
			return err
		}
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
	f := cmd.Flags()
	o.defineColor(cmd)
	o.defineNoColor(cmd)
	o.sideBySide = "auto"
	f.Var((*whenValue)(&o.sideBySide), "side-by-side", "recorded beside replay: auto, always or never")
	f.Lookup("side-by-side").NoOptDefVal = "always"
	f.BoolVar(&o.all, "all", false, "every divergence, whole")
	completeFlag(cmd, "side-by-side", "auto", "always", "never")
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

// whenValue is auto, always or never; text refuses anything else.
type whenValue string

func (v *whenValue) String() string     { return string(*v) }
func (v *whenValue) Set(s string) error { *v = whenValue(s); return nil }
func (v *whenValue) Type() string       { return "WHEN" }

// completeFlag makes a shell offer the values that a flag takes. The flag is there.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// modeFlag defines --mode.
func modeFlag(cmd *cobra.Command, to *string, usual, usage string) {
	cmd.Flags().StringVar(to, "mode", usual, usage+": semantic, outcome, byte-identical or phase-aware")
	completeFlag(cmd, "mode", "semantic", "outcome", "byte-identical", "phase-aware")
}

// parseMode reads a --mode.
func parseMode(s string) (fidelity.Mode, error) {
	mode, err := fidelity.ParseMode(s)
	return mode, prefixedError("--mode", err)
}

// treeFlag defines --tree.
func treeFlag(cmd *cobra.Command, to *string, usual string) {
	cmd.Flags().StringVar(to, "tree", usual, "the work tree that a program finds: recorded, now (as it is on the disk), or a `directory` that holds it now")
	completeFlag(cmd, "tree", "recorded", "now")
}

func (o *verdictFlags) text(w io.Writer) (t *fidelity.TextOptions, err error) {
	t = verdictText(w)
	if t.Color, err = o.colours(w); err != nil {
		return nil, err
	}
	t.All, t.More = o.all, "--all"
	switch o.sideBySide {
	case "auto":
		t.SideBySide = isTerminal(w) && t.Width >= besideWidth && os.Getenv("TERM") != "dumb"
	case "always":
		t.SideBySide = true
	case "never":
	default:
		return nil, fmt.Errorf("--side-by-side %q: want auto, always or never", o.sideBySide)
	}
	return t, nil
}

func verdictText(w io.Writer) *fidelity.TextOptions {
	return &fidelity.TextOptions{Color: colour(w), Width: width(w)}
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
