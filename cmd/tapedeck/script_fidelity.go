package main

import (
	"github.com/spf13/cobra"
)

func newScriptFidelityCommand(std streams) *cobra.Command {
	o := diffOptions{}
	cmd := withHelp("script fidelity", &cobra.Command{
		Args:              takes("A", "B"),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return jsonWhatever(o.json, std, func(std streams) error { return runDiff(cmd.Context(), &o, args[0], args[1], std) })
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", "semantic", "what must match: semantic, outcome, byte-identical or phase-aware")
	f.BoolVar(&o.aligned, "aligned", false, "align the records, so that an inserted or moved one reads as one")
	o.define(f)
	f.BoolVar(&o.json, "json", false, "the report as JSON")
	completeVerdict(cmd)
	return cmd
}
