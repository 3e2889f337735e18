package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/player"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type cassettePlayOptions struct {
	speed   float64
	from    time.Duration
	maxIdle time.Duration
	partial bool
}

func newCassettePlayCommand(std *console) *cobra.Command {
	var o cassettePlayOptions
	cmd := command("cassette play", "CASSETTE", func(cmd *cobra.Command, args []string) error {
		return runCassettePlay(cmd.Context(), &o, args[0], std)
	})
	f := cmd.Flags()
	parsedFlag(f, &o.speed, "speed", "", "`N` times as fast, realtime, or collapsed: all at once", parseSpeed)
	offsetFlag(f, &o.from, "from", "from this `time` on: 1500 (ms), 1.5s or 2m; what was printed before is there at once")
	f.DurationVar(&o.maxIdle, "max-idle", 0, "the longest `pause`, as in 2s")
	f.BoolVar(&o.partial, "partial", false, partialHelp)
	completeFlag(cmd, "speed", "realtime", "collapsed", "2", "4", "0.5")
	return cmd
}

func runCassettePlay(ctx context.Context, o *cassettePlayOptions, name string, std *console) error {
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
	opts := &player.Options{Speed: o.speed, From: o.from, MaxIdle: o.maxIdle}
	if isTerminal(std.out) {
		err = playHere(ctx, r, opts, std)
	} else {
		opts.Raw = true
		if o.speed == 0 {
			opts.Speed = math.Inf(1)
		}
		err = player.Play(ctx, r, std.out, opts)
	}
	return interruptedIs130(err)
}

// playHere plays on the caller's terminal, which is as it was when it returns.
func playHere(ctx context.Context, r *cassette.Reader, o *player.Options, std *console) error {
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
		keys, stop, err := heard(caller, player.Keys)
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

// heard are the keys, or what else parse makes of what is typed, until stop is called.
func heard[K any](caller *terminal.Caller, parse func([]byte) []K) (_ <-chan K, stop func(), err error) {
	keys := make(chan K, 64)
	stop, err = caller.ReadKeys(func(b []byte) {
		for _, k := range parse(b) {
			select {
			case keys <- k:
			default: // faster than can be followed
			}
		}
	})
	return keys, stop, err
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

type cassetteFramesOptions struct {
	derive  bool
	partial bool
	last    bool
	from    time.Duration
	to      time.Duration
}

func newCassetteFramesCommand(std *console) *cobra.Command {
	var o cassetteFramesOptions
	cmd := command("cassette frames", "CASSETTE", func(cmd *cobra.Command, args []string) error {
		return runCassetteFrames(cmd.Context(), &o, args[0], std)
	})
	f := cmd.Flags()
	f.BoolVar(&o.derive, "derive", false, "make the frames from the output, one a chunk")
	f.BoolVar(&o.last, "last", false, "only the last one")
	offsetFlag(f, &o.from, "from", "only frames from this `time` on: 1500 (ms), 1.5s or 2m")
	offsetFlag(f, &o.to, "to", "only frames up to this `time`")
	f.BoolVar(&o.partial, "partial", false, partialHelp)
	std.jsonFlag(cmd, "one JSON object a line")
	return cmd
}

func runCassetteFrames(ctx context.Context, o *cassetteFramesOptions, name string, std *console) error {
	r, err := openCassette(name, o.partial, std)
	if err != nil {
		return err
	}
	defer r.Close()
	out := bufio.NewWriterSize(std.out, 64<<10)
	show := writeFrame
	if std.json {
		show = writeFrameJSON
	}
	n := 0
	for f, err := range o.frames(r) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			out.Flush()
			return err
		}
		n++
		if err := show(out, f); err != nil {
			return err
		}
	}
	if n == 0 {
		std.say("no frames: nothing was printed, or not in that time")
	}
	return out.Flush()
}

// frames are those that were asked for.
func (o *cassetteFramesOptions) frames(r *cassette.Reader) iter.Seq2[*cassette.Frame, error] {
	if o.last && !o.derive {
		return lastRecorded(r, o.to)
	}
	all := r.Frames()
	if o.derive {
		all = r.Derive(&cassette.DeriveOptions{From: o.from})
	}
	return func(yield func(*cassette.Frame, error) bool) {
		var last *cassette.Frame
		for f, err := range all {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case f.Time() < o.from:
				continue
			case o.to > 0 && f.Time() > o.to:
				if last != nil {
					yield(last, nil)
				}
				return
			case o.last:
				last = f
			case !yield(f, nil):
				return
			}
		}
		if last != nil {
			yield(last, nil)
		}
	}
}

// lastRecorded is the last frame up to a time, which needs no reading of those before.
func lastRecorded(r *cassette.Reader, to time.Duration) iter.Seq2[*cassette.Frame, error] {
	return func(yield func(*cassette.Frame, error) bool) {
		f, err := r.LastFrame()
		if to > 0 {
			f, err = r.FrameAt(to)
		}
		if f != nil || err != nil {
			yield(f, err)
		}
	}
}

// writeFrame shows f to people: a line that says when, and the rows down to the last that is not blank.
func writeFrame(w *bufio.Writer, f *cassette.Frame) error {
	title := ""
	if f.Title != "" {
		title = fmt.Sprintf("  %q", visible.Line(f.Title))
	}
	hidden := ""
	if !f.Cursor.Visible {
		hidden = " hidden"
	}
	if _, err := visible.Fprintf(w, "── %s  seq %d  %dx%d  cursor %d,%d%s%s\n", clockTime(f.Time()), f.Seq, f.Size.Cols, f.Size.Rows,
		f.Cursor.Row, f.Cursor.Col, hidden, title); err != nil {
		return err
	}
	end := len(f.Text)
	for end > 0 && f.Text[end-1] == "" {
		end--
	}
	for _, row := range f.Text[:end] {
		io.WriteString(w, visible.Line(row))
		if err := w.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

// shownFrame is a line of cassette frames --json.
type shownFrame struct {
	Seq      uint64          `json:"seq"`
	TMS      int64           `json:"t_ms"`
	Size     cassette.Size   `json:"size"`
	Text     []string        `json:"text"`
	Cursor   cassette.Cursor `json:"cursor"`
	Title    string          `json:"title"`
	RawStart int64           `json:"raw_start"`
	RawEnd   int64           `json:"raw_end"`
	G        uint64          `json:"g,omitempty"`
}

func writeFrameJSON(w *bufio.Writer, f *cassette.Frame) error {
	for len(f.Text) < f.Size.Rows && len(f.Text) < maxSide { // other producers leave blank rows out
		f.Text = append(f.Text, "")
	}
	b, err := jsonscan.Marshal(&shownFrame{f.Seq, f.TMS, f.Size, f.Text, f.Cursor, f.Title, f.RawStart, f.RawEnd, f.G})
	if err != nil {
		return err
	}
	w.Write(b)
	return w.WriteByte('\n')
}
