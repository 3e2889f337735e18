package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/deck/team/remote"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// storeFlags name a team's store.
type storeFlags struct {
	runs, blobs, project string
	retention            []recording.Retention // of the project, as tapedeck.yaml has it for this store
}

func (o *storeFlags) define(f *pflag.FlagSet) {
	o.definePlaces(f)
	f.StringVar(&o.project, "project", "", "`name` of the project, whose runs no other one sees ; default: tapedeck.yaml's")
}

// definePlaces is define for what is about all projects.
func (o *storeFlags) definePlaces(f *pflag.FlagSet) {
	f.StringVar(&o.runs, "store", "", "`URL` of the database: sqlite:///PATH or postgres://USER@HOST/DATABASE, or https://HOST:PORT of a server; default: tapedeck.yaml's, else a file of this user")
	f.StringVar(&o.blobs, "blobs", "", "`URL` of the bytes: file:///PATH or s3://BUCKET/PREFIX?endpoint=URL ; default: tapedeck.yaml's, else beside the file of --store")
}

// defaultStore names, as --store, the store that there is without the flag: list takes it from the library to that.
const defaultStore = "default"

// resolve sets what the flags leave open by tapedeck.yaml, else by what is usual.
func (o *storeFlags) resolve() error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	config, err := recording.ReadConfig(filepath.Dir(lib.Dir))
	if err != nil {
		return err
	}
	if o.runs == defaultStore {
		o.runs = ""
	}
	if s := config.Store; s != nil {
		o.project = cmp.Or(o.project, s.Project)
		if o.runs == "" {
			o.runs, o.blobs = s.Runs, cmp.Or(o.blobs, s.Blobs)
		}
		if o.project == s.Project && (s.Runs == "" || o.runs == s.Runs) {
			o.retention = s.Retention
		}
	}
	if o.runs == "" {
		dir := filepath.Join(xdg.DataHome, "tapedeck", "store")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		o.runs = (&url.URL{Scheme: "sqlite", Path: filepath.ToSlash(filepath.Join(dir, "runs.sqlite"))}).String()
	}
	if o.blobs == "" {
		if path, ok := strings.CutPrefix(o.runs, "sqlite:"); ok {
			o.blobs = "file:" + path + ".blobs"
		}
	}
	return nil
}

// with opens the store by its keys for as long as f runs, which a signal ends.
func (o *storeFlags) with(ctx context.Context, f func(ctx context.Context, s *team.Store) error) error {
	return o.access(ctx, func(ctx context.Context, s team.Access) error {
		if direct, ok := s.(*team.Store); ok {
			return f(ctx, direct)
		}
		return fmt.Errorf("%s: this takes the keys of the store's database, which its server keeps", s.Name())
	})
}

// access is with for what a server of the store can do too.
func (o *storeFlags) access(ctx context.Context, f func(ctx context.Context, s team.Access) error) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	s, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return f(ctx, s)
}

// open opens the store that the flags name, or tapedeck.yaml, or that of this user.
func (o *storeFlags) open(ctx context.Context) (team.Access, error) {
	if err := o.resolve(); err != nil {
		return nil, err
	}
	if !remote.Is(o.runs) {
		return team.Open(ctx, o.runs, o.blobs)
	}
	if o.blobs != "" {
		return nil, fmt.Errorf("--blobs: %s knows where they lie", o.runs)
	}
	token, err := remote.Token(o.runs)
	if err != nil {
		return nil, err
	}
	return remote.Open(o.runs, token)
}

// accessCommand is a command that does something with the store that its flags, which it gets, name.
func (o *storeFlags) accessCommand(path, names string, run func(ctx context.Context, s team.Access, args []string) error) *cobra.Command {
	cmd := command(path, names, func(cmd *cobra.Command, args []string) error {
		return o.access(cmd.Context(), func(ctx context.Context, s team.Access) error { return run(ctx, s, args) })
	})
	o.define(cmd.Flags())
	return cmd
}

// signer is the key that signs tombstones; a server has its own.
func signer(s team.Access) (note.Signer, error) {
	if _, direct := s.(*team.Store); !direct {
		return nil, nil
	}
	return seal.LoadKey(recording.ConfigDir(""))
}

// storeHint adds the next step to what a store refuses.
func storeHint(err error) error {
	switch {
	case errors.Is(err, team.ErrNoRun):
		return fmt.Errorf("%w: tapedeck list --store default has those that are there", err)
	case errors.Is(err, team.ErrNoToken):
		return fmt.Errorf("%w; TAPEDECK_STORE_TOKEN, or store-tokens in %s, holds it", err, recording.ConfigDir(""))
	case errors.Is(err, team.ErrHeld):
		return fmt.Errorf("%w: tapedeck hold --release ID, if its holder agrees", err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted: what was acknowledged stays, and the command can be run again")
	}
	return err
}

func newPushCommand(std *console) *cobra.Command {
	var o storeFlags
	var push team.PushOptions
	cmd := o.accessCommand("push", "REC…", func(ctx context.Context, s team.Access, args []string) error {
		push.Project = o.project
		return runPush(ctx, s, args, &push, std)
	})
	cmd.Flags().BoolVar(&push.Again, "again", false, "also what was purged from the store once")
	cmd.Flags().StringSliceVar(&push.Tags, "tag", nil, "give the runs this `tag` (repeatable, or with commas)")
	std.jsonFlag(cmd, "what was pushed as JSON")
	return cmd
}

// pushedRun is one entry of push --json.
type pushedRun struct {
	*team.Run
	There bool `json:"there"` // the very same was there already
}

func runPush(ctx context.Context, s team.Access, names []string, o *team.PushOptions, std *console) error {
	out := make([]pushedRun, 0, len(names))
	var errs []error
	for _, name := range names {
		p := std.progress()
		o.Progress = p.bytes("pushing " + visible.Line(name))
		run, there, err := pushOne(ctx, s, name, o)
		if p.end(); err != nil {
			if errors.Is(err, team.ErrRemoved) {
				err = fmt.Errorf("%w: --again pushes it all the same", err)
			}
			errs = append(errs, prefixedError(name, storeHint(err)))
			continue
		}
		if out = append(out, pushedRun{run, there}); std.json {
			continue
		}
		said := "pushed"
		if there {
			said = "there already:"
		}
		std.say("%s %s, %s, in %s", said, run.ID, size(run.Size), s.Name())
	}
	if std.json {
		errs = append(errs, printJSON(std.out, map[string]any{"pushed": out}))
	}
	return errors.Join(errs...)
}

func pushOne(ctx context.Context, s team.Access, name string, o *team.PushOptions) (*team.Run, bool, error) {
	rec, clean, err := openRecordingOrPacked(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer clean()
	return s.Push(ctx, rec, o)
}

func newPullCommand(std *console) *cobra.Command {
	var o storeFlags
	var output string
	cmd := o.accessCommand("pull", "ID", func(ctx context.Context, s team.Access, args []string) error {
		return storeHint(runPull(ctx, s, &o, args[0], output, std))
	})
	cmd.Flags().StringVarP(&output, "output", "o", "", "`directory` of the recording (default: its id in .tapedeck/)")
	std.jsonFlag(cmd, "where it lies as JSON")
	return cmd
}

func runPull(ctx context.Context, s team.Access, o *storeFlags, id, output string, std *console) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	temp, err := recording.NewTemp(os.TempDir(), library.OpenPrefix)
	if err != nil {
		return err
	}
	defer temp.Remove()
	p := std.progress()
	file := filepath.Join(temp.Dir, "packed")
	run, err := s.Pull(ctx, o.project, id, file, p.bytes("pulling"))
	var rec *recording.Recording
	if err == nil {
		rec, err = lib.Unpack(ctx, file, &library.UnpackOptions{Output: output, Limits: packed.Limits{}, Progress: p.bytes("unpacking")})
	}
	if p.end(); err != nil {
		return unpackHint(err)
	}
	if rec.Finished() {
		page.Prepare(rec)
	}
	if err := keepVerdict(ctx, s, o.project, run.ID, rec); err != nil {
		std.say("what a worker found of it is not known: %v", err)
	}
	if std.json {
		return printJSON(std.out, map[string]any{"recording": rec.Dir, "id": run.ID, "state": run.State})
	}
	return std.say("pulled %s into %s", run.ID, shortPath(rec.Dir))
}

// defineTagged are the flags that choose by what was said of runs since they were pushed.
func defineTagged(f *pflag.FlagSet, q *team.Query) {
	f.StringSliceVar(&q.Tags, "tag", nil, "of a store: only those that have this `tag` (repeatable: all of them)")
	f.BoolVar(&q.Held, "held", false, "of a store: only those that are on hold")
}

func newSearchCommand(std *console) *cobra.Command {
	var o storeFlags
	var q team.Query
	cmd := o.accessCommand("search", "QUERY…", func(ctx context.Context, s team.Access, args []string) error {
		q.Project = o.project
		return runSearch(ctx, s, strings.Join(args, " "), &q, std)
	})
	f := cmd.Flags()
	f.StringVar(&q.Agent, "agent", "", "only those whose program is called `name`")
	f.StringVar(&q.Model, "model", "", "only those that asked a model with this in its `name`")
	f.BoolVar(&q.Failed, "failed", false, "only those whose program did not exit with 0, or whose recorder did not come to its end")
	f.Float64Var(&q.MinCost, "min-cost", 0, "only those that cost so many `dollars` or more, as far as prices are known")
	defineTagged(f, &q)
	spanFlags(f, &q.Since, &q.Until)
	f.IntVar(&q.Limit, "limit", team.DefaultLimit, "`N` at most, those that were pushed last")
	std.jsonFlag(cmd, "what was found as JSON")
	return cmd
}

func runSearch(ctx context.Context, s team.Access, text string, q *team.Query, std *console) error {
	hits, err := s.Search(ctx, text, q)
	if err != nil {
		return storeHint(err)
	}
	if std.json {
		return printJSON(std.out, map[string]any{"query": text, "hits": hits})
	}
	for i := range hits {
		h := &hits[i]
		visible.Fprintf(std.out, "%s  %s  %s\n    %s: %s\n", h.Run.ID, stamp(h.Run.StartedAt), strings.Join(h.Run.Argv, " "), h.What, h.Excerpt)
	}
	if len(hits) == 0 {
		std.say("no run of the store has all of these words in one text")
	}
	return nil
}

// stamp is a time as lists show it.
func stamp(t time.Time) string { return t.Local().Format(time.DateTime) }

func newPurgeCommand(std *console) *cobra.Command {
	var o storeFlags
	var reason string
	cmd := o.accessCommand("purge", "ID…", func(ctx context.Context, s team.Access, args []string) error {
		return runPurge(ctx, s, args, o.project, reason, std)
	})
	cmd.PreRunE = func(*cobra.Command, []string) error { return team.CheckReason(reason) }
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that the tombstone says, 1 KiB at most")
	std.jsonFlag(cmd, "the tombstones as JSON")
	return cmd
}

func runPurge(ctx context.Context, s team.Access, names []string, project, reason string, std *console) error {
	key, err := signer(s)
	if err != nil {
		return err
	}
	out := []*team.Tombstone{}
	var errs []error
	for _, id := range names {
		t, err := s.Remove(ctx, project, id, reason, key)
		if t != nil {
			out = append(out, t)
		}
		if err != nil {
			errs = append(errs, prefixedError(id, storeHint(err)))
		} else if !std.json {
			std.say("purged %s; a tombstone signed by %s stays", t.ID, t.SignedBy())
		}
	}
	if std.json {
		errs = append(errs, printJSON(std.out, map[string]any{"tombstones": out}))
	}
	return errors.Join(errs...)
}

// A storedRun is one entry of list --store --json.
type storedRun struct {
	*team.Run
	Verdicts []team.Verdict `json:"verdicts"` // what workers found, the last first
}

// listStore lists the runs of a store as list does the recordings of a library.
func listStore(ctx context.Context, s team.Access, o *listOptions, std *console) error {
	q := &team.Query{Project: o.store.project, Since: o.query.Since, Until: o.query.Until, Model: o.query.Model, Failed: o.query.Failed, MinCost: o.query.MinCost, Limit: o.limit, Tags: o.tagged.Tags, Held: o.tagged.Held}
	if o.tree || o.query.Grep != nil || len(o.query.Verdicts) > 0 || o.query.MinDuration > 0 {
		return errors.New("--tree, --grep, --min-duration and --verdict are for the recordings of this work tree: tapedeck search finds runs of a store by their texts")
	}
	runs, err := s.Runs(ctx, q)
	if err != nil {
		return storeHint(err)
	}
	verdicts, err := verdictsOf(ctx, s, q.Project, runs)
	if err != nil {
		return storeHint(err)
	}
	if std.json {
		out := make([]storedRun, len(runs))
		for i := range runs {
			out[i] = storedRun{&runs[i], append([]team.Verdict{}, verdicts[runs[i].ID]...)}
		}
		return printJSON(std.out, map[string]any{"store": s.Name(), "runs": out})
	}
	if len(runs) == 0 {
		return std.say("the store has no such run; push one with: tapedeck push REC")
	}
	rows := make([]listRow, len(runs))
	for i := range runs {
		r := &runs[i]
		end := "unfinished"
		if r.Exit != nil {
			end = fmt.Sprintf("exit %d", r.Exit.Code)
		}
		if r.Sealed {
			end += ", sealed"
		}
		if r.Hold != nil {
			end += ", on hold"
		}
		for _, tag := range r.Tags {
			end += " #" + tag
		}
		if found := verdicts[r.ID]; len(found) > 0 {
			r.Verdict = workersVerdict(&found[0])
		}
		rows[i] = listRow{name: r.ID, argv: strings.Join(r.Argv, " "), end: end, began: r.StartedAt, totals: r.Totals, verdict: r.Verdict}
	}
	return o.paged(std, func(std *console) error { return writeRows(std.out, rows, o.colours(std.out)) })
}

func newTagCommand(std *console) *cobra.Command {
	var o storeFlags
	var add, remove []string
	cmd := o.accessCommand("tag", "ID…", func(ctx context.Context, s team.Access, args []string) error {
		return changeRuns(ctx, s, o.project, args, std, func(id string) (*team.Run, error) { return s.Tag(ctx, o.project, id, add, remove) })
	})
	cmd.Flags().StringSliceVar(&add, "add", nil, "give it this `tag` (repeatable, or with commas)")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "take this `tag` from it (repeatable, or with commas)")
	std.jsonFlag(cmd, "the runs as JSON")
	return cmd
}

func newHoldCommand(std *console) *cobra.Command {
	var o storeFlags
	var reason string
	var release bool
	cmd := o.accessCommand("hold", "ID…", func(ctx context.Context, s team.Access, args []string) error {
		host, _ := os.Hostname()
		return changeRuns(ctx, s, o.project, args, std, func(id string) (*team.Run, error) {
			if release {
				return s.Release(ctx, o.project, id)
			}
			return s.Hold(ctx, o.project, id, login()+"@"+host, reason)
		})
	})
	cmd.PreRunE = func(*cobra.Command, []string) error { // before a store is made, or asks for a token
		if reason == "" && !release {
			return errors.New("--reason TEXT is missing: who meets the hold reads it")
		}
		return team.CheckReason(reason)
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` that says why, 1 KiB at most")
	cmd.Flags().BoolVar(&release, "release", false, "end the hold")
	std.jsonFlag(cmd, "the runs as JSON")
	return cmd
}

// changeRuns changes what a store knows of runs, and says what it knows then.
func changeRuns(ctx context.Context, s team.Access, project string, names []string, std *console, change func(id string) (*team.Run, error)) error {
	out := []*team.Run{}
	var errs []error
	for _, name := range names {
		run, err := s.Find(ctx, project, name)
		if err == nil {
			run, err = change(run.ID)
		}
		if err != nil {
			errs = append(errs, prefixedError(name, storeHint(err)))
			continue
		}
		if out = append(out, run); std.json {
			continue
		}
		said := "on no hold"
		if h := run.Hold; h != nil {
			said = fmt.Sprintf("on hold by %s since %s: %s", h.By, stamp(h.At), h.Why)
		}
		std.say("%s: tags: %s; %s", run.ID, cmp.Or(strings.Join(run.Tags, " "), "none"), said)
	}
	if std.json {
		errs = append(errs, printJSON(std.out, map[string]any{"runs": out}))
	}
	return errors.Join(errs...)
}

// ruleOf reads a rule of retention.
func ruleOf(r *recording.Retention) (rule team.Rule, err error) {
	rule.Keep, rule.Tag = r.Keep, r.Tag
	if r.OlderThan != "" {
		if rule.Older, err = library.ParseAge(r.OlderThan); err != nil {
			return rule, prefixedError("older-than", err)
		}
	}
	if r.MaxSize != "" {
		if rule.MaxSize, err = parseSize(r.MaxSize); err != nil {
			return rule, prefixedError("max-size", err)
		}
	}
	switch {
	case r.Keep < 0:
		return rule, fmt.Errorf("keep: %d: want how many of the newest stay", r.Keep)
	case r.Tag != "" && !rule.Asks():
		return rule, errors.New("tag: says which runs it is about: older-than, keep or max-size says which of them go")
	}
	return rule, nil
}

// rules are those of the project's retention in tapedeck.yaml.
func (o *storeFlags) rules() (rules []team.Rule, err error) {
	for i := range o.retention {
		rule, err := ruleOf(&o.retention[i])
		if err == nil && !rule.Asks() {
			err = errors.New("want older-than, keep or max-size")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: store: retention: %w", recording.ConfigName, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// rules are those that the flags ask for, else those of tapedeck.yaml.
func (o *gcOptions) rules() ([]team.Rule, error) {
	rule, err := ruleOf(&recording.Retention{OlderThan: o.olderThan, Keep: o.keep, MaxSize: o.maxSize, Tag: o.tag})
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	if rule.Asks() {
		return []team.Rule{rule}, nil
	}
	return o.store.rules()
}

// gcStore takes away what no run of a store needs, and runs of its project by rules.
func gcStore(ctx context.Context, s team.Access, o *gcOptions, std *console) error {
	rules, err := o.rules()
	if err != nil {
		return err
	}
	if o.dryRun {
		return gcStoreDry(ctx, s, o.store.project, rules, std)
	}
	removed := []*team.Tombstone{}
	if len(rules) > 0 {
		key, err := signer(s)
		if err != nil {
			return err
		}
		for i := range rules {
			gone, err := s.Prune(ctx, o.store.project, &rules[i], key)
			if removed = append(removed, gone...); err != nil {
				return storeHint(err)
			}
		}
	}
	blobs, err := s.Sweep(ctx)
	if std.json {
		return errors.Join(err, printJSON(std.out, map[string]any{"tombstones": removed, "blobs": len(blobs)}))
	}
	took := ", and took away " + plural(len(blobs), "blob", "blobs") + " that no run has"
	if _, direct := s.(*team.Store); !direct { // which does not tell
		took = ""
	}
	std.say("purged %s%s", plural(len(removed), "run", "runs"), took)
	return storeHint(err)
}

// gcStoreDry says which runs would go.
func gcStoreDry(ctx context.Context, s team.Access, project string, rules []team.Rule, std *console) error {
	out, seen, bytes := []team.Expired{}, make(map[string]bool), int64(0)
	for i := range rules {
		expired, err := s.Expired(ctx, project, &rules[i])
		if err != nil {
			return storeHint(err)
		}
		for _, e := range expired {
			if !seen[e.ID] {
				seen[e.ID], out, bytes = true, append(out, e), bytes+e.Size
			}
		}
	}
	if std.json {
		return printJSON(std.out, map[string]any{"would_purge": out, "bytes": bytes})
	}
	for _, e := range out {
		visible.Fprintf(std.out, "%s  %s  %s\n", e.ID, stamp(e.StartedAt), size(e.Size))
	}
	return std.say("would purge %s, %s", plural(len(out), "run", "runs"), size(bytes))
}
