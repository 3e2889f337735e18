package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/endcheck"
	"github.com/tapedeck-dev/tapedeck/deck/fork"
	"github.com/tapedeck-dev/tapedeck/deck/mcptest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type forkOptions struct {
	verdictFlags
	deck.ForkOptions
	from  fork.Place
	model string
	set   []string
	edit  string
	tree  treeFlag
	times int
}

// inEditor is --edit without a file.
const inEditor = "$EDITOR"

func newForkCommand(std *console) *cobra.Command {
	var o forkOptions
	cmd := withHelp("fork", &cobra.Command{
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				if o.edit != inEditor {
					return fmt.Errorf("fork takes one REC; another one is %s", args[1])
				}
				o.edit = args[1]
			}
			if !cmd.Flags().Changed("from") {
				return errors.New("--from is missing: turn:N of the conversation, or the seq of a record (tapedeck show lists them)")
			}
			return runFork(cmd.Context(), &o, args[0], std)
		},
	})
	f := cmd.Flags()
	place := func(s string) (fork.Place, error) { return parsePlace(s, o.from.Lane) }
	parsedFlag(f, &o.from, "from", "", "the first that is not from the tape: `turn:N` of the conversation, or the seq of a record", place)
	f.StringVar(&o.from.Lane, "lane", "", "the `conversation`, where several have so many turns; a part of its name will do")
	f.BoolVar(&o.Live, "live", false, "let the program reach the network from there on")
	upstreamFlag(f, &o.Upstreams, "`NAME[:PORT]=URL` in place of the recorded one (repeatable)")
	f.StringArrayVar(&o.MCP, "mcp", nil, "let the tool `server` of that name answer from there on: one over stdio is started, one over HTTP needs --live (repeatable)")
	f.StringVar(&o.model, "model", "", "`model` that each live request asks for")
	f.StringArrayVar(&o.set, "set", nil, "`PATH=VALUE`: change the answer, the system prompt, what a tool gave (repeatable)")
	f.StringVar(&o.edit, "edit", "", "change them in $EDITOR, or take them from a `file`")
	f.Lookup("edit").NoOptDefVal = inEditor
	o.tree.define(cmd, "recorded")
	f.StringVarP(&o.Output, "output", "o", "", "`directory` of the recording (default: a new one in .tapedeck/)")
	f.StringVar(&o.Verify, "verify", "", "`command` of the shell that is run over the files as the fork left them; how it ends is kept")
	f.DurationVar(&o.Timeout, "verify-timeout", endcheck.DefaultTimeout, "how long it may take, as in 30s or 2m")
	f.IntVar(&o.times, "times", 1, "how `many` forks to make")
	o.define(cmd)
	std.jsonFlag(cmd, "the result as JSON on stdout; the program's output goes to stderr")
	return cmd
}

// parsePlace reads --from, in a conversation that may be named already.
func parsePlace(s, lane string) (p fork.Place, err error) {
	p.Lane = lane
	turn, isTurn := strings.CutPrefix(s, "turn:")
	if isTurn {
		p.Turn, err = strconv.Atoi(turn)
	} else {
		p.Seq, err = strconv.ParseUint(s, 10, 64)
	}
	if err != nil || isTurn && p.Turn < 1 {
		return p, fmt.Errorf("%q: want turn:N, from 1 on, or the seq of a record (tapedeck show lists them)", s)
	}
	return p, nil
}

func runFork(ctx context.Context, o *forkOptions, name string, std *console) error {
	rec, err := o.plan(name)
	if err != nil {
		return err
	}
	text := o.text(std.err)
	hosts, starts, err := deck.Reached(rec, &o.ForkOptions)
	if err != nil {
		return err
	}
	o.announce(std, rec, hosts, starts)
	outputs, err := o.outputs()
	if err != nil {
		return err
	}
	signals, stop := catchSignals()
	defer stop()
	o.Streams, o.Signals, o.Log = std.outputs(), signals, logger(std.err)
	res := &forkResult{
		Parent: rec.Manifest.ID, From: *o.Plan.Point, Live: append([]string{}, hosts...), MCP: append([]*deck.ToolServer{}, starts...),
		Changes: o.Changes, Forks: []*forkedResult{},
	}
	for _, o.Output = range outputs {
		restored := sync.OnceFunc(std.progress().busy("restoring what the run found"))
		o.Starting = restored
		var made *deck.Forked
		made, err = deck.Fork(ctx, rec, &o.ForkOptions)
		if restored(); made == nil {
			break
		}
		endLine(std.err, made.OpenLine)
		page.Prepare(made.Recording)
		one := newForkedResult(made)
		res.Forks = append(res.Forks, one)
		if !std.json {
			if err := one.tell(std, rec, o.Plan, made, text); err != nil {
				return err
			}
		}
		if err != nil || one.Failed != "" || !one.Equal {
			break // another one would hardly do better
		}
	}
	if std.json && len(res.Forks) > 0 { // they are there, whatever became of the next one
		err = errors.Join(err, printJSON(std.out, res))
	}
	return cmp.Or(err, res.status())
}

// outputs are the directories of the forks: "" for new ones of the library. None of them may be taken: the others are paid for.
func (o *forkOptions) outputs() ([]string, error) {
	all := make([]string, o.times)
	for i := range all {
		if all[i] = o.Output; o.Output != "" && o.times > 1 {
			ext := filepath.Ext(o.Output)
			all[i] = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(o.Output, ext), i+1, ext)
		}
		if there, err := os.ReadDir(all[i]); all[i] != "" && (len(there) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)) {
			return nil, fmt.Errorf("%s is not empty: name a new directory, or remove it first", all[i])
		}
	}
	return all, nil
}

// plan finds the point, and what is changed there.
func (o *forkOptions) plan(name string) (*recording.Recording, error) {
	if o.times < 1 {
		return nil, fmt.Errorf("--times %d: want 1 or more", o.times)
	}
	rec, err := openRecording(name)
	if err != nil {
		return nil, err
	}
	if o.Plan, err = fork.PlanOf(rec, o.from); err != nil {
		return nil, err
	}
	o.TreeNow, o.TreeAt = o.tree.now, o.tree.at
	edited, err := o.edited(o.Plan)
	if err != nil {
		return nil, err
	}
	if o.Changes, err = o.Plan.Changes(edited, o.set); err != nil {
		return nil, err
	}
	o.Changes.Model = o.model
	return rec, nil
}

// edited is the document of a plan as it was edited; nil where it was not.
func (o *forkOptions) edited(p *fork.Plan) (*fork.Document, error) {
	if o.edit == "" {
		return nil, nil
	}
	if p.Document == nil {
		return nil, fmt.Errorf("--edit: nothing can be edited there: %w", p.Unread)
	}
	path := o.edit
	if o.edit == inEditor {
		dir, err := os.MkdirTemp("", "tapedeck-fork-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "fork.json")
		if err := editDocument(path, p.Document); err != nil {
			return nil, err
		}
	}
	b, err := recording.ReadBounded(path, fork.MaxDocument)
	if err != nil {
		return nil, err
	}
	d, err := p.Document.Edited(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.edit, err)
	}
	return d, nil
}

// editDocument has a person edit a document at path.
func editDocument(path string, d *fork.Document) error {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(b, '\n'), 0o600); err != nil {
		return err
	}
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		return errors.New("--edit: $EDITOR names no editor: set it, or use --set PATH=VALUE or --edit FILE")
	}
	cmd := exec.Command("sh", "-c", editor+` "$1"`, "sh", path) // it may have arguments
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", editor, err)
	}
	return nil
}

// announce says what is about to happen, what is started, and to whom the program will talk.
func (o *forkOptions) announce(std *console, rec *recording.Recording, hosts []string, starts []*deck.ToolServer) {
	p := o.Plan
	where := fmt.Sprintf("record %d", p.Seq)
	if p.Turn > 0 {
		where = fmt.Sprintf("turn %d of %s (record %d)", p.Turn, p.Lane, p.Seq)
	}
	std.say("forking %s at %s; before it %s from the tape", shortPath(rec.Dir), where, plural(p.Before, "model call is", "model calls are"))
	if words := o.Changes.Words(); len(words) > 0 {
		std.say("changed there: %s", strings.Join(words, ", "))
	}
	for _, s := range starts {
		if s.Command == nil {
			at := s.URL
			if s.At != "" {
				at += " at " + s.At
			}
			std.say("the tool server %s answers itself from there on; it is told first what it was told, and does it again: %s", s.Name, at)
			continue
		}
		std.say("the tool server %s runs in the jail and answers from there on; it is told before what it was told: %s", s.Name, strings.Join(s.Command, " "))
	}
	if !o.Live {
		std.say("nothing leaves this machine: what follows is answered from the rest of the tape as far as it fits, or refused (--live asks models)")
		return
	}
	std.say("live from there on: %s", toWhom(hosts, nil))
	if missing := deck.MissingSecrets(rec); len(missing) > 0 {
		std.say("not set here: %s; the program has a made-up value in its place, which nobody will take", strings.Join(missing, ", "))
	}
}

// A forkResult is what fork --json prints.
type forkResult struct {
	Parent  string             `json:"parent"`
	From    fork.Point         `json:"from"`
	Live    []string           `json:"live"` // hosts of models that were let through; none without --live
	MCP     []*deck.ToolServer `json:"mcp"`  // tool servers that were started, or reached
	Changes *fork.Changes      `json:"changes"`
	Forks   []*forkedResult    `json:"forks"`
}

type forkedResult struct {
	Recording string            `json:"recording"`
	ID        string            `json:"id"`
	Equal     bool              `json:"equal"`     // up to the point, which the run came to
	PrefixMS  int64             `json:"prefix_ms"` // how long it took to come there
	Failed    string            `json:"failed"`
	Exit      recording.Exit    `json:"exit"`
	Verify    *recording.Check  `json:"verify"`
	Refused   []string          `json:"refused"`  // that no tape answered
	Told      []*mcptest.Result `json:"told"`     // answers of the tool servers before the point that are others than on the tape
	Recorded  []fork.Turn       `json:"recorded"` // from the point on
	Forked    []fork.Turn       `json:"forked"`
	Report    *fidelity.Report  `json:"report"` // of what comes before the point
}

func newForkedResult(made *deck.Forked) *forkedResult {
	m := made.Recording.Manifest
	return &forkedResult{
		Recording: made.Recording.Dir, ID: m.ID, Equal: made.Came && made.Report.Faithful() && len(made.Report.NotCompared) == 0, PrefixMS: made.Prefix.Milliseconds(), Failed: m.Fork.Failed, Exit: made.Exit, Verify: m.Fork.Verify,
		Refused: append([]string{}, made.Refused...), Told: append([]*mcptest.Result{}, made.Told...), Recorded: append([]fork.Turn{}, made.Turns[fidelity.Recorded]...), Forked: append([]fork.Turn{}, made.Turns[fidelity.Replay]...), Report: made.Report,
	}
}

// unequal says in a line why a fork is none.
func unequal(made *deck.Forked) string {
	switch {
	case !made.Came && !made.Report.Faithful():
		return "the run is another one before the point: nothing was changed, and nothing went live"
	case !made.Came:
		return "the program ended before it came to the point: nothing was changed, and nothing went live"
	}
	return "the run came to the point, and what it did before is not what was recorded"
}

// status is what makes the exit status.
func (r *forkResult) status() error {
	status := 0
	for _, one := range r.Forks {
		switch v := one.Verify; {
		case len(one.Report.NotCompared) > 0:
			return &statusError{status: statusFailed}
		case !one.Equal:
			return &statusError{status: statusDiverged}
		case one.Failed != "", v != nil && v.Why != "":
			return &statusError{status: statusFailed}
		case v != nil && !v.Passed():
			status = statusDiverged
		}
	}
	if status != 0 {
		return &statusError{status: status}
	}
	return nil
}

// checkWords say how a check ended.
func checkWords(c *recording.Check) string {
	switch {
	case c.TimedOut:
		return "timed out"
	case c.Why != "":
		return "not run: " + c.Why
	}
	return fmt.Sprintf("exit %d", c.Exit)
}

// refusedOnce lists what was refused in a fork of the recording of parent, each once, with what would answer it.
func refusedOnce(refused []string, parent *recording.Manifest) (list []string) {
	for _, what := range refused {
		if how := fork.AnsweredBy(what, parent); how != "" {
			what += " (" + how + ")"
		}
		if !slices.Contains(list, what) {
			list = append(list, what)
		}
	}
	return list
}

// tell says what came of one fork.
func (r *forkedResult) tell(std *console, parent *recording.Recording, p *fork.Plan, made *deck.Forked, text *fidelity.TextOptions) error {
	if !r.Equal {
		std.say("%s; it is kept as %s", unequal(made), shortPath(r.Recording))
		return made.Report.WriteText(std.err, text)
	}
	where := fmt.Sprintf("record %d", p.Seq)
	if p.Turn > 0 {
		where = fmt.Sprintf("turn %d", p.Turn)
	}
	std.say("forked %s: equal up to %s, which came after %.1f s (recorded: %.1f s); %s",
		shortPath(r.Recording), where, made.Prefix.Seconds(), made.Recorded.Seconds(), r.Exit)
	if err := fork.WriteTurns(std.err, made.Turns, text.Width); err != nil {
		return err
	}
	for _, t := range r.Told {
		visible.Fprintf(std.err, "tapedeck: %s answers otherwise than on the tape, which the program was given: ", t.Server)
		printMCPTest(std.err, t)
	}
	if len(r.Refused) > 0 {
		std.say("on no tape, and refused: %s", strings.Join(shortList(refusedOnce(r.Refused, parent.Manifest), 3, r.ID), ", "))
	}
	if r.Verify != nil {
		std.say("%s: %s", r.Verify.Command, checkWords(r.Verify))
	}
	if r.Failed != "" {
		std.say("failed: %s; what came by then is kept", r.Failed)
	}
	return nil
}
