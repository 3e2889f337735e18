package main

import (
	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newRestoreCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("restore", &cobra.Command{
		Args:              takes("REC", "DIR"),
		ValidArgsFunction: recordingNames,
		RunE: func(_ *cobra.Command, args []string) error {
			return runRestore(args[0], args[1], json, std)
		},
	})
	cmd.Flags().BoolVar(&json, "json", false, "what was left out as JSON")
	return cmd
}

func runRestore(name, dir string, json bool, std streams) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	done := progressFor(std, json).busy("restoring")
	left, err := derive.Restore(rec, dir)
	done()
	if err != nil {
		return err
	}
	if json {
		return printJSON(std.out, map[string]any{"directory": dir, "left_out": nonNil(left)})
	}
	for _, path := range left {
		visible.Fprintf(std.err, "tapedeck: left out, it holds a secret: %s\n", path)
	}
	sayOtherKey(rec, len(left), std)
	_, err = visible.Fprintf(std.err, "tapedeck: restored into %s\n", dir)
	return err
}

// sayOtherKey says of a recording some of whose files held secrets that this machine has not the key which tells them.
func sayOtherKey(rec *recording.Recording, files int, std streams) {
	if files == 0 {
		return
	}
	if said := rec.OtherKey(""); said != "" {
		visible.Fprintf(std.err, "tapedeck: %s\n", said)
	}
}
