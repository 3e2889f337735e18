package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type mcpWrapOptions struct {
	output string
	sync   bool
	noSeal bool
}

func newMCPWrapCommand(std streams) *cobra.Command {
	var o mcpWrapOptions
	cmd := withHelp("mcp wrap", &cobra.Command{
		Args: withStatus(takes("SERVER…"), statusRecorder),
		RunE: func(cmd *cobra.Command, args []string) error { return runMCPWrap(cmd.Context(), &o, args, std) },
	})
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the server is the server's
	f.StringVarP(&o.output, "output", "o", "", "`directory` of the recording (default: a new one in .tapedeck/)")
	f.BoolVar(&o.sync, "sync", false, "fsync at every barrier, so that a power cut loses nothing that the client saw")
	f.BoolVar(&o.noSeal, "no-seal", false, "do not seal the recording at its end")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &statusError{statusRecorder, flagError(cmd, err)} })
	return cmd
}

func runMCPWrap(ctx context.Context, o *mcpWrapOptions, args []string, std streams) error {
	if o.output == "" && program.InJail() { // whose recorder sees the talk, and in which .tapedeck cannot be written to
		return &statusError{statusRecorder, becomeServer(args)}
	}
	boundMemory()
	signals, stop := catchSignals()
	defer stop()
	res, err := deck.WrapMCP(ctx, &deck.RecordOptions{
		Argv: args, Streams: deck.Streams{Stdin: std.in, Stdout: std.out, Stderr: std.err}, Signals: signals, Output: o.output,
		Sync: o.sync, NoSeal: o.noSeal, Log: logger(std.err), Hiding: hiding(std.err),
	})
	if err != nil {
		return &statusError{statusRecorder, err}
	}
	line := fmt.Sprintf("tapedeck: recorded %s: %s, exit %d", shortPath(res.Recording.Dir), wrappedSeen(res), res.Exit.Code)
	if news := sealNews(res); news != "" {
		line += "; " + news
	}
	if _, err := visible.Fprintln(std.err, line); err != nil {
		return &statusError{statusRecorder, err}
	}
	if res.Exit.Code != 0 {
		return &statusError{status: res.Exit.Code}
	}
	return nil
}

// becomeServer runs the server in the place of this process. It returns where that cannot be.
func becomeServer(args []string) error {
	path, err := exec.LookPath(args[0])
	if err == nil {
		err = syscall.Exec(path, args, os.Environ())
	}
	return err
}

// wrappedSeen counts what was said.
func wrappedSeen(res *deck.Result) string {
	if res.Counts["mcp_open"] == 0 {
		return "NOTHING WAS SAID THAT IS MCP"
	}
	text := seen(res)
	if lost := res.Recording.Manifest.Axes["mcp"].NotCovered; len(lost) > 0 {
		text += "; not covered: " + strings.Join(lost, ", ")
	}
	return text
}
