package main

import (
	"github.com/spf13/cobra"
)

func newScriptCommand(std streams) *cobra.Command {
	cmd := withHelp("script", &cobra.Command{
		SuggestFor: []string{"test"},
		Args:       knownCommand,
		RunE:       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	})
	cmd.AddCommand(
		newScriptRunCommand(std), newScriptReplayCommand(std), newScriptFidelityCommand(std), newScriptNewCommand(std), newScriptFixtureCommand(std),
	)
	return cmd
}
