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
	cmd := &cobra.Command{
		Use:   "replay REC|FILE.tape [flags] [-- CMD [ARG…]]",
		Short: "Run a recorded program again as a closed world and compare",
		Long: `Runs the recorded program again with its arguments, environment, stdin and work tree, every answer taken
from the tape and nothing dialled, and compares the two runs lane by lane. The program's output goes where it went;
the verdict goes to stderr, or with --json to stdout alone (the program's output then goes to stderr).

With -- CMD another program, or another version of it, runs against the same tape. A program that lies in the work tree runs
as it was recorded; --tree now runs it as it is on the disk now, among what the recorded run left there (tapedeck apply
REC --reverse takes that back first). Its environment and stdin are the recorded ones: env gives it another.

With --tty the screens of its terminal are compared, in place of the bytes that drew them: whenever something was typed, and
at the end. Keys are typed once the screen shows what it showed. What moves by itself (a spinner, a clock) is masked, and counted
as animation. docs/terminal.md has the rest.

With --proxy it runs outside the jail, in a copy of the recorded work tree: what heeds HTTP_PROXY is answered from the
tape, and nothing keeps the rest from the real network and disk. The verdict notes it. A recording in which nothing came
through the proxy cannot be compared so (status 1).

FILE.tape is a bare tape: of a test (httptape), or of the cassette of another program (session import). It holds exchanges and
no program, so one must stand behind --. It runs in the present directory with the environment and stdin as they are now, every
answer taken from the tape and nothing dialled, and nothing that it changes outlives it: --keep gets the work tree as it left
it. What it asked for is compared, and nothing else.

Side traffic (docs/masking.md) that differs, such as batches of events, has a line of its own and does not gate; with --strict it
ends with 2.
` + modesHelp + `
Masks of times, ids and the like take out what differs in every run; where such a value differs the verdict is FAITHFUL, masked,
with both values a line (docs/masking.md), and --strict ends with 2.

Exit status: 0 faithful, 2 diverged, 1 it could not be run or compared.`,
		Example: `  tapedeck replay last
  tapedeck replay last --json
  tapedeck replay last --tty                           # a full screen: vim, a TUI
  tapedeck replay last --tree now                      # after a change to the agent's own source
  tapedeck replay last -- env MODEL=small python3 agent.py
  tapedeck replay 20261121 -- gemini -p "another prompt"
  tapedeck replay testdata/chat.tape -- python3 agent.py`,
		Args:              takes("REC…"),
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); len(args) > 1 && dash != 1 {
				return fmt.Errorf("replay takes one REC; another program goes behind --: tapedeck replay %s -- %s", args[0], args[1])
			}
			return runReplay(cmd.Context(), &o, args[0], args[1:], std)
		},
	}
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
