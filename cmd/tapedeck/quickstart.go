package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/demoagent"
)

type quickstartOptions struct {
	dir  string
	json bool
}

func newQuickstartCommand(std streams) *cobra.Command {
	var o quickstartOptions
	cmd := withHelp("quickstart", &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runQuickstart(cmd.Context(), &o, std) },
	})
	cmd.Flags().StringVar(&o.dir, "dir", "", "work in this `directory` and leave it (default: a temporary one)")
	cmd.Flags().BoolVar(&o.json, "json", false, "what came of it as JSON on stdout, its recording null without --dir; the tour itself on stderr")
	cmd.AddCommand(newQuickstartAgentCommand(std), newQuickstartEndpointCommand(std))
	return cmd
}

// newQuickstartAgentCommand is the agent that quickstart records: a program of its own as far as the recorder can tell.
func newQuickstartAgentCommand(std streams) *cobra.Command {
	return withHelp("quickstart agent", &cobra.Command{
		Args: takes("PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			status := demoagent.Run(cmd.Context(), &demoagent.Options{
				Prompt: args[0], APIKey: os.Getenv("ANTHROPIC_API_KEY"), BaseURL: os.Getenv("ANTHROPIC_BASE_URL"),
				Stdout: std.out, Stderr: std.err,
			})
			if status != 0 {
				return &statusError{status: status}
			}
			return nil
		},
	})
}

func runQuickstart(ctx context.Context, o *quickstartOptions, std streams) error {
	shown := std
	if o.json {
		shown.out = std.err
	}
	tour, err := newTour(o.dir, shown)
	if err != nil {
		return err
	}
	defer tour.close()
	if err := tour.run(ctx); err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	if o.json {
		return printJSON(std.out, map[string]any{"recording": tour.left(), "unchanged": tour.green, "changed": tour.red})
	}
	return nil
}
