package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/runview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

type runsExportOptions struct {
	format string
	output string
	force  bool
	json   bool
}

var runFormats = []string{"jsonl", "session", "markdown"}

func newRunsExportCommand(from *runsOptions, std streams) *cobra.Command {
	o := runsExportOptions{format: runFormats[0]}
	cmd := withHelp("runs export", &cobra.Command{
		Args:              takes("RUN"),
		ValidArgsFunction: runNames(from),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRunsExport(cmd.Context(), from, &o, args[0], std)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.format, "format", o.format, "`form`: "+strings.Join(runFormats, ", "))
	f.StringVarP(&o.output, "output", "o", "-", "`file` to write, - for stdout")
	f.BoolVarP(&o.force, "force", "f", false, "replace the file where it is there")
	f.BoolVar(&o.json, "json", false, "what was written as JSON; takes -o")
	completeFlag(cmd, "format", runFormats...)
	return cmd
}

func (o *runsExportOptions) check() error {
	switch {
	case !slices.Contains(runFormats, o.format):
		return fmt.Errorf("--format %q: want one of %s", o.format, strings.Join(runFormats, ", "))
	case o.json && o.output == "-":
		return errors.New("--json says what was written, and takes -o FILE")
	}
	return nil
}

func runRunsExport(ctx context.Context, from *runsOptions, o *runsExportOptions, name string, std streams) error {
	if err := o.check(); err != nil {
		return err
	}
	return from.withRun(ctx, std, name, func(ctx context.Context, src runSource, id runtrace.ID) error { return o.export(ctx, src, id, std) })
}

func (o *runsExportOptions) export(ctx context.Context, src runSource, id runtrace.ID, std streams) error {
	var e exported
	n, err := putWhole(o.output, o.force, std.out, func(w io.Writer) error {
		buf := bufio.NewWriterSize(w, 64<<10)
		return errors.Join(e.write(ctx, src, id, o.format, buf), buf.Flush())
	})
	if err != nil {
		return err
	}
	if !e.ended {
		visible.Fprintln(std.err, "tapedeck: the run goes on: what it has so far was written")
	}
	if o.json {
		return printJSON(std.out, map[string]any{"run_id": id.Run, "file": o.output, "format": o.format, "records": e.records, "bytes": n, "ended": e.ended})
	}
	if o.output != "-" {
		visible.Fprintf(std.err, "tapedeck: wrote %s: %s, %s\n", o.output, plural(e.records, "record", "records"), size(n))
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

// form is what writes each record, and the end.
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
