package main

import "github.com/spf13/cobra"

func newMCPCommand(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Record one MCP server, and answer for recorded ones",
		Long: `An agent in the jail is recorded with its MCP servers, without any of this. wrap records one server outside the jail, from a line in
the configuration of whatever client; serve answers any client from a recording, with the server gone. docs/mcp.md is a guide.`,
		Example: `  tapedeck mcp wrap -- npx -y @modelcontextprotocol/server-filesystem .
  tapedeck mcp serve last`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMCPServeCommand(std), newMCPWrapCommand(std))
	return cmd
}
