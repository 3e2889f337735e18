package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/runview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/rpcapi"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// runsOptions say where runs are read: from a daemon, or from the files that one keeps.
type runsOptions struct {
	daemon    string
	data      string
	tokenFile string
}

func newRunsCommand(std *console) *cobra.Command {
	var o runsOptions
	cmd := commandGroup("runs",
		newRunsListCommand(&o, std), newRunsShowCommand(&o, std), newRunsWatchCommand(&o, std), newRunsExportCommand(&o, std),
		newRunsSuperviseCommand(&o, std), newRunsPendingCommand(&o, std), newRunsDecideCommand(&o, std),
	)
	f := cmd.PersistentFlags()
	f.StringVar(&o.daemon, "daemon", "", "`URL` of the daemon: ws://HOST:PORT or unix:PATH (default: $TAPEDECK_DAEMON, else "+defaultDaemon+")")
	f.StringVar(&o.data, "data", "", "read the files of this data `directory` in place of asking a daemon")
	f.StringVar(&o.tokenFile, "token-file", "", "`file` with the host's token (default: where the daemon of that address keeps it)")
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
	src, err := o.open(ctx, nil, 0)
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

type runsListOptions struct {
	agent  string
	status string
	limit  int
}

var runStatuses = []string{string(runtrace.InProgress), string(runtrace.Completed), string(runtrace.Incomplete)}

func newRunsListCommand(from *runsOptions, std *console) *cobra.Command {
	var o runsListOptions
	cmd := command("runs list", "", interruptibly(func(cmd *cobra.Command, _ []string) error { return runRunsList(cmd.Context(), from, &o, std) }))
	cmd.SuggestFor = []string{"ls"}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "only runs of this `agent`, by its id")
	wordFlag(cmd, &o.status, "status", "", "only runs with this `status`: "+strings.Join(runStatuses, ", "), runStatuses...)
	f.IntVarP(&o.limit, "limit", "n", 0, "at most so `many` of the newest (default: all)")
	std.jsonFlag(cmd, "the list as JSON")
	_ = cmd.RegisterFlagCompletionFunc("agent", agentNames(from))
	return cmd
}

func runRunsList(ctx context.Context, from *runsOptions, o *runsListOptions, std *console) error {
	if o.limit < 0 {
		return fmt.Errorf("--limit %d: want how many runs to list", o.limit)
	}
	return from.with(ctx, std, func(ctx context.Context, src runSource) error { return o.list(ctx, src, std) })
}

func (o *runsListOptions) list(ctx context.Context, src runSource, std *console) error {
	runs, err := o.runs(ctx, src)
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, map[string]any{"source": src.Name(), "runs": runs})
	}
	if len(runs) == 0 {
		return o.none(src, std)
	}
	return raw(std.out, "%s", runTable(runs, time.Now(), columnsOf(std)))
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

func (o *runsListOptions) none(src runSource, std *console) error {
	what := "no runs yet"
	if o.agent != "" || o.status != "" {
		what = "no run fits; `tapedeck runs list` without flags shows all"
	}
	return std.say("%s: %s", src.Name(), errors.New(what))
}

// columnsOf is the width of stdout where it is a terminal, -1 for any elsewhere.
func columnsOf(std *console) int {
	if !isTerminal(std.out) {
		return -1
	}
	return width(std.out)
}

func runTable(runs []runInfo, now time.Time, cols int) string {
	rows := make([]runview.ListRow, len(runs))
	for i, r := range runs {
		rows[i] = runview.ListRow{
			Run: r.RunID, Agent: r.AgentID, Intent: r.Intent, Status: r.Status, Turns: r.TurnCount, Started: r.StartedAt.In(now.Location()),
		}
		if r.EndedAt != nil {
			rows[i].Ended = r.EndedAt.In(now.Location())
		}
	}
	return runview.List(rows, now, cols)
}

type runsExportOptions struct {
	format string
	output string
	force  bool
}

var runFormats = []string{"jsonl", "session", "markdown"}

var runEndings = map[string]string{".jsonl": "jsonl", ".md": "markdown", ".markdown": "markdown"}

func newRunsExportCommand(from *runsOptions, std *console) *cobra.Command {
	var o runsExportOptions
	cmd := command("runs export", "RUN", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runRunsExport(cmd.Context(), from, &o, args[0], std)
	}))
	cmd.ValidArgsFunction = runNames(from)
	f := cmd.Flags()
	wordFlag(cmd, &o.format, "format", "", "`form`: "+strings.Join(runFormats, ", ")+" (default: by the file's name, else jsonl)", runFormats...)
	f.StringVarP(&o.output, "output", "o", "-", "`file` to write, - for stdout")
	f.BoolVarP(&o.force, "force", "f", false, "replace the file where it is there")
	std.jsonFlag(cmd, "what was written as JSON; takes -o")
	return cmd
}

func runRunsExport(ctx context.Context, from *runsOptions, o *runsExportOptions, name string, std *console) error {
	if std.json && o.output == "-" {
		return errors.New("--json says what was written, and takes -o FILE")
	}
	if o.format == "" {
		format, err := formatOf(o.output, runFormats[0], runEndings)
		if err != nil {
			return fmt.Errorf("%w, or give --format", err)
		}
		o.format = format
	}
	return from.withRun(ctx, std, name, func(ctx context.Context, src runSource, id runtrace.ID) error { return o.export(ctx, src, id, std) })
}

func (o *runsExportOptions) export(ctx context.Context, src runSource, id runtrace.ID, std *console) error {
	var e exported
	n, err := putWhole(o.output, o.force, std.out, func(w io.Writer) error {
		buf := bufio.NewWriterSize(w, 64<<10)
		return errors.Join(e.write(ctx, src, id, o.format, buf), buf.Flush())
	})
	if err != nil {
		return err
	}
	if !e.ended {
		std.say("the run goes on: what it has so far was written")
	}
	if std.json {
		return printJSON(std.out, map[string]any{"run_id": id.Run, "file": o.output, "format": o.format, "records": e.records, "bytes": n, "ended": e.ended})
	}
	if o.output != "-" {
		std.say("wrote %s: %s, %s", o.output, plural(e.records, "record", "records"), size(n))
	}
	return nil
}

// exported is what was written of a run.
type exported struct {
	records int
	ended   bool
}

func (e *exported) write(ctx context.Context, src runSource, id runtrace.ID, format string, w *bufio.Writer) error {
	put, end := e.form(format, w)
	for line, err := range src.Records(ctx, id) {
		if err != nil {
			return err
		}
		rec, err := runtrace.Parse(line)
		if err != nil {
			return fmt.Errorf("run %s: record %d: %w", id.Run, e.records, err)
		}
		e.records++
		e.ended = e.ended || rec.Ended != nil
		if err := put(rec, line); err != nil {
			return err
		}
	}
	return end()
}

func (e *exported) form(format string, w *bufio.Writer) (put func(runtrace.Record, []byte) error, end func() error) {
	switch format {
	case "session":
		s := runview.NewSession(w)
		return func(rec runtrace.Record, _ []byte) error { return s.Add(rec) }, s.Close
	case "markdown":
		m := runview.NewMarkdown(w, time.UTC)
		return func(rec runtrace.Record, _ []byte) error { return m.Add(rec) }, m.Close
	}
	return func(_ runtrace.Record, line []byte) error {
		if _, err := w.Write(line); err != nil {
			return err
		}
		return w.WriteByte('\n')
	}, func() error { return nil }
}

type runsShowOptions struct {
	turns    runview.Range
	lines    bool
	verdicts bool
	full     bool
}

// shownLines are kept of one text without --full.
const shownLines = 40

func newRunsShowCommand(from *runsOptions, std *console) *cobra.Command {
	var o runsShowOptions
	cmd := command("runs show", "RUN", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runRunsShow(cmd.Context(), from, &o, args[0], std)
	}))
	cmd.ValidArgsFunction = runNames(from)
	f := cmd.Flags()
	o.turns = runview.AllTurns
	parsedFlag(f, &o.turns, "turn", "", "only this `turn`, or those of a range: 3, 2..5, 2.. or ..5; they count from 0", runview.ParseRange)
	f.BoolVar(&o.lines, "lines", false, "a line a turn")
	f.BoolVar(&o.verdicts, "verdicts", false, "what policies decided, too")
	f.BoolVar(&o.full, "full", false, "all of every text")
	std.jsonFlag(cmd, "the records as JSON")
	return cmd
}

func runRunsShow(ctx context.Context, from *runsOptions, o *runsShowOptions, name string, std *console) error {
	return from.withRun(ctx, std, name, func(ctx context.Context, src runSource, id runtrace.ID) error { return o.show(ctx, src, id, std) })
}

func (o *runsShowOptions) show(ctx context.Context, src runSource, id runtrace.ID, std *console) (err error) {
	var verdicts []rpcapi.PolicyCheckResult
	if o.verdicts {
		if verdicts, err = src.Verdicts(ctx, id); err != nil {
			return err
		}
	}
	show := o.text
	if std.json {
		show = o.asJSON
	}
	return show(ctx, src, id, verdicts, std)
}

// text writes a run for people. The head says how many turns there are, so the records are read twice and never held.
func (o *runsShowOptions) text(ctx context.Context, src runSource, id runtrace.ID, verdicts []rpcapi.PolicyCheckResult, std *console) error {
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
	if o.turns == runview.AllTurns {
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
		if rec.Turn == nil || !o.turns.Has(rec.Turn.Index) {
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
	if found == 0 && o.turns != runview.AllTurns {
		return errors.New("--turn: the run has no such turn; they count from 0, and runs show without --turn has all")
	}
	return nil
}

// asJSON writes {"version":1,"run_id",…,"records":[…]}, a record at a time.
func (o *runsShowOptions) asJSON(ctx context.Context, src runSource, id runtrace.ID, verdicts []rpcapi.PolicyCheckResult, std *console) error {
	err := raw(std.out, `{"version":%d,"run_id":%q,"agent_id":%q,"records":[`, jsonVersion, id.Run, id.Agent)
	sep := "\n"
	for line, errRead := range src.Records(ctx, id) {
		if err = errors.Join(err, errRead); err != nil {
			return err
		}
		if o.turns != runview.AllTurns {
			rec, err := runtrace.Parse(line)
			if err != nil {
				return err
			}
			if rec.Turn == nil || !o.turns.Has(rec.Turn.Index) {
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
	b, err := jsonscan.Marshal(verdicts)
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
		if a := v.Verdict.Approval; a != nil {
			visible.Fprintf(&b, "         %s: %s\n", visible.Line(strings.Join(a.Policies, ", ")), visible.Line(strings.TrimSuffix("allowed by a person: "+a.Reason, ": ")))
		}
		for _, x := range v.Verdict.Violations {
			visible.Fprintf(&b, "         %s: %s\n", visible.Line(x.PolicyName), visible.Line(x.Reason))
		}
	}
	return raw(out, "%s", b.String())
}
