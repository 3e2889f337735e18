package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newManCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("man", &cobra.Command{
		Args: takes("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			head := &doc.GenManHeader{Title: "TAPEDECK", Section: "1", Source: "tapedeck", Manual: "Tapedeck"}
			if err := doc.GenManTree(cmd.Root(), head, args[0]); err != nil {
				return err
			}
			if json {
				return printJSON(std.out, map[string]any{"directory": args[0]})
			}
			_, err := visible.Fprintf(std.err, "tapedeck: manual pages written into %s\n", args[0])
			return err
		},
	})
	cmd.Flags().BoolVar(&json, "json", false, "where they lie as JSON")
	return cmd
}
