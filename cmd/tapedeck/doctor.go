package main

import (
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func newDoctorCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("doctor", &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runDoctor(json, std) },
	})
	cmd.Flags().BoolVar(&json, "json", false, "the findings as JSON")
	return cmd
}

func runDoctor(json bool, std streams) error {
	d := deck.Diagnose()
	return printVerdict(std, json, d.Works, d, func() error { return printDiagnosis(d, std) })
}

func printDiagnosis(d *deck.Diagnosis, std streams) error {
	w := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	for _, c := range d.Checks {
		state := "ok"
		switch {
		case !c.OK && c.Evidence:
			state = "less"
		case !c.OK:
			state = "MISSING"
		}
		visible.Fprintf(w, "%s\t%s\t%s\n", state, c.Name, c.Detail)
		if !c.OK && c.Cost != "" {
			visible.Fprintf(w, "\t\t%s\n", c.Cost)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range d.Notes {
		visible.Fprintf(std.out, "note: %s\n", n)
	}
	for _, n := range d.NotHeld {
		visible.Fprintf(std.out, "not held: %s\n", n)
	}
	verdict := "record and replay work here"
	if !d.Works {
		verdict = "record and replay do not work here: see what is MISSING above"
	}
	_, err := visible.Fprintln(std.out, verdict)
	return err
}

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
