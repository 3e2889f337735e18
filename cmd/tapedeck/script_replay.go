package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

type scriptReplayOptions struct {
	verdictFlags
	limits  limitFlags
	mode    string
	aligned bool
	emit    string
	files   string
	json    bool
}

func newScriptReplayCommand(std streams) *cobra.Command {
	var o scriptReplayOptions
	cmd := withHelp("script replay", &cobra.Command{
		Args: takes("TAPE", "FILE"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return recordingNames(cmd, args, word)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return jsonWhatever(o.json, std, func(std streams) error {
				return runScriptReplay(cmd.Context(), &o, args[0], args[1], std)
			})
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", "semantic", "what must match: semantic, outcome, byte-identical or phase-aware")
	f.BoolVar(&o.aligned, "aligned", false, "align the records, so that an inserted or moved one reads as one")
	f.StringVar(&o.emit, "emit-tape", "", "write the replay's own tape to `TAPE`, over what is there")
	f.StringVar(&o.files, "files", "", "take what the recorded run read from `DIR`, where the tape has hashes alone")
	o.limits.define(f)
	o.define(f)
	f.BoolVar(&o.json, "json", false, "the report as JSON")
	completeVerdict(cmd)
	return cmd
}

func runScriptReplay(ctx context.Context, o *scriptReplayOptions, from, file string, std streams) error {
	mode, err := fidelity.ParseMode(o.mode)
	if err != nil {
		return fmt.Errorf("--mode: %w", err)
	}
	text, err := o.text(std.err)
	if err != nil {
		return err
	}
	limits, err := o.limits.options()
	if err != nil {
		return err
	}
	path, clean, err := anyTape(ctx, from, progressFor(std, o.json))
	if err != nil {
		return err
	}
	defer clean()
	ctx, stop := interruptible(ctx)
	defer stop()
	b, err := testbench.Replay(path, &testbench.Config{Name: file, Emit: o.emit, Files: testbench.Files{Read: o.files}, OwnReadings: mode == fidelity.Outcome})
	if err != nil {
		return suite.Flagged(err)
	}
	program := suite.Program{Path: file, Limits: limits, In: std.in, Out: std.out, Err: std.err}
	if o.json {
		program.Out = std.err
	}
	_, failed := program.Run(ctx, b)
	if suite.LeftBehind(failed) || suite.NeverBegan(failed) || ctx.Err() != nil {
		return scriptError(ctx, failed)
	}
	verdict := b.Verdict
	if o.aligned {
		verdict = b.AlignedVerdict
	}
	report, err := verdict(mode)
	if err != nil {
		return errors.Join(err, failed)
	}
	err = replayed(ctx, report, failed, o.json, std, text)
	if program.IsModule() && mode != fidelity.Outcome && slices.ContainsFunc(report.Refused, isReading) {
		visible.Fprintln(std.err, "tapedeck: the runtime of a module reads clocks and random numbers by itself, which no other program's tape holds: --mode outcome answers them and compares what came of the run")
	}
	return err
}

// isReading reports whether what was refused is a reading of a clock or of random numbers.
func isReading(r fidelity.RequestRef) bool {
	switch r.Method {
	case (*tape.ClockRead)(nil).Name(), (*tape.RandomRead)(nil).Name():
		return true
	}
	return false
}

// replayed prints the verdict. What ended the script tells more than the verdict where the tape answered all that it asked for.
func replayed(ctx context.Context, r *fidelity.Report, failed error, json bool, std streams, text *fidelity.TextOptions) error {
	if failed == nil {
		return printReport(r, json, std.out, std.err, text)
	}
	err := scriptError(ctx, failed)
	verdict := verdictOf(r)
	if status := new(statusError); errors.As(verdict, &status) {
		err = &statusError{status.status, err}
	}
	var unprinted error
	if json {
		unprinted = printJSON(std.out, failedReport{r, failureOf(err)})
	} else {
		unprinted = r.WriteText(std.err, text)
	}
	if unprinted != nil {
		return unprinted
	}
	if verdict == nil || len(r.Refused) == 0 {
		return err
	}
	if place := suite.Place(failed); place != "" { // which the verdict has told, but for the place
		visible.Fprintf(std.err, "tapedeck: the call that the tape does not answer is at %s\n", place)
	}
	return verdict
}
