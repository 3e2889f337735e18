package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/runview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

type runsShowOptions struct {
	turns    string
	lines    bool
	verdicts bool
	full     bool
	json     bool

	wanted runview.Range
}

// shownLines are kept of one text without --full.
const shownLines = 40

func newRunsShowCommand(from *runsOptions, std streams) *cobra.Command {
	var o runsShowOptions
	cmd := oneArgument("runs show", "RUN", runNames(from), func(ctx context.Context, name string) error {
		return runRunsShow(ctx, from, &o, name, std)
	})
	f := cmd.Flags()
	f.StringVar(&o.turns, "turn", "", "only this `turn`, or those of a range: 3, 2..5, 2.. or ..5; they count from 0")
	f.BoolVar(&o.lines, "lines", false, "a line a turn")
	f.BoolVar(&o.verdicts, "verdicts", false, "what policies decided, too")
	f.BoolVar(&o.full, "full", false, "all of every text")
	f.BoolVar(&o.json, "json", false, "the records as JSON")
	return cmd
}

func (o *runsShowOptions) parse() (err error) {
	o.wanted, err = runview.ParseRange(o.turns)
	return prefixedError("--turn", err)
}

func runRunsShow(ctx context.Context, from *runsOptions, o *runsShowOptions, name string, std streams) error {
	if err := o.parse(); err != nil {
		return err
	}
	return from.withRun(ctx, std, name, func(ctx context.Context, src runSource, id runtrace.ID) error { return o.show(ctx, src, id, std) })
}

func (o *runsShowOptions) show(ctx context.Context, src runSource, id runtrace.ID, std streams) (err error) {
	var verdicts []rpcapi.PolicyCheckResult
	if o.verdicts {
		if verdicts, err = src.Verdicts(ctx, id); err != nil {
			return err
		}
	}
	show := o.text
	if o.json {
		show = o.asJSON
	}
	return show(ctx, src, id, verdicts, std)
}

// text writes a run for people. The head says how many turns there are, so the records are read twice and never held.
func (o *runsShowOptions) text(ctx context.Context, src runSource, id runtrace.ID, verdicts []rpcapi.PolicyCheckResult, std streams) error {
	var run runview.Run
	for line, err := range src.Records(ctx, id) {
		if err != nil {
			return err
		}
		if err := run.AddLine(line); err != nil {
			return fmt.Errorf("run %s: record %d: %w", id.Run, run.Records(), err)
		}
	}
	now := time.Now()
	so := &runview.ShowOptions{Colour: colour(std.out), MaxLines: shownLines, Zone: now.Location()}
	if o.full {
		so.MaxLines = 0
	}
	if o.turns == "" {
		if err := runview.WriteHead(std.out, &run, now, so); err != nil {
			return err
		}
		visible.Fprintf(std.out, "\n")
	}
	if err := o.writeTurns(ctx, src, id, so, std.out); err != nil {
		return err
	}
	if o.verdicts {
		return writeVerdicts(std.out, verdicts)
	}
	return nil
}

func (o *runsShowOptions) writeTurns(ctx context.Context, src runSource, id runtrace.ID, so *runview.ShowOptions, out io.Writer) error {
	found := 0
	for line, err := range src.Records(ctx, id) {
		if err != nil {
			return err
		}
		rec, err := runtrace.Parse(line)
		if err != nil {
			return err
		}
		if rec.Turn == nil || !o.wanted.Has(rec.Turn.Index) {
			continue
		}
		found++
		t := runview.MakeTurn(rec.Turn, 0)
		if o.lines {
			err = raw(out, "%s\n", t.Line(so.Colour))
		} else {
			err = runview.WriteTurn(out, &t, so)
		}
		if err != nil {
			return err
		}
	}
	if found == 0 && o.turns != "" {
		return fmt.Errorf("--turn %s: the run has no such turn; they count from 0, and runs show without --turn has all", o.turns)
	}
	return nil
}

// asJSON writes {"version":1,"run_id",…,"records":[…]}, a record at a time.
func (o *runsShowOptions) asJSON(ctx context.Context, src runSource, id runtrace.ID, verdicts []rpcapi.PolicyCheckResult, std streams) error {
	err := raw(std.out, `{"version":%d,"run_id":%q,"agent_id":%q,"records":[`, jsonVersion, id.Run, id.Agent)
	sep := "\n"
	for line, errRead := range src.Records(ctx, id) {
		if err = errors.Join(err, errRead); err != nil {
			return err
		}
		if o.turns != "" {
			rec, err := runtrace.Parse(line)
			if err != nil {
				return err
			}
			if rec.Turn == nil || !o.wanted.Has(rec.Turn.Index) {
				continue
			}
		}
		err = raw(std.out, "%s%s", sep, line)
		sep = ",\n"
	}
	if err != nil {
		return err
	}
	if !o.verdicts {
		return raw(std.out, "\n]}\n")
	}
	if verdicts == nil {
		verdicts = []rpcapi.PolicyCheckResult{}
	}
	b, err := marshal(verdicts)
	if err != nil {
		return err
	}
	return raw(std.out, "\n],\"verdicts\":%s}\n", json.RawMessage(b))
}

// judged is what a verdict is about: a tool, or the type of an action that calls none.
func judged(v *rpcapi.PolicyCheckResult) string { return cmp.Or(v.Tool, v.Type) }

// writeVerdicts lists what policies decided, with the beginnings of the digests; --json has all of them.
func writeVerdicts(out io.Writer, verdicts []rpcapi.PolicyCheckResult) error {
	var b strings.Builder
	visible.Fprintf(&b, "verdicts   %d\n", len(verdicts))
	for _, v := range verdicts {
		visible.Fprintf(&b, "  %-5s  %s  parameters %.12s, policies %.12s\n", visible.Line(v.Verdict.Kind), visible.Line(judged(&v)), visible.Line(v.ParamsDigest), visible.Line(v.PolicySet))
		for _, x := range v.Verdict.Violations {
			visible.Fprintf(&b, "         %s: %s\n", visible.Line(x.PolicyName), visible.Line(x.Reason))
		}
	}
	return raw(out, "%s", b.String())
}
