package main

import "github.com/spf13/cobra"

func newMCPCommand(std streams) *cobra.Command {
	cmd := withHelp("mcp", &cobra.Command{
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	})
	cmd.AddCommand(newMCPServeCommand(std), newMCPWrapCommand(std))
	return cmd
}
