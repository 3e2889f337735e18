package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

func newSessionCheckCommand(std streams) *cobra.Command {
	var json bool
	cmd := withHelp("session check", &cobra.Command{
		Args:              takes("FILE"),
		ValidArgsFunction: sessionNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSessionCheck(cmd.Context(), args[0], json, std)
		},
	})
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
