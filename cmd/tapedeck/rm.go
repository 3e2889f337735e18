package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newRmCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("rm", &cobra.Command{
		Args:              takes("REC…"),
		ValidArgsFunction: recordingNames,
		RunE:              func(_ *cobra.Command, args []string) error { return runRm(args, json, std) },
	})
	cmd.Flags().BoolVar(&json, "json", false, "what was deleted as JSON")
	return cmd
}

func runRm(names []string, json bool, std streams) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	entries, err := entriesOf(lib, names)
	if err != nil {
		return err
	}
	var removed []string
	left, logged := make(map[string]string), make(map[string]string) // by id
	var errs []error
	step, done := progressFor(std, json).counted("removing recordings")
	for i, e := range entries {
		step(int64(i+1), int64(len(entries)))
		r, err := lib.Remove(e)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, r.ID)
		if r.Left != "" {
			left[r.ID] = r.Left
		}
		if r.Log != "" {
			logged[r.ID] = r.Log
		}
	}
	done()
	if json {
		errs = append(errs, printJSON(std.out, map[string]any{"removed": nonNil(removed), "left": left, "logged": logged}))
		return errors.Join(errs...)
	}
	sayRemoved(std, removed, left, logged)
	return errors.Join(errs...)
}

// entriesOf returns the recordings of these names, each once.
func entriesOf(lib *library.Library, names []string) (entries []*library.Entry, err error) {
	for _, name := range names {
		e, err := lib.Entry(name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(entries, func(have *library.Entry) bool { return have.Path == e.Path }) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// sayRemoved says what was removed, what of each was left, and which log lists it, by its id.
func sayRemoved(std streams, removed []string, left, logged map[string]string) {
	for _, id := range removed {
		line := "tapedeck: removed " + id
		if left[id] != "" {
			line += ": " + left[id]
		}
		if logged[id] != "" {
			line += fmt.Sprintf("; it stands in the log %s, and tapedeck seal log verify will say that it is gone", shortPath(logged[id]))
		}
		visible.Fprintln(std.err, line)
	}
}
