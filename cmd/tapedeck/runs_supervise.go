package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
)

var decisions = []string{rpcapi.DecisionAllow, rpcapi.DecisionDeny, rpcapi.DecisionEscalate}

// withDaemon does something as the host of a daemon, which files cannot stand in for.
func (o *runsOptions) withDaemon(ctx context.Context, do func(context.Context, *daemonRuns) error) error {
	if o.data != "" {
		return errors.New("--data: files decide nothing: ask the daemon")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	d, err := o.dial(ctx, 0)
	if err != nil {
		return interruptedIs130(err)
	}
	defer d.Close()
	return interruptedIs130(do(ctx, d))
}

func newRunsPendingCommand(from *runsOptions, std streams) *cobra.Command {
	var asJSON bool
	cmd := withHelp("runs pending", &cobra.Command{
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return from.withDaemon(cmd.Context(), func(ctx context.Context, d *daemonRuns) error {
				list, err := d.c.Pending(ctx)
				switch {
				case err != nil:
					return d.wrap(err)
				case asJSON:
					return printJSON(std.out, map[string]any{"intents": list})
				}
				return writeIntents(std, list)
			})
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "the list as JSON")
	return cmd
}

func writeIntents(std streams, list []rpcapi.Intent) error {
	if len(list) == 0 {
		visible.Fprintln(std.err, "tapedeck: nothing waits for a decision")
	}
	for i := range list {
		if err := raw(std.out, "%s", intentText(&list[i])); err != nil {
			return err
		}
	}
	return nil
}

// writeIntent writes an intent as an object on a line.
func writeIntent(std streams, in *rpcapi.Intent) error {
	b, err := marshal(struct {
		Version int `json:"version"`
		*rpcapi.Intent
	}{jsonVersion, in})
	if err != nil {
		return err
	}
	return raw(std.out, "%s\n", json.RawMessage(bytes.TrimSpace(b)))
}

// intentText is an intent for people: its id and who it is of, and each action with the names of its parameters.
func intentText(in *rpcapi.Intent) string {
	var b strings.Builder
	visible.Fprintf(&b, "%s  %s  %s left", in.IntentID, in.AgentID, max(0, time.Until(in.Deadline)).Round(time.Second))
	if in.Reason != "" {
		visible.Fprintf(&b, "  %s: %s", strings.Join(in.Policies, ", "), in.Reason)
	}
	if in.Escalated != "" {
		visible.Fprintf(&b, "  %s", in.Escalated)
	}
	b.WriteByte('\n')
	for _, a := range in.Actions {
		what := a.Tool
		if what == "" {
			what = a.Type
		}
		visible.Fprintf(&b, "    %s(%s)  parameters %.12s\n", what, strings.Join(a.ParameterKeys, ", "), a.ParamsDigest)
	}
	return b.String()
}

func newRunsDecideCommand(from *runsOptions, std streams) *cobra.Command {
	var reason string
	cmd := withHelp("runs decide", &cobra.Command{
		Args: takes("INTENT", strings.Join(decisions, "|")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return decisions, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(decisions, args[1]) {
				return fmt.Errorf("%q: want one of %s", args[1], strings.Join(decisions, ", "))
			}
			return from.withDaemon(cmd.Context(), func(ctx context.Context, d *daemonRuns) error {
				id, err := d.intent(ctx, args[0])
				if err == nil {
					_, err = d.c.Decide(ctx, id, rpcapi.Decision{Kind: args[1], Reason: reason})
				}
				if err != nil {
					return d.wrap(err)
				}
				_, err = visible.Fprintf(std.out, "%s  %s\n", id, args[1])
				return err
			})
		},
	})
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that the agent and the trace are told")
	return cmd
}

// intent is the id of the one that begins with name.
func (d *daemonRuns) intent(ctx context.Context, name string) (string, error) {
	list, err := d.c.Pending(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, in := range list {
		if strings.HasPrefix(in.IntentID, name) || strings.HasPrefix(strings.TrimPrefix(in.IntentID, "intent-"), name) {
			found = append(found, in.IntentID)
		}
	}
	switch len(found) {
	case 0:
		return "", &noRunError{fmt.Sprintf("nothing that waits begins with %q: it was decided, or its time is over", name), "`tapedeck runs pending` lists what waits"}
	case 1:
		return found[0], nil
	}
	return "", &noRunError{fmt.Sprintf("%q is the beginning of %d that wait", name, len(found)), "name it by its whole id"}
}

type runsSuperviseOptions struct {
	filter rpcapi.SupervisionFilter
	json   bool
}

func newRunsSuperviseCommand(from *runsOptions, std streams) *cobra.Command {
	var o runsSuperviseOptions
	cmd := withHelp("runs supervise", &cobra.Command{
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return from.withDaemon(cmd.Context(), func(ctx context.Context, d *daemonRuns) error { return o.run(ctx, d, std) })
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.filter.AgentID, "agent", "", "only proposals of this `agent`")
	f.StringSliceVar(&o.filter.Tools, "tool", nil, "only proposals that call this `tool` (repeatable, or with commas)")
	f.BoolVar(&o.json, "json", false, "each intent as a JSON object on a line; it asks nothing")
	_ = cmd.RegisterFlagCompletionFunc("agent", agentNames(from))
	return cmd
}

// run gives what waits, until it is interrupted; on a terminal it asks about each.
func (o *runsSuperviseOptions) run(ctx context.Context, d *daemonRuns, std streams) error {
	intents, err := d.c.Supervise(ctx, &o.filter)
	if err != nil {
		return d.wrap(err)
	}
	var answers <-chan string
	if !o.json && isTerminal(std.in) {
		visible.Fprintln(std.err, "tapedeck: waiting for proposals; ^C ends it")
		answers = linesOf(std)
	}
	for in, err := range intents {
		switch {
		case err != nil:
			return d.wrap(err)
		case o.json:
			err = writeIntent(std, &in)
		case answers == nil:
			err = raw(std.out, "%s", intentText(&in))
		default:
			err = ask(ctx, d, &in, answers, std)
		}
		if errors.Is(err, io.EOF) { // who decides has gone
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// linesOf are the lines of stdin, until it ends; the goroutine that reads them ends with the process.
func linesOf(std streams) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(std.in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

// decisionOf is the decision that a key or a word stands for; "" for none.
func decisionOf(key string) string {
	switch strings.ToLower(key) {
	case "y", "yes", "a", rpcapi.DecisionAllow:
		return rpcapi.DecisionAllow
	case "n", "no", "d", rpcapi.DecisionDeny:
		return rpcapi.DecisionDeny
	case "e", rpcapi.DecisionEscalate:
		return rpcapi.DecisionEscalate
	}
	return ""
}

// ask has a person decide: y, n or e, and a reason behind it.
func ask(ctx context.Context, d *daemonRuns, in *rpcapi.Intent, answers <-chan string, std streams) error {
	for {
		if err := raw(std.out, "%s  y allow, n deny, e escalate; a reason may follow: ", intentText(in)); err != nil {
			return err
		}
		var line string
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(in.Deadline)):
			return raw(std.out, "\n  its time is over\n")
		case text, ok := <-answers:
			if !ok {
				return io.EOF
			}
			line = text
		}
		key, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind := decisionOf(key)
		if kind == "" {
			continue
		}
		if _, err := d.c.Decide(ctx, in.IntentID, rpcapi.Decision{Kind: kind, Reason: strings.TrimSpace(reason)}); err != nil {
			visible.Fprintf(std.err, "tapedeck: %v\n", err)
		}
		return ctx.Err()
	}
}
