package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

type replayOptions struct {
	verdictFlags
	mode   string
	speed  string
	keep   string
	output string
	proxy  bool
	tty    bool
	tree   string
	watch  []string
	json   bool
}

func newReplayCommand(std streams) *cobra.Command {
	var o replayOptions
	cmd := withHelp("replay", &cobra.Command{
		Args:              takes("REC…"),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 1 && dash != 1 {
				return fmt.Errorf("replay takes one REC; another program goes behind --: tapedeck replay %s -- %s", args[0], args[1])
			}
			return runReplay(cmd.Context(), &o, args[0], args[1:], std)
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.mode, "mode", "semantic", "what must match: semantic, outcome, byte-identical or phase-aware")
	f.StringVar(&o.speed, "speed", "collapsed", "collapsed (no waiting), realtime (the head of an answer comes with its first bytes), or N times as fast")
	f.StringVar(&o.keep, "keep", "", "`directory` that gets the work tree as the replay left it")
	f.StringVarP(&o.output, "output", "o", "", "`directory` that gets the replay as a recording of its own, unsealed")
	o.define(f)
	o.defineStrict(f)
	f.StringVar(&o.tree, "tree", "recorded", "the work tree that the program finds: recorded, or now (as it is on the disk)")
	f.StringArrayVar(&o.watch, "watch", nil, watchHelp)
	f.BoolVar(&o.tty, "tty", false, "compare the terminal's screens in place of its bytes")
	f.BoolVar(&o.proxy, "proxy", false, "run the program outside the jail and answer what heeds HTTP_PROXY")
	f.BoolVar(&o.json, "json", false, "the report as JSON on stdout")
	completeVerdict(cmd)
	completeFlag(cmd, "tree", "recorded", "now")
	completeFlag(cmd, "speed", "collapsed", "realtime")
	return cmd
}

func runReplay(ctx context.Context, o *replayOptions, name string, argv []string, std streams) error {
	speed, err := parseSpeed(o.speed)
	if err != nil {
		return err
	}
	mode, err := fidelity.ParseMode(o.mode)
	if err != nil {
		return fmt.Errorf("--mode: %w", err)
	}
	if o.tree != "recorded" && o.tree != "now" {
		return fmt.Errorf("--tree %q: want recorded or now", o.tree)
	}
	text, err := o.text(std.err)
	if err != nil {
		return err
	}
	replay, err := o.replays(name, std)
	if err != nil {
		return err
	}
	stdout := std.out
	if o.json {
		stdout = std.err
	}
	signals, stop := catchSignals()
	defer stop()
	restored := sync.OnceFunc(progressFor(std, o.json).busy("restoring what the run found"))
	defer restored()
	v, err := replay(ctx, &deck.ReplayOptions{
		Argv: argv, Streams: deck.Streams{Stdout: stdout, Stderr: std.err}, Signals: signals,
		Mode: mode, Speed: speed, Keep: o.keep, Out: o.output, Proxy: o.proxy, Screens: o.tty, TreeNow: o.tree == "now", Watch: o.watch, Starting: restored, Log: logger(std.err),
	})
	if err != nil {
		return err
	}
	endLine(std.err, v.OpenLine)
	return o.hold(v.Report, o.json, std.out, std.err, text)
}

// replays returns what replays name: a recording, or a bare tape, whose program gets our stdin.
func (o *replayOptions) replays(name string, std streams) (func(context.Context, *deck.ReplayOptions) (*deck.Verdict, error), error) {
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() && !library.LooksPacked(name) {
		return func(ctx context.Context, opts *deck.ReplayOptions) (*deck.Verdict, error) {
			if !isTerminal(std.in) {
				opts.Stdin = std.in
			}
			return deck.ReplayTape(ctx, name, opts)
		}, nil
	}
	rec, err := openRecording(name)
	return func(ctx context.Context, opts *deck.ReplayOptions) (*deck.Verdict, error) {
		return deck.Replay(ctx, rec, opts)
	}, err
}

// parseSpeed reads collapsed, realtime or a factor.
func parseSpeed(s string) (float64, error) {
	switch s {
	case "collapsed", "":
		return 0, nil
	case "realtime":
		return 1, nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n <= 0 || n > 1e6 {
		return 0, fmt.Errorf("--speed %q: want collapsed, realtime, or how many times as fast, as in 10", s)
	}
	return n, nil
}
