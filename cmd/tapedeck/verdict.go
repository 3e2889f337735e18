package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

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
	sideBySide string
	noColor    bool
	all        bool
	strict     bool // of two recordings
}

func (o *verdictFlags) define(f *pflag.FlagSet) {
	o.sideBySide = "auto"
	f.Var((*whenValue)(&o.sideBySide), "side-by-side", "recorded beside replay: auto, always or never")
	f.Lookup("side-by-side").NoOptDefVal = "always"
	f.BoolVar(&o.all, "all", false, "every divergence, whole")
	f.BoolVar(&o.noColor, "no-color", false, "no colours")
}

// defineStrict adds --strict.
func (o *verdictFlags) defineStrict(f *pflag.FlagSet) {
	f.BoolVar(&o.strict, "strict", false, "a verdict that leaves a doubt (FAITHFUL, masked), and side traffic that differs, end with 2")
}

// hold prints a report of two recordings and returns what makes the exit status, as --strict wants it.
func (o *verdictFlags) hold(r *fidelity.Report, json bool, out, w io.Writer, text *fidelity.TextOptions) error {
	err := printReport(r, json, out, w, text)
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

// completeVerdict is completeFlag for --mode and the flags of a verdict.
func completeVerdict(cmd *cobra.Command) {
	completeFlag(cmd, "mode", "semantic", "outcome", "byte-identical", "phase-aware")
	completeFlag(cmd, "side-by-side", "auto", "always", "never")
}

// text says how the verdict is written to w.
func (o *verdictFlags) text(w io.Writer) (*fidelity.TextOptions, error) {
	t := verdictText(w)
	t.Color = t.Color && !o.noColor
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

// verdictText says how a verdict is written to w without flags.
func verdictText(w io.Writer) *fidelity.TextOptions {
	return &fidelity.TextOptions{Color: colour(w), Width: width(w)}
}

// printReport writes a report, as JSON to out or as text to w, and returns what makes the exit status.
func printReport(r *fidelity.Report, json bool, out, w io.Writer, o *fidelity.TextOptions) error {
	var err error
	if json {
		err = printJSON(out, r)
	} else {
		err = r.WriteText(w, o)
	}
	if err != nil {
		return err
	}
	return verdictOf(r)
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
