package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newRmCommand(std streams) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "rm REC…",
		Short: "Delete recordings",
		Long: `Deletes each recording with everything in it. All are looked up before the first is deleted. One that is being
made is refused.

Exit status: 0 done, 1 failed.`,
		Example: `  tapedeck rm last
  tapedeck rm 20261121-0900 20261121-1015`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: recordingNames,
		RunE:              func(_ *cobra.Command, args []string) error { return runRm(args, json, std) },
	}
	cmd.Flags().BoolVar(&json, "json", false, "what was deleted as JSON")
	return cmd
}

func runRm(names []string, json bool, std streams) error {
	lib, err := library()
	if err != nil {
		return err
	}
	var entries []*deck.Entry
	for _, name := range names {
		e, err := lib.Entry(name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(entries, func(have *deck.Entry) bool { return have.Path == e.Path }) {
			entries = append(entries, e)
		}
	}
	var removed []string
	var errs []error
	for _, e := range entries {
		id, err := lib.Remove(e)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, id)
	}
	if json {
		errs = append(errs, printJSON(std.out, map[string]any{"removed": nonNil(removed)}))
	} else {
		for _, id := range removed {
			visible.Fprintf(std.err, "tapedeck: removed %s\n", id)
		}
	}
	return errors.Join(errs...)
}
