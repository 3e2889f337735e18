package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/player"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type cassettePlayOptions struct {
	speed   string
	from    offsetFlag
	maxIdle time.Duration
	partial bool
}

func newCassettePlayCommand(std streams) *cobra.Command {
	var o cassettePlayOptions
	cmd := withHelp("cassette play", &cobra.Command{
		Args:              takes("CASSETTE"),
		ValidArgsFunction: cassetteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return runCassettePlay(cmd.Context(), &o, args[0], std) },
	})
	f := cmd.Flags()
	f.StringVar(&o.speed, "speed", "", "`N` times as fast, realtime, or collapsed: all at once")
	f.Var(&o.from, "from", "from this `time` on: 1500 (ms), 1.5s or 2m; what was printed before is there at once")
	f.DurationVar(&o.maxIdle, "max-idle", 0, "the longest `pause`, as in 2s")
	f.BoolVar(&o.partial, "partial", false, partialHelp)
	completeFlag(cmd, "speed", "realtime", "collapsed", "2", "4", "0.5")
	return cmd
}

// playSpeed reads --speed; 0 is for none.
func playSpeed(s string) (float64, error) {
	switch s {
	case "":
		return 0, nil
	case "realtime":
		return 1, nil
	case "collapsed":
		return math.Inf(1), nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "x"), 64)
	if err != nil || !(n > 0) || n > 1e6 {
		return 0, fmt.Errorf("--speed %q: want how many times as fast, as in 4 or 0.5, realtime, or collapsed", s)
	}
	return n, nil
}

func runCassettePlay(ctx context.Context, o *cassettePlayOptions, name string, std streams) error {
	speed, err := playSpeed(o.speed)
	if err != nil {
		return err
	}
	if o.maxIdle < 0 {
		return fmt.Errorf("--max-idle %v: want a time of 0 or more", o.maxIdle)
	}
	r, err := openCassette(name, o.partial, std)
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	opts := &player.Options{Speed: speed, From: o.from.Duration, MaxIdle: o.maxIdle}
	if isTerminal(std.out) {
		err = playHere(ctx, r, opts, std)
	} else {
		opts.Raw = true
		if speed == 0 {
			opts.Speed = math.Inf(1)
		}
		err = player.Play(ctx, r, std.out, opts)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &statusError{status: 128 + int(syscall.SIGINT)}
	case errors.Is(err, syscall.EPIPE): // who read has seen enough
		return nil
	}
	return err
}

// playHere plays on the caller's terminal, which is as it was when it returns.
func playHere(ctx context.Context, r *cassette.Reader, o *player.Options, std streams) error {
	caller := terminal.NewCaller([3]any{std.in, std.out, std.err})
	defer caller.Close()
	if err := warnOfSize(r, caller, std.err); err != nil {
		return err
	}
	withKeys := isTerminal(std.in)
	if caller != nil && caller.Foreground() {
		if err := caller.Take(withKeys); err != nil {
			return err
		}
		defer caller.Release(true)
	}
	if withKeys {
		keys := make(chan player.Key, 16)
		stop, err := caller.ReadKeys(func(b []byte) {
			for _, k := range player.Keys(b) {
				select {
				case keys <- k:
				default: // faster than can be followed
				}
			}
		})
		if err != nil {
			return err
		}
		defer stop()
		o.Keys = keys
	}
	left := new(terminal.Leftovers)
	w := io.MultiWriter(left, std.out)
	defer func() { endPlay(left, std.out) }()
	return player.Play(ctx, r, w, o)
}

// endPlay puts back what the program had turned on.
func endPlay(left *terminal.Leftovers, w io.Writer) {
	w.Write(left.Undo())
	raw(w, "\x1b[0m")
	if left.OpenLine() {
		raw(w, "\r\n")
	}
}

// warnOfSize says where the terminal is smaller than the recorded one ever was.
func warnOfSize(r *cassette.Reader, caller *terminal.Caller, w io.Writer) error {
	size, ok := caller.Size()
	if !ok {
		return nil
	}
	rows, cols := r.Manifest().Terminal.InitialRows, r.Manifest().Terminal.InitialCols
	for e, err := range r.Events(&cassette.EventsOptions{Streams: []cassette.Stream{cassette.StreamInput}}) {
		if err != nil {
			return err
		}
		if s := e.Input.Size; s != nil {
			rows, cols = max(rows, s.Rows), max(cols, s.Cols)
		}
	}
	if rows <= size.Rows && cols <= size.Cols {
		return nil
	}
	_, err := visible.Fprintf(w, "tapedeck: the recorded terminal had up to %d rows and %d columns, this one has %d and %d: make it larger to see it right\n",
		rows, cols, size.Rows, size.Cols)
	return err
}
