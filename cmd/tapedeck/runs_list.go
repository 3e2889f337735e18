package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/runview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

type runsListOptions struct {
	agent  string
	status string
	limit  int
	json   bool
}

var runStatuses = []string{string(runtrace.InProgress), string(runtrace.Completed), string(runtrace.Incomplete)}

func newRunsListCommand(from *runsOptions, std streams) *cobra.Command {
	var o runsListOptions
	cmd := withHelp("runs list", &cobra.Command{
		SuggestFor:        []string{"ls"},
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runRunsList(cmd.Context(), from, &o, std) },
	})
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "only runs of this `agent`, by its id")
	f.StringVar(&o.status, "status", "", "only runs with this `status`: "+strings.Join(runStatuses, ", "))
	f.IntVarP(&o.limit, "limit", "n", 0, "at most so `many` of the newest (default: all)")
	f.BoolVar(&o.json, "json", false, "the list as JSON")
	_ = cmd.RegisterFlagCompletionFunc("agent", agentNames(from))
	completeFlag(cmd, "status", runStatuses...)
	return cmd
}

func (o *runsListOptions) check() error {
	switch {
	case o.limit < 0:
		return fmt.Errorf("--limit %d: want how many runs to list", o.limit)
	case o.status != "" && !slices.Contains(runStatuses, o.status):
		return fmt.Errorf("--status %q: want one of %s", o.status, strings.Join(runStatuses, ", "))
	}
	return nil
}

func runRunsList(ctx context.Context, from *runsOptions, o *runsListOptions, std streams) error {
	if err := o.check(); err != nil {
		return err
	}
	return from.with(ctx, std, func(ctx context.Context, src runSource) error { return o.list(ctx, src, std) })
}

func (o *runsListOptions) list(ctx context.Context, src runSource, std streams) error {
	runs, err := o.runs(ctx, src)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(std.out, map[string]any{"source": src.Name(), "runs": runs})
	}
	if len(runs) == 0 {
		return o.none(src, std)
	}
	return raw(std.out, "%s", runTable(runs, time.Now(), colour(std.out), columnsOf(std)))
}

// runs are those that the flags choose.
func (o *runsListOptions) runs(ctx context.Context, src runSource) ([]runInfo, error) {
	limit := o.limit
	if o.status != "" {
		limit = 0
	}
	runs, err := src.Runs(ctx, o.agent, limit)
	if err != nil {
		return nil, err
	}
	if o.status != "" {
		runs = slices.DeleteFunc(runs, func(r runInfo) bool { return r.Status != o.status })
	}
	if o.limit > 0 && len(runs) > o.limit {
		runs = runs[:o.limit]
	}
	if runs == nil {
		runs = []runInfo{}
	}
	return runs, nil
}

func (o *runsListOptions) none(src runSource, std streams) error {
	what := "no runs yet"
	if o.agent != "" || o.status != "" {
		what = "no run fits; `tapedeck runs list` without flags shows all"
	}
	_, err := visible.Fprintf(std.err, "tapedeck: %s: %s\n", src.Name(), errors.New(what))
	return err
}

// columnsOf is the width of stdout where it is a terminal, -1 for any elsewhere.
func columnsOf(std streams) int {
	if !isTerminal(std.out) {
		return -1
	}
	return width(std.out)
}

// runTable is a list of runs for people.
func runTable(runs []runInfo, now time.Time, colour bool, cols int) string {
	rows := make([]runview.ListRow, len(runs))
	for i, r := range runs {
		rows[i] = runview.ListRow{
			Run: r.RunID, Agent: r.AgentID, Intent: r.Intent, Status: r.Status, Turns: r.TurnCount, Started: r.StartedAt.In(now.Location()),
		}
		if r.EndedAt != nil {
			rows[i].Ended = r.EndedAt.In(now.Location())
		}
	}
	return runview.List(rows, now, colour, cols)
}
