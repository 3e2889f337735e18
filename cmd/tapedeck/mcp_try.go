package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/mcptest"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type mcpTestOptions struct {
	server  string
	timeout time.Duration
	json    bool
}

func newMCPTestCommand(std streams) *cobra.Command {
	var o mcpTestOptions
	cmd := withHelp("mcp test", &cobra.Command{
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash != 1 || len(args) < 2 {
				return fmt.Errorf("mcp test takes one REC, and the server behind --: tapedeck mcp test last -- python3 server.py")
			}
			return runMCPTest(cmd.Context(), &o, args[0], args[1:], std)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.server, "server", "", "`NAME` of the server, where REC holds several")
	f.DurationVar(&o.timeout, "timeout", mcptest.DefaultTimeout, "how long an answer may take")
	f.BoolVar(&o.json, "json", false, "a line of JSON a request, and one for all")
	return cmd
}

func runMCPTest(ctx context.Context, o *mcpTestOptions, name string, argv []string, std streams) error {
	path, clean, err := anyTape(ctx, name, newProgress(std.err))
	if err != nil {
		return err
	}
	defer clean()
	ctx, stop := interruptible(ctx)
	defer stop()
	opts := &mcptest.Options{Argv: argv, Env: os.Environ(), Server: o.server, Timeout: o.timeout, Stderr: std.err}
	opts.Report = func(r *mcptest.Result) {
		if o.json {
			printMCPTestJSON(std.out, r)
			return
		}
		printMCPTest(std.out, r)
	}
	results, err := mcptest.Run(ctx, path, opts)
	if err != nil {
		return orInterrupted(err)
	}
	counts := make(map[mcptest.Status]int)
	for _, r := range results {
		counts[r.Status]++
	}
	status := statusDone
	if counts[mcptest.Differs]+counts[mcptest.NoAnswer] > 0 {
		status = statusDiverged
	}
	if o.json {
		b, _ := marshal(map[string]any{"version": jsonVersion, "summary": counts, "exit": status})
		raw(std.out, "%s\n", b)
	} else {
		text := plural(len(results), "request", "requests")
		for _, s := range []mcptest.Status{mcptest.Same, mcptest.Differs, mcptest.NoAnswer, mcptest.NotCompared} {
			if counts[s] > 0 {
				text += fmt.Sprintf(", %d %s", counts[s], s)
			}
		}
		visible.Fprintln(std.out, text)
	}
	if status != statusDone {
		return &statusError{status: status}
	}
	return nil
}

func printMCPTestJSON(w io.Writer, r *mcptest.Result) {
	b, err := marshal(struct {
		Version int `json:"version"`
		*mcptest.Result
	}{jsonVersion, r})
	if err == nil {
		raw(w, "%s\n", b)
	}
}

// maxMCPChanges is how many differences of one answer are printed.
const maxMCPChanges = 20

func printMCPTest(w io.Writer, r *mcptest.Result) {
	word := string(r.Status)
	if r.Status == mcptest.Differs || r.Status == mcptest.NoAnswer {
		word = strings.ToUpper(word)
	}
	visible.Fprintf(w, "%-12s %s  %.0f ms\n", word, strings.TrimSpace(r.Server+" "+r.Method+" "+r.Tool), r.MS)
	if r.Why != "" {
		visible.Fprintf(w, "         | %s\n", visible.Line(r.Why))
	}
	below(w, fidelity.Summary(r.Changes, maxMCPChanges))
}
