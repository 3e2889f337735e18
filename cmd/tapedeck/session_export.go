package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

type sessionExportOptions struct {
	output  string
	title   string
	maxText int
	full    bool
	force   bool
	json    bool
}

func newSessionExportCommand(std streams) *cobra.Command {
	var o sessionExportOptions
	cmd := withHelp("session export", &cobra.Command{
		Args:              takes("FILE"),
		ValidArgsFunction: sessionNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSessionExport(cmd.Context(), &o, args[0], std)
		},
	})
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "-", "`file` to write, - for stdout")
	f.StringVar(&o.title, "title", "", "`text` of its heading (default: the log's name)")
	f.IntVar(&o.maxText, "max-text", 4000, "`bytes` of one text that are kept")
	f.BoolVar(&o.full, "full", false, "all of every text")
	f.BoolVarP(&o.force, "force", "f", false, "replace the file where it is there")
	f.BoolVar(&o.json, "json", false, "what was written as JSON; takes -o")
	return cmd
}

func runSessionExport(ctx context.Context, o *sessionExportOptions, name string, std streams) error {
	switch {
	case o.json && o.output == "-":
		return errors.New("--json says what was written, and takes -o FILE")
	case o.maxText < 16:
		return errors.New("--max-text takes a number of bytes from 16; --full keeps all")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json)
	log, err := openSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer log.Close()
	if o.title == "" {
		o.title = "Session " + log.name
	}
	if o.full {
		o.maxText = -1
	}
	n, err := putWhole(o.output, o.force, std.out, func(w io.Writer) error {
		return sessionlog.WriteMarkdown(w, log.Reader, &sessionlog.MarkdownOptions{MaxText: o.maxText, Title: o.title})
	})
	p.end()
	if err != nil {
		return orInterrupted(err)
	}
	log.tell(std)
	return o.wrote(n, std)
}

func (o *sessionExportOptions) wrote(n int64, std streams) error {
	if o.output == "-" {
		return nil
	}
	if o.json {
		return printJSON(std.out, map[string]any{"file": o.output, "format": "markdown", "bytes": n})
	}
	_, err := visible.Fprintf(std.err, "tapedeck: wrote %s: %s\n", o.output, size(n))
	return err
}
