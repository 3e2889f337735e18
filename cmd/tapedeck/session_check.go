package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

func newSessionCheckCommand(std streams) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check that every kernel event of a session log carries its category",
		Long: `Reads the whole log and checks that every kernel event carries the category that the taxonomy has for its kind (those of
memory need none), and names the first that does not, by its line. Newer producers leave categories to the taxonomy: their logs
load all the same, and do not pass. What is odd about the order of the entries is said, and does not count.

Exit status: 0 passed, 2 an event does not carry its category, 1 the log could not be read.`,
		Example: `  tapedeck session check session.jsonl
  tapedeck session check - --json < session.jsonl`,
		Args:              takes("FILE"),
		ValidArgsFunction: sessionNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSessionCheck(cmd.Context(), args[0], json, std)
		},
	}
	cmd.Flags().BoolVar(&json, "json", false, "as JSON")
	return cmd
}

func runSessionCheck(ctx context.Context, name string, json bool, std streams) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, json)
	log, err := openSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer log.Close()
	c, err := sessionlog.CheckCategories(log.Reader)
	p.end()
	if err != nil {
		return orInterrupted(err)
	}
	if json {
		err = printJSON(std.out, c)
	} else {
		err = writeCheck(std, log.name, c)
	}
	log.tell(std)
	if order := log.Order(); order.First != nil {
		visible.Fprintf(std.err, "tapedeck: the numbers are not in order: %s\n", order.First.String())
	}
	if err == nil && !c.Passed {
		err = &statusError{status: statusDiverged}
	}
	return err
}

func writeCheck(std streams, name string, c *sessionlog.CategoryCheck) error {
	if c.Passed {
		_, err := visible.Fprintf(std.out, "%s: %s, %s with a category: passed\n", name, plural(c.Events, "event", "events"),
			plural(c.Kernel, "kernel event", "kernel events"))
		return err
	}
	_, err := visible.Fprintf(std.out, "%s: %d of %s without its category; the first: %s\n", name, c.Offenders,
		plural(c.Kernel, "kernel event", "kernel events"), c.First.String())
	return err
}
