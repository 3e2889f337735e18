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
	cmd := &cobra.Command{
		Use:   "quickstart",
		Short: "Record a small agent, replay it green, change it, see the red verdict",
		Long: `Needs no key and no network. Records a small agent against a scripted endpoint that speaks the Anthropic wire
format, takes the endpoint away, replays the run, then replays it with another prompt to show a divergence and its cause.
Where no jail can be made it does so with --proxy.

Exit status: 0 all of that happened as it should, 1 it did not.`,
		Example: `  tapedeck quickstart
  tapedeck quickstart --dir /tmp/tour && cd /tmp/tour && tapedeck show last`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runQuickstart(cmd.Context(), &o, std) },
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "work in this `directory` and leave it (default: a temporary one)")
	cmd.Flags().BoolVar(&o.json, "json", false, "what came of it as JSON on stdout, its recording null without --dir; the tour itself on stderr")
	cmd.AddCommand(newQuickstartAgentCommand(std), newQuickstartEndpointCommand(std))
	return cmd
}

// newQuickstartAgentCommand is the agent that quickstart records: a program of its own as far as the recorder can tell.
func newQuickstartAgentCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "agent PROMPT",
		Short: "The small agent that quickstart records",
		Long: `A tool-calling agent of two hundred lines: Anthropic messages with streaming, and tools that read and write
files in the working directory. It knows nothing of being recorded. Its key is ANTHROPIC_API_KEY, and its endpoint
ANTHROPIC_BASE_URL where that is set.

Exit status: 0 it came to an answer, 1 it did not.`,
		Example: `  tapedeck record -- tapedeck quickstart agent "write hello.txt"`,
		Args:    takes("PROMPT"),
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
	}
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
