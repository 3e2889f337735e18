package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/compare"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

type compareOptions struct {
	colorFlag
	compare.Options
	markdown bool
}

func newCompareCommand(std *console) *cobra.Command {
	var o compareOptions
	cmd := command("compare", "REC REC…", interruptibly(func(cmd *cobra.Command, args []string) error { return runCompare(cmd.Context(), &o, args, std) }))
	f := cmd.Flags()
	f.StringVar(&o.Verify, "verify", "", "`command` of the shell that is run over the files as each run left them")
	f.DurationVar(&o.Timeout, "verify-timeout", compare.DefaultTimeout, "how long it may take, as in 30s or 2m")
	f.IntVarP(&o.Jobs, "jobs", "j", 0, "how many recordings at once; 0 is as many as there are processors")
	f.BoolVar(&o.markdown, "markdown", false, "tables of Markdown")
	o.defineColor(cmd)
	o.defineNoColor(cmd)
	std.jsonFlag(cmd, "the comparison as JSON")
	cmd.MarkFlagsMutuallyExclusive("markdown", "json")
	return cmd
}

func runCompare(ctx context.Context, o *compareOptions, names []string, std *console) error {
	if len(names) > compare.Most {
		return fmt.Errorf("compare takes %d recordings at most, got %d", compare.Most, len(names))
	}
	colours, err := o.colours(std.out)
	if err != nil {
		return err
	}
	return withRecordings(ctx, names, std.progress(), func(ctx context.Context, recs []*recording.Recording, prices *llm.Prices) error {
		var done func()
		o.Prices = prices
		o.Step, done = std.progress().counted("comparing")
		c, err := compare.Run(ctx, recs, &o.Options)
		done()
		if err != nil {
			return err
		}
		if std.json {
			err = printJSON(std.out, c)
		} else {
			err = c.Write(std.out, compare.Form{Markdown: o.markdown, Colour: colours})
		}
		return errors.Join(err, checked(c))
	})
}

// withRecordings calls f with recordings by their names, packed ones too, and the project's prices, until ^C.
func withRecordings(ctx context.Context, names []string, p *progress, f func(context.Context, []*recording.Recording, *llm.Prices) error) error {
	prices, err := projectPrices()
	if err != nil {
		return err
	}
	recs, clean, err := openAll(ctx, names, p)
	defer clean()
	if err != nil {
		return err
	}
	return f(ctx, recs, prices)
}

// checked is the end of a command whose check did not pass everywhere: 1 where it did not run in some end state.
func checked(c *compare.Comparison) error {
	status, names := statusDiverged, []string{}
	for _, r := range c.Failed() {
		names = append(names, r.Name())
		if r.Check.Why != "" {
			status = statusFailed
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &statusError{status, fmt.Errorf("--verify did not pass for %s", strings.Join(names, ", "))}
}

// openAll opens recordings, packed ones too, which stay as they are. clean is to be called in any case.
func openAll(ctx context.Context, names []string, p *progress) (recs []*recording.Recording, clean func(), err error) {
	var cleans []func()
	clean = func() {
		for _, c := range cleans {
			c()
		}
	}
	for _, name := range names {
		path, done, err := anyTape(ctx, name, p)
		if err != nil {
			return nil, clean, err
		}
		cleans = append(cleans, done)
		rec, err := recording.OpenIfRecording(path)
		if err == nil && rec == nil {
			err = fmt.Errorf("%s is a bare tape, and this takes recordings: tapedeck show reads a bare tape, tapedeck diff compares two", name)
		}
		if err != nil {
			return nil, clean, err
		}
		recs = append(recs, rec)
	}
	return recs, clean, nil
}

// projectPrices are those of the tapedeck.yaml of the work tree that holds the working directory, and those that are built in.
func projectPrices() (*llm.Prices, error) {
	lib, err := openLibrary()
	if err != nil {
		return nil, err
	}
	return recording.PricesOf(filepath.Dir(lib.Dir))
}
