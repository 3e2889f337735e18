package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type gcOptions struct {
	dryRun    bool
	olderThan string
	keep      int
	json      bool
}

func newGCCommand(std streams) *cobra.Command {
	var o gcOptions
	cmd := withHelp("gc", &cobra.Command{
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("keep") && o.keep < 1 {
				return fmt.Errorf("--keep %d: want how many of the newest recordings stay, from 1", o.keep)
			}
			return runGC(cmd.Context(), &o, std)
		},
	})
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "remove nothing, say what would go")
	f.StringVar(&o.olderThan, "older-than", "", "also remove finished recordings of this `age`, as in 30d or 12h")
	f.IntVar(&o.keep, "keep", 0, "also remove finished recordings that are not among the newest `N`")
	f.BoolVar(&o.json, "json", false, "what was removed as JSON")
	return cmd
}

func runGC(ctx context.Context, o *gcOptions, std streams) error {
	age, err := parseAge(o.olderThan)
	if err != nil {
		return fmt.Errorf("--older-than: %w", err)
	}
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	step, done := progressFor(std, o.json).counted("looking at recordings")
	r, err := lib.GC(ctx, &library.GCOptions{DryRun: o.dryRun, OlderThan: age, Keep: o.keep, Progress: step})
	done()
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted: what was removed is listed: %w", err)
	}
	if o.json {
		return errors.Join(err, printJSON(std.out, r))
	}
	return errors.Join(err, printGC(r, std))
}

func printGC(r *library.GCReport, std streams) error {
	w := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	for _, g := range r.Removed {
		visible.Fprintf(w, "%s\t%s\t%s\t%s\n", g.What, plural(g.Count, "file", "files"), size(g.Bytes), shortPath(g.Path))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, k := range r.Kept {
		visible.Fprintf(std.err, "tapedeck: left alone: %s (%s)\n", shortPath(k.Path), k.Why)
	}
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	_, err := visible.Fprintf(std.err, "tapedeck: %s %s; %s: %s before, %s after\n", verb,
		plural(len(r.Removed), "thing", "things"), shortPath(r.Library), size(r.Before), size(r.After))
	return err
}

// parseAge reads a duration of Go, or days, as in 30d; "" is none.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(n) * 24 * time.Hour
		if n > 100_000 {
			err = strconv.ErrRange
		}
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q: want an age, as in 30d or 12h", s)
	}
	return d, nil
}
