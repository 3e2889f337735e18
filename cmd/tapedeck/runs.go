package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// runsOptions say where runs are read: from a daemon, or from the files that one keeps.
type runsOptions struct {
	daemon    string
	data      string
	tokenFile string
}

func newRunsCommand(std streams) *cobra.Command {
	var o runsOptions
	cmd := withHelp("runs", &cobra.Command{
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	})
	f := cmd.PersistentFlags()
	f.StringVar(&o.daemon, "daemon", "", "`URL` of the daemon: ws://HOST:PORT or unix:PATH (default: $TAPEDECK_DAEMON, else "+defaultDaemon+")")
	f.StringVar(&o.data, "data", "", "read the files of this data `directory` in place of asking a daemon")
	f.StringVar(&o.tokenFile, "token-file", "", "`file` with the host's token (default: where the daemon of that address keeps it)")
	cmd.AddCommand(
		newRunsListCommand(&o, std), newRunsShowCommand(&o, std), newRunsWatchCommand(&o, std), newRunsExportCommand(&o, std),
	)
	return cmd
}

// runNames completes RUN: the runs that there are, newest first, each with what it is for.
func runNames(o *runsOptions) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		if len(args) > 0 {
			return nil, none
		}
		runs, err := completed(o)
		if err != nil {
			return nil, none
		}
		out := []string{"last"}
		for _, r := range runs {
			out = append(out, cobra.CompletionWithDesc(r.RunID, completionText(r.Intent)))
		}
		return out, none
	}
}

// agentNames completes --agent.
func agentNames(o *runsOptions) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		runs, err := completed(o)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		seen := map[string]bool{}
		for _, r := range runs {
			if !seen[r.AgentID] {
				seen[r.AgentID] = true
				out = append(out, r.AgentID)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completed are the runs to complete from. A shell does not wait long.
func completed(o *runsOptions) ([]runInfo, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	src, err := o.open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	return src.Runs(ctx, "", 0)
}

var errBoth = errors.New("--daemon and --data each say where the runs are: leave one out")

// completionText is what a run is for, as a shell shows it beside the id.
func completionText(intent string) string {
	r := []rune(strings.Join(strings.Fields(visible.Line(intent)), " "))
	return string(r[:min(len(r), 60)])
}
