package main

import (
	"runtime"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func newVersionCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("version", &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if json {
				return printJSON(std.out, map[string]any{
					"tapedeck": recording.Version, "tape_format": tape.Version, "recording_format": recording.ManifestFormat,
					"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			_, err := visible.Fprintf(std.out, "%s (tape format %d, recording format %d, %s %s/%s)\n",
				recording.Producer, tape.Version, recording.ManifestFormat, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	})
	cmd.Flags().BoolVar(&json, "json", false, "the versions as JSON")
	return cmd
}
