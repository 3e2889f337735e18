package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
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

func newRunsPendingCommand(from *runsOptions, std *console) *cobra.Command {
	cmd := command("runs pending", "", func(cmd *cobra.Command, _ []string) error {
		return from.withDaemon(cmd.Context(), func(ctx context.Context, d *daemonRuns) error {
			list, err := d.c.Pending(ctx)
			switch {
			case err != nil:
				return d.wrap(err)
			case std.json:
				return printJSON(std.out, map[string]any{"intents": list})
			}
			return writeIntents(std, list)
		})
	})
	std.jsonFlag(cmd, "the list as JSON")
	return cmd
}

func writeIntents(std *console, list []rpcapi.Intent) error {
	if len(list) == 0 {
		std.say("nothing waits for a decision")
	}
	for i := range list {
		if err := raw(std.out, "%s", intentText(&list[i])); err != nil {
			return err
		}
	}
	return nil
}

// quoted are names, those in quotes that hold more than letters, digits, '_', '-' and '.': a name cannot pass for what stands behind it.
func quoted(names []string) []string {
	out := slices.Clone(names)
	for i, n := range out {
		if strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" || n == "" {
			out[i] = strconv.Quote(n)
		}
	}
	return out
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
		visible.Fprintf(&b, "    %s(%s)  parameters %.12s\n", what, strings.Join(quoted(a.ParameterKeys), ", "), a.ParamsDigest)
	}
	return b.String()
}

func newRunsDecideCommand(from *runsOptions, std *console) *cobra.Command {
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
}

func newRunsSuperviseCommand(from *runsOptions, std *console) *cobra.Command {
	var o runsSuperviseOptions
	cmd := command("runs supervise", "", func(cmd *cobra.Command, _ []string) error {
		return from.withDaemon(cmd.Context(), func(ctx context.Context, d *daemonRuns) error { return o.run(ctx, d, std) })
	})
	f := cmd.Flags()
	f.StringVar(&o.filter.AgentID, "agent", "", "only proposals of this `agent`")
	f.StringSliceVar(&o.filter.Tools, "tool", nil, "only proposals that call this `tool` (repeatable, or with commas)")
	std.jsonFlag(cmd, "each intent as a JSON object on a line; it asks nothing")
	_ = cmd.RegisterFlagCompletionFunc("agent", agentNames(from))
	return cmd
}

// run gives what waits, until it is interrupted; on a terminal it asks about each.
func (o *runsSuperviseOptions) run(ctx context.Context, d *daemonRuns, std *console) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	intents, err := d.c.Supervise(ctx, &o.filter)
	if err != nil {
		return d.wrap(err)
	}
	var p *prompter
	if caller := terminal.NewCaller([3]any{std.in, nil, nil}); !std.json && isTerminal(std.in) && caller != nil {
		std.say("waiting for proposals; ^C ends it")
		p = &prompter{d: d, std: std, caller: caller, ended: func() { end(io.EOF) }}
		if err := p.listen(); err != nil {
			return err
		}
		defer func() {
			if p.stop != nil {
				p.stop()
			}
		}()
	}
	for in, err := range intents {
		switch {
		case err != nil:
			err = d.wrap(err)
		case std.json:
			err = printLine(std.out, &in)
		case p == nil:
			err = raw(std.out, "%s", intentText(&in))
		default:
			err = p.ask(ctx, &in)
		}
		if errors.Is(context.Cause(ctx), io.EOF) { // who decides has gone
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// A prompter asks a person about one intent after another.
type prompter struct {
	d      *daemonRuns
	std    *console
	caller *terminal.Caller
	ended  func() // called when the terminal is gone

	stop  func()        // ends the reading of lines
	lines <-chan string // those that were typed since listen
}

// listen reads what is typed from now on: an answer belongs to what was asked before it was typed. So what was typed before, and not
// read yet, is dropped.
func (p *prompter) listen() error {
	if p.stop != nil {
		p.stop()
		p.stop = nil
		p.caller.DropKeys()
	}
	var typed []byte // of a line
	lines, stop, err := heard(p.caller, func(b []byte) (lines []string) {
		if b == nil {
			p.ended()
		}
		for typed = append(typed, b...); ; {
			text, rest, whole := bytes.Cut(typed, []byte("\n"))
			if !whole {
				return lines
			}
			lines, typed = append(lines, string(text)), rest
		}
	})
	if err != nil {
		return err
	}
	p.lines, p.stop = lines, stop
	return nil
}

// stillEvery is how often it is looked whether what a person is asked about waits yet.
const stillEvery = time.Second

// ask has a person decide: y, n or e, and a reason behind it. What ends meanwhile is said, and the next comes when the person has seen that:
// an answer to one is never taken for another.
func (p *prompter) ask(ctx context.Context, in *rpcapi.Intent) error {
	if waits, err := p.waits(ctx, in); err != nil || !waits {
		return err
	}
	if err := p.listen(); err != nil {
		return err
	}
	still := time.NewTicker(stillEvery)
	defer still.Stop()
	if err := raw(p.std.out, "%s", intentText(in)); err != nil {
		return err
	}
	for prompt := true; ; {
		if prompt {
			if err := raw(p.std.out, "  y allow, n deny, e escalate; a reason may follow: "); err != nil {
				return err
			}
		}
		prompt = false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-still.C:
			waits, err := p.waits(ctx, in)
			if err != nil {
				return err
			}
			if !waits {
				return p.seen(ctx, "\n  it was decided elsewhere, or its time is over: Enter goes on\n")
			}
		case typed := <-p.lines:
			key, reason, _ := strings.Cut(strings.TrimSpace(typed), " ")
			kind := decisionOf(key)
			if kind == "" {
				prompt = true
				continue
			}
			if _, err := p.d.c.Decide(ctx, in.IntentID, rpcapi.Decision{Kind: kind, Reason: strings.TrimSpace(reason)}); err != nil {
				visible.Fprintf(p.std.err, "tapedeck: %v\n", err)
			}
			return ctx.Err()
		}
	}
}

func (p *prompter) waits(ctx context.Context, in *rpcapi.Intent) (bool, error) {
	list, err := p.d.c.Pending(ctx)
	return slices.ContainsFunc(list, func(x rpcapi.Intent) bool { return x.IntentID == in.IntentID }), p.d.wrap(err)
}

// seen says something, and waits for a line that came after it.
func (p *prompter) seen(ctx context.Context, what string) error {
	if err := p.listen(); err != nil {
		return err
	}
	if err := raw(p.std.out, "%s", what); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.lines:
		return nil
	}
}
