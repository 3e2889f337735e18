package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/redact"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newRmCommand(std *console) *cobra.Command {
	cmd := command("rm", "REC…", func(_ *cobra.Command, args []string) error { return runRm(args, std) })
	std.jsonFlag(cmd, "what was deleted as JSON")
	return cmd
}

func runRm(names []string, std *console) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	entries, err := entriesOf(lib, names)
	if err != nil {
		return err
	}
	var removed []string
	left, logged := make(map[string]string), make(map[string]string) // by id
	var errs []error
	step, done := std.progress().counted("removing recordings")
	for i, e := range entries {
		step(int64(i+1), int64(len(entries)))
		r, err := lib.Remove(e)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, r.ID)
		if r.Left != "" {
			left[r.ID] = r.Left
		}
		if r.Log != "" {
			logged[r.ID] = r.Log
		}
	}
	done()
	if std.json {
		errs = append(errs, printJSON(std.out, map[string]any{"removed": nonNil(removed), "left": left, "logged": logged}))
		return errors.Join(errs...)
	}
	sayRemoved(std, removed, left, logged)
	return errors.Join(errs...)
}

func entriesOf(lib *library.Library, names []string) (entries []*library.Entry, err error) {
	for _, name := range names {
		e, err := lib.Entry(name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(entries, func(have *library.Entry) bool { return have.Path == e.Path }) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// sayRemoved says what was removed, what of each was left, and which log lists it, by its id.
func sayRemoved(std *console, removed []string, left, logged map[string]string) {
	for _, id := range removed {
		line := "tapedeck: removed " + id
		if left[id] != "" {
			line += ": " + left[id]
		}
		if logged[id] != "" {
			line += fmt.Sprintf("; it stands in the log %s, and tapedeck seal log verify will say that it is gone", shortPath(logged[id]))
		}
		visible.Fprintln(std.err, line)
	}
}

type gcOptions struct {
	dryRun    bool
	olderThan string
	keep      int
	maxSize   string
	tag       string
	store     storeFlags
	queue     bool
}

func newGCCommand(std *console) *cobra.Command {
	var o gcOptions
	cmd := command("gc", "", func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("keep") && o.keep < 1 {
			return fmt.Errorf("--keep %d: want how many of the newest recordings stay, from 1", o.keep)
		}
		if cmd.Flags().Changed("store") {
			clean := gcStore
			if o.queue {
				clean = gcQueued
			}
			return o.store.access(cmd.Context(), func(ctx context.Context, s team.Access) error { return clean(ctx, s, &o, std) })
		}
		if o.store.project != "" || o.store.blobs != "" || o.queue || o.maxSize != "" || o.tag != "" {
			return errors.New("--project, --blobs, --queue, --max-size and --tag are of a team's store: --store default, or --store URL, says that it is meant")
		}
		return runGC(cmd.Context(), &o, std)
	})
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "remove nothing, say what would go")
	f.StringVar(&o.olderThan, "older-than", "", "also remove finished recordings of this `age`, as in 30d or 12h")
	f.IntVar(&o.keep, "keep", 0, "also remove finished recordings that are not among the newest `N`")
	std.jsonFlag(cmd, "what was removed as JSON")
	f.StringVar(&o.maxSize, "max-size", "", "with --store: what was pushed first goes until the rest has so many `bytes`: a number with K, M, G or T")
	f.StringVar(&o.tag, "tag", "", "with --store: the other flags are about the runs that have this `tag`")
	f.BoolVar(&o.queue, "queue", false, "with --store: have a worker do it")
	o.store.define(f)
	return cmd
}

// age is what --older-than says; 0 where it was not given.
func (o *gcOptions) age() (time.Duration, error) {
	if o.olderThan == "" {
		return 0, nil
	}
	age, err := library.ParseAge(o.olderThan)
	return age, prefixedError("--older-than", err)
}

func runGC(ctx context.Context, o *gcOptions, std *console) error {
	age, err := o.age()
	if err != nil {
		return err
	}
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	step, done := std.progress().counted("looking at recordings")
	r, err := lib.GC(ctx, &library.GCOptions{DryRun: o.dryRun, OlderThan: age, Keep: o.keep, Progress: step})
	done()
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted: what was removed is listed: %w", err)
	}
	if std.json {
		return errors.Join(err, printJSON(std.out, r))
	}
	return errors.Join(err, printGC(r, std))
}

func printGC(r *library.GCReport, std *console) error {
	w := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	for _, g := range r.Removed {
		visible.Fprintf(w, "%s\t%s\t%s\t%s\n", g.What, plural(g.Count, "file", "files"), size(g.Bytes), shortPath(g.Path))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, k := range r.Kept {
		std.say("left alone: %s (%s)", shortPath(k.Path), k.Why)
	}
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	return std.say("%s %s; %s: %s before, %s after", verb,
		plural(len(r.Removed), "thing", "things"), shortPath(r.Library), size(r.Before), size(r.After))
}

func newPackCommand(std *console) *cobra.Command {
	var o library.PackOptions
	cmd := command("pack", "REC FILE", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runPack(cmd.Context(), args[0], args[1], &o, std)
	}))
	cmd.Flags().BoolVar(&o.Seed, "with-seed", false, "give the seed of this run's random numbers along")
	std.jsonFlag(cmd, "what was packed as JSON")
	return cmd
}

func runPack(ctx context.Context, name, file string, o *library.PackOptions, std *console) error {
	rec, err := openRecording(name)
	if err != nil {
		return err
	}
	p := std.progress()
	o.Progress = p.bytes("packing")
	packing, err := library.Pack(ctx, rec, file, o)
	p.end()
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, packing)
	}
	if !rec.Finished() {
		std.say("unfinished: the recorder did not come to its end")
	}
	for _, l := range packing.LeftOut {
		std.say("left out: %s (%s)", l.Path, l.Why)
	}
	if packing.Seed {
		std.say("with its seed: who has the file knows every random number of this run, keys and tokens that it made too")
	}
	return std.say("packed %s into %s: %s, %s in %s", packing.ID, shortPath(packing.File),
		size(packing.Size), size(packing.Bytes), plural(int(packing.Files), "file", "files"))
}

// interruptible returns a context that ends with the first signal that is meant to end the command, so that it can clean
// up; the second ends it at once.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// interruptibly has run end so, and says what that means.
func interruptibly(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		cmd.SetContext(ctx)
		return orInterrupted(run(cmd, args))
	}
}

// orInterrupted says of the end of an interruptible context what it means.
func orInterrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: nothing was left behind")
	}
	return err
}

type unpackOptions struct {
	output  string
	maxSize int64
}

func newUnpackCommand(std *console) *cobra.Command {
	var o unpackOptions
	cmd := command("unpack", "FILE", interruptibly(func(cmd *cobra.Command, args []string) error { return runUnpack(cmd.Context(), &o, args[0], std) }))
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault // files
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`directory` of the recording (default: its id in .tapedeck/)")
	parsedFlag(f, &o.maxSize, "max-size", "64G", "refuse a file that declares more `bytes` than this: a number with K, M, G or T", parseSize)
	std.jsonFlag(cmd, "what was unpacked as JSON")
	return cmd
}

func runUnpack(ctx context.Context, o *unpackOptions, file string, std *console) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	p := std.progress()
	rec, err := lib.Unpack(ctx, file, &library.UnpackOptions{
		Output: o.output, Limits: packed.Limits{Bytes: o.maxSize}, Progress: p.bytes("unpacking"),
	})
	p.end()
	if err != nil {
		return unpackHint(err)
	}
	if rec.Finished() {
		page.Prepare(rec)
	}
	m := rec.Manifest
	if std.json {
		return printJSON(std.out, map[string]any{"recording": rec.Dir, "id": m.ID, "state": m.State})
	}
	if !rec.Finished() {
		std.say("unfinished: the recorder did not come to its end")
	}
	return std.say("unpacked %s", shortPath(rec.Dir))
}

// unpackHint adds the next step to a refusal of unpack that has one.
func unpackHint(err error) error {
	var limit *packed.LimitError
	switch {
	case errors.As(err, &limit) && limit.What == "bytes":
		return fmt.Errorf("%w: if you trust the file, give --max-size %d", err, limit.Have)
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%w: name another directory with -o, or `tapedeck rm` that recording first", err)
	}
	return damagedHint(err)
}

// lookHint is unpackHint for commands that look into a packed recording, which have none of the flags of unpack.
func lookHint(err error, path string) error {
	var limit *packed.LimitError
	if errors.As(err, &limit) && limit.What == "bytes" {
		return fmt.Errorf("%w: if you trust the file, `tapedeck unpack %s --max-size %d` and look at what that made",
			err, shortPath(path), limit.Have)
	}
	return damagedHint(err)
}

func damagedHint(err error) error {
	if errors.Is(err, packed.ErrDamaged) {
		return fmt.Errorf("%w: get the file again from whoever packed it", err)
	}
	return orInterrupted(err)
}

// unpacked returns the recording that is packed in the file at path, unpacked for as long as clean is not called; path
// itself where it is anything else.
func unpacked(ctx context.Context, path string, p *progress) (dir string, clean func(), err error) {
	if !library.LooksPacked(path) {
		return path, func() {}, nil
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	rec, clean, err := library.UnpackTemp(ctx, path, p.bytes("unpacking"))
	p.end()
	if err != nil {
		return "", nil, lookHint(err, path)
	}
	return rec.Dir, clean, nil
}

type redactOptions struct {
	redact.Options
	matches, values []string
	email           bool
}

func newRedactCommand(std *console) *cobra.Command {
	var o redactOptions
	cmd := command("redact", "REC", interruptibly(func(cmd *cobra.Command, args []string) error { return runRedact(cmd.Context(), &o, args[0], std) }))
	f := cmd.Flags()
	f.StringArrayVar(&o.matches, "match", nil, "take out what this `expression` matches (repeatable; (?i) in front: whatever the case)")
	f.BoolVar(&o.email, "email", false, "take out addresses of email")
	f.StringArrayVar(&o.values, "value-from", nil, "take out each line of this `file` (repeatable)")
	f.StringVarP(&o.Output, "output", "o", "", "the new recording's `directory`")
	f.BoolVar(&o.NoSeal, "no-seal", false, "leave the new recording unsealed")
	f.BoolVarP(&o.DryRun, "dry-run", "n", false, "say what would be replaced, and leave nothing")
	std.jsonFlag(cmd, "the result as JSON on stdout")
	return cmd
}

// rules are those that the flags name.
func (o *redactOptions) rules() (rules []redact.Rule, err error) {
	for _, expr := range o.matches {
		r, err := redact.Match(expr)
		if err != nil {
			return nil, fmt.Errorf("--match: %w", err)
		}
		rules = append(rules, r)
	}
	if o.email {
		rules = append(rules, redact.Email())
	}
	for _, file := range o.values {
		r, err := redact.ValuesFrom(file)
		if err != nil {
			return nil, fmt.Errorf("--value-from: %w", err)
		}
		rules = append(rules, r)
	}
	if len(rules) == 0 {
		return nil, errors.New("nothing says what to take out: --match RE, --email or --value-from FILE")
	}
	return rules, nil
}

func runRedact(ctx context.Context, o *redactOptions, name string, std *console) error {
	var err error
	if o.Rules, err = o.rules(); err != nil {
		return err
	}
	rec, clean, err := openRecordingOrPacked(ctx, name)
	if err != nil {
		return err
	}
	defer clean()
	if o.Output == "" && !o.DryRun {
		return errors.New("-o says where the new recording goes: -o clean.rec")
	}
	if o.Output, err = filepath.Abs(cmp.Or(o.Output, rec.Dir)); err != nil {
		return err
	}
	end := std.progress().busy("taking it out")
	res, err := redact.Run(ctx, rec, &o.Options)
	end()
	if err != nil {
		return err
	}
	if !o.DryRun {
		remember(res.ID, o.Output, std.err)
		if made, err := recording.Open(o.Output); err == nil {
			page.Prepare(made)
		}
	}
	if std.json {
		return printJSON(std.out, res)
	}
	return tellRedacted(std.out, std.err, res)
}

// openRecordingOrPacked opens a recording by its name, or a packed one in a temporary directory that clean removes.
func openRecordingOrPacked(ctx context.Context, name string) (rec *recording.Recording, clean func(), err error) {
	if library.LooksPacked(name) {
		return library.UnpackTemp(ctx, name, nil)
	}
	rec, err = openRecording(name)
	return rec, func() {}, err
}

// remember makes the library know a recording that lies elsewhere.
func remember(id, dir string, w io.Writer) {
	lib, err := openLibrary()
	if err == nil {
		err = lib.Point(id, dir, false)
	}
	if err != nil {
		visible.Fprintf(w, "tapedeck: it is known by its path alone, not by its id: %v\n", err)
	}
}

// tellRedacted says what was replaced, and where.
func tellRedacted(out, errs io.Writer, r *redact.Result) error {
	for _, rule := range slices.Sorted(maps.Keys(r.Values)) {
		visible.Fprintf(out, "%s: %s\n", rule, plural(r.Values[rule], "text", "different texts"))
	}
	for _, p := range r.Places {
		visible.Fprintf(out, "  in %s\n", plural(p.Count, p.What, p.What+"s"))
	}
	switch {
	case r.Path == "":
		visible.Fprintln(errs, "tapedeck: it would be made, and was not (--dry-run)")
	case r.Sealed == nil:
		visible.Fprintf(errs, "tapedeck: %s: made of %s, not sealed\n", shortPath(r.Path), r.Of)
	default:
		visible.Fprintf(errs, "tapedeck: %s: made of %s\n", shortPath(r.Path), r.Of)
	}
	return nil
}
