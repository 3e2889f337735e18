package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/redact"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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
			page.Prepare(made, nil)
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
