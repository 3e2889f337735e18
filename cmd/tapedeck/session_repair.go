package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

type sessionRepairOptions struct {
	output string
	force  bool
	json   bool
}

func newSessionRepairCommand(std streams) *cobra.Command {
	var o sessionRepairOptions
	cmd := withHelp("session repair", &cobra.Command{
		Args:              takes("FILE"),
		ValidArgsFunction: sessionNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSessionRepair(cmd.Context(), &o, args[0], std)
		},
	})
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`file` of the repaired copy, - for stdout")
	f.BoolVarP(&o.force, "force", "f", false, "replace the file where it is there")
	f.BoolVar(&o.json, "json", false, "what was found as JSON")
	return cmd
}

func runSessionRepair(ctx context.Context, o *sessionRepairOptions, name string, std streams) error {
	if o.json && o.output == "-" {
		return errors.New("--json and -o - both take stdout: name a file with -o")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	p := progressFor(std, o.json)
	src, err := findSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer src.close()
	if o.output != "" {
		if err := src.keep(); err != nil {
			return err
		}
	}
	found, err := o.examine(ctx, src, p)
	p.end()
	if err != nil {
		return orInterrupted(err)
	}
	if o.output != "" {
		if err := o.copy(ctx, src, found, std, p); err != nil {
			return orInterrupted(err)
		}
	}
	return o.tell(src.name, found, std)
}

func (o *sessionRepairOptions) examine(ctx context.Context, src *sessionSource, p *progress) (*sessionlog.Findings, error) {
	log, err := src.log(ctx, p)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return sessionlog.Examine(log.Reader)
}

// copy writes the repaired copy, never over the log itself.
func (o *sessionRepairOptions) copy(ctx context.Context, src *sessionSource, found *sessionlog.Findings, std streams, p *progress) error {
	if a, err := os.Stat(src.path); err == nil {
		if b, err := os.Stat(o.output); err == nil && os.SameFile(a, b) {
			return fmt.Errorf("-o %s is the log itself, which is never changed: name another file", o.output)
		}
	}
	log, err := src.log(ctx, p)
	if err != nil {
		return err
	}
	defer log.Close()
	n, err := putWhole(o.output, o.force, std.out, func(w io.Writer) error { return found.WriteCopy(w, log.Reader) })
	p.end()
	if err != nil || o.output == "-" || o.json {
		return err
	}
	_, err = visible.Fprintf(std.err, "tapedeck: wrote %s: %s\n", o.output, size(n))
	return err
}

// repairReport is what session repair --json prints.
type repairReport struct {
	Log      string               `json:"log"`
	Findings []sessionlog.Finding `json:"findings"`
	Copy     string               `json:"copy,omitempty"`
}

func (o *sessionRepairOptions) tell(name string, found *sessionlog.Findings, std streams) error {
	list := found.List
	if list == nil {
		list = []sessionlog.Finding{}
	}
	err := o.write(name, list, std)
	if err == nil && len(list) > 0 {
		err = &statusError{status: statusDiverged}
	}
	return err
}

func (o *sessionRepairOptions) write(name string, list []sessionlog.Finding, std streams) error {
	if o.json {
		return printJSON(std.out, &repairReport{name, list, o.output})
	}
	out := std.out
	if o.output == "-" {
		out = std.err // stdout has the copy
	}
	if len(list) == 0 {
		_, err := visible.Fprintf(out, "%s: nothing to repair\n", name)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, f := range list {
		where := "-"
		if f.Turn != "0" {
			where = string(f.Turn)
		}
		visible.Fprintf(w, "line %d\tturn %s\t%s\t%s\t%s\n", f.Line, where, string(f.Code), f.CallID, f.Message)
	}
	return w.Flush()
}
