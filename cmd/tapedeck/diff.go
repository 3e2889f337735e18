package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

type diffOptions struct {
	verdictFlags
	mode    string
	aligned bool
	watch   []string
	tty     bool
	json    bool
}

func newDiffCommand(std streams) *cobra.Command {
	var o diffOptions
	cmd := withHelp("diff", &cobra.Command{
		Args:              takes("A", "B"),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDiff(cmd.Context(), &o, args[0], args[1], std)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", "semantic", "what must match: semantic, outcome, byte-identical or phase-aware")
	f.BoolVar(&o.aligned, "aligned", false, "align the records, so that an inserted or moved one reads as one (recordings always are)")
	f.BoolVar(&o.tty, "tty", false, "compare the screens of two recordings' terminals in place of their bytes")
	f.StringArrayVar(&o.watch, "watch", nil, watchHelp)
	o.define(f)
	o.defineStrict(f)
	f.BoolVar(&o.json, "json", false, "the report as JSON")
	completeVerdict(cmd)
	return cmd
}

func runDiff(ctx context.Context, o *diffOptions, a, b string, std streams) error {
	mode, err := fidelity.ParseMode(o.mode)
	if err != nil {
		return fmt.Errorf("--mode: %w", err)
	}
	text, err := o.text(std.out)
	if err != nil {
		return err
	}
	var paths [2]string
	for i, name := range []string{a, b} {
		var clean func()
		if paths[i], clean, err = anyTape(ctx, name, progressFor(std, o.json)); err != nil {
			return err
		}
		defer clean()
	}
	stop := progressFor(std, o.json).busy("comparing")
	r, err := deck.Compare(paths[0], paths[1], &deck.CompareOptions{Mode: mode, Aligned: o.aligned, Watch: o.watch, Screens: o.tty})
	stop()
	if err != nil {
		return err
	}
	return o.hold(r, o.json, std.out, std.out, text)
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
