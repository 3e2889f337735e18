package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/fork"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type listOptions struct {
	lookFlags
	tree   bool
	store  storeFlags
	limit  int
	tagged team.Query // of a store

	query library.Query
}

func newListCommand(std *console) *cobra.Command {
	var o listOptions
	cmd := command("list", "", func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("store") {
			if o.tagged.Held || len(o.tagged.Tags) > 0 {
				return errors.New("--tag and --held are of a team's store: --store default, or --store URL, says that it is meant")
			}
			return runList(&o, std)
		}
		return o.store.access(cmd.Context(), func(ctx context.Context, s team.Access) error { return listStore(ctx, s, &o, std) })
	})
	cmd.SuggestFor = []string{"ls"}
	o.define(cmd)
	f := cmd.Flags()
	spanFlags(f, &o.query.Since, &o.query.Until)
	f.StringVar(&o.query.Model, "model", "", "only those that asked a model with this in its `name`")
	f.BoolVar(&o.query.Failed, "failed", false, "only those whose program did not exit with 0, or whose recorder did not come to its end")
	f.StringSliceVar(&o.query.Verdicts, "verdict", nil, "only those whose last replay ended so: "+strings.Join(verdictWords(), ", ")+" (repeatable, or with commas)")
	f.Float64Var(&o.query.MinCost, "min-cost", 0, "only those that cost so many `dollars` or more, as far as prices are known")
	f.DurationVar(&o.query.MinDuration, "min-duration", 0, "only those whose program ran so `long` or longer, as in 30s or 2m")
	parsedFlag(f, &o.query.Grep, "grep", "", "only those in whose prompts, answers, names of files or command line this regular `expression` (RE2) is found", parseGrep)
	f.BoolVar(&o.tree, "tree", false, "forks below their parents")
	std.jsonFlag(cmd, "the list as JSON")
	o.store.define(f)
	defineTagged(f, &o.tagged)
	f.IntVar(&o.limit, "limit", team.DefaultLimit, "of a store: `N` at most, those that were pushed last")
	completeFlag(cmd, "verdict", verdictWords()...)
	return cmd
}

// verdictWords are what --verdict takes.
func verdictWords() []string {
	words := []string{library.NoVerdict}
	for _, s := range []gate.Status{gate.Faithful, gate.Unsure, gate.Expected, gate.Diverged, gate.Hangs, gate.Damaged, gate.Newer, gate.NoProgram, gate.NoJail, gate.Broken} {
		words = append(words, string(s))
	}
	return words
}

func runList(o *listOptions, std *console) error {
	for _, v := range o.query.Verdicts {
		if !slices.Contains(verdictWords(), v) {
			return fmt.Errorf("--verdict %q: want one of %s", v, strings.Join(verdictWords(), ", "))
		}
	}
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	done := std.progress().busy("reading recordings")
	rows, err := lib.Rows(&o.query)
	done()
	if err != nil {
		return err
	}
	if o.tree {
		rows = library.Tree(rows)
	}
	if std.json {
		out := make([]listedRecording, len(rows))
		for i := range rows {
			out[i] = listed(&rows[i])
		}
		return printJSON(std.out, map[string]any{"library": lib.Dir, "recordings": out})
	}
	if len(rows) == 0 {
		return o.none(lib, std)
	}
	return o.paged(std, func(std *console) error { return writeRows(std.out, rowsOf(rows), o.colours(std.out)) })
}

// none says why nothing is listed.
func (o *listOptions) none(lib *library.Library, std *console) error {
	if all, err := lib.List(); err != nil || len(all) > 0 {
		std.say("none of %s fits; `tapedeck list` without flags shows all", plural(len(all), "recording", "recordings"))
		return err
	}
	return std.say("no recordings in %s; make one with: tapedeck record -- CMD", lib.Dir)
}

// listedRecording is one entry of list --json.
type listedRecording struct {
	ID        string             `json:"id"`
	Path      string             `json:"path"`
	State     string             `json:"state"`
	Live      bool               `json:"live"` // it is being recorded
	StartedAt *time.Time         `json:"started_at"`
	Argv      []string           `json:"argv"`
	Exit      *recording.Exit    `json:"exit"`
	MCP       *recording.MCPSeen `json:"mcp"`       // tool servers, where the program talked with some
	Sealed    bool               `json:"sealed"`    // it says so; verify tells whether that holds
	SealedBy  string             `json:"sealed_by"` // the name of the key
	Totals    *recording.Totals  `json:"totals"`
	Verdict   *library.Verdict   `json:"verdict"` // of the last replay
	Parent    *string            `json:"parent"`  // of a fork
	ForkSeq   *uint64            `json:"fork_seq"`
	Error     string             `json:"error"`
}

func listed(r *library.Row) listedRecording {
	l := listedRecording{ID: r.Name, Path: r.Path, Argv: []string{}}
	if r.Err != nil {
		l.Error = r.Err.Error()
		return l
	}
	m := r.Recording.Manifest
	l.State, l.StartedAt, l.Argv, l.Exit = m.State, &m.StartedAt, m.Argv, m.Exit
	l.MCP, l.Sealed, l.Totals, l.Verdict, l.Parent, l.ForkSeq = m.MCP, m.Sealed, r.Totals, r.Verdict, m.Parent, m.ForkSeq
	l.SealedBy, _ = sealing.SealedBy(r.Recording)
	l.Live = !r.Recording.Finished() && r.Recording.Live() == recording.LiveYes
	return l
}

// A listRow is a recording as a list shows it.
type listRow struct {
	name, argv, end string
	began           time.Time
	totals          *recording.Totals
	verdict         *library.Verdict
	err             error // it cannot be opened
}

func rowsOf(rows []library.Row) []listRow {
	out := make([]listRow, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = listRow{name: r.Name, err: r.Err}
		if r.Depth > 0 {
			out[i].name = strings.Repeat("  ", r.Depth-1) + "└ " + r.Name
		}
		if r.Err == nil {
			m := r.Recording.Manifest
			out[i].argv = strings.Join(m.Argv, " ")
			if r.Depth > 0 && m.Fork != nil { // what it ran is its parent's
				out[i].argv = forkedSo(m)
			}
			out[i].end, out[i].began, out[i].totals, out[i].verdict = endCell(r.Recording), m.StartedAt, r.Totals, r.Verdict
		}
	}
	return out
}

// forkedSo says where a fork left its parent, and how.
func forkedSo(m *recording.Manifest) string {
	where := fmt.Sprintf("from turn %d", m.Fork.Turn)
	if m.Fork.Turn == 0 && m.ForkSeq != nil {
		where = fmt.Sprintf("from record %d", *m.ForkSeq)
	}
	var changes fork.Changes
	_ = json.Unmarshal(m.Fork.Changes, &changes) // of a newer version: what is known of it
	words := changes.Words()
	if m.Fork.Live {
		words = append(words, "live")
	}
	for _, name := range m.Fork.MCP {
		words = append(words, "tool server "+name)
	}
	if len(words) == 0 {
		return where
	}
	return where + ": " + strings.Join(words, ", ")
}

func writeRows(out io.Writer, rows []listRow, colours bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	room := 1 << 20 // of a command line
	if isTerminal(out) {
		room = max(width(out)-110, 24)
	}
	for i := range rows {
		r := &rows[i]
		if r.err != nil {
			begin, end := paint(string(gate.Damaged), colours)
			visible.Fprintf(w, "%s\t\t\t\t\t\t\t"+begin+"%s"+end+"\t%s\n", r.name, string(gate.Damaged), r.err.Error())
			continue
		}
		model, turns, cost, took := totalCells(r.totals)
		verdict := ""
		if r.verdict != nil {
			verdict = r.verdict.Status
		}
		if runes := []rune(r.argv); len(runes) > room {
			r.argv = string(runes[:room-1]) + "…"
		}
		begin, end := paint(verdict, colours)
		visible.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t"+begin+"%s"+end+"\t%s\n", r.name, stamp(r.began), r.end,
			model, turns, cost, took, verdict, r.argv)
	}
	return w.Flush()
}

// totalCells are the cells of what a recording comes to; empty where it asked no model.
func totalCells(t *recording.Totals) (model, turns, cost, took string) {
	if t == nil {
		return "", "", "", ""
	}
	if took = fmt.Sprintf("%.1f s", float64(t.DurationMS)/1000); len(t.Models) == 0 && t.Turns == 0 {
		return "", "", "", took
	}
	if len(t.Models) > 0 {
		model = t.Models[0]
	}
	if n := len(t.Models); n > 1 {
		model += fmt.Sprintf(" and %d more", n-1)
	}
	return model, plural(t.Turns, "turn", "turns"), t.Cost(), took
}

// endCell says how a recording ended.
func endCell(r *recording.Recording) string {
	m := r.Manifest
	end := "unfinished"
	if m.Exit != nil {
		end = fmt.Sprintf("exit %d", m.Exit.Code)
	} else if r.Live() == recording.LiveYes {
		end = "recording"
	}
	if said := mcpCalls(m.MCP); said != "" {
		end += ", " + said
	}
	switch by, ok := sealing.SealedBy(r); {
	case !ok:
		end += ", its seal is gone or damaged"
	case by != "":
		end += ", sealed"
	}
	return end
}

// paint is what stands before and behind the word of a verdict. Both are equally long for all, because a tabwriter counts them.
func paint(word string, colours bool) (begin, end string) {
	code := "31"
	if w, ok := testWords[gate.Status(word)]; ok {
		code = w[1]
	}
	switch {
	case !colours:
		return "", ""
	case word == "":
		code = "39"
	}
	return "\x1b[" + code + "m", "\x1b[0m"
}
