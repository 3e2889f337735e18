package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

type diffOptions struct {
	mode    string
	aligned bool
	json    bool
}

func newDiffCommand(std streams) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two recordings or two bare tapes",
		Long: `Two recordings compare lane by lane, two bare tapes (files) by position. A is what was recorded, B what is
held against it.

Exit status: 0 faithful, 2 diverged, 1 it could not compare.`,
		Example: `  tapedeck diff last before-the-change
  tapedeck diff a.tape b.tape --aligned
  tapedeck diff a.tape b.tape --mode byte-identical --json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: recordingNames,
		RunE:              func(_ *cobra.Command, args []string) error { return runDiff(&o, args[0], args[1], std) },
	}
	cmd.Flags().StringVar(&o.mode, "mode", "semantic", "what must match: byte-identical, semantic, outcome or phase-aware")
	cmd.Flags().BoolVar(&o.aligned, "aligned", false, "align two bare tapes, so that one inserted record reads as one")
	cmd.Flags().BoolVar(&o.json, "json", false, "the report as JSON")
	return cmd
}

func runDiff(o *diffOptions, a, b string, std streams) error {
	mode, err := fidelity.ParseMode(o.mode)
	if err != nil {
		return fmt.Errorf("--mode: %w", err)
	}
	var paths [2]string
	for i, name := range []string{a, b} {
		if paths[i], err = tapeOrRecording(name); err != nil {
			return err
		}
	}
	r, err := deck.Compare(paths[0], paths[1], &deck.CompareOptions{Mode: mode, Aligned: o.aligned})
	if err != nil {
		return err
	}
	return printVerdict(r, o.json, std.out, std.out)
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
