package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

type cassetteFramesOptions struct {
	derive  bool
	partial bool
	json    bool
	last    bool
	from    offsetFlag
	to      offsetFlag
}

func newCassetteFramesCommand(std streams) *cobra.Command {
	var o cassetteFramesOptions
	cmd := withHelp("cassette frames", &cobra.Command{
		Args:              takes("CASSETTE"),
		ValidArgsFunction: cassetteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCassetteFrames(cmd.Context(), &o, args[0], std)
		},
	})
	f := cmd.Flags()
	f.BoolVar(&o.derive, "derive", false, "make the frames from the output, one a chunk")
	f.BoolVar(&o.last, "last", false, "only the last one")
	f.Var(&o.from, "from", "only frames from this `time` on: 1500 (ms), 1.5s or 2m")
	f.Var(&o.to, "to", "only frames up to this `time`")
	f.BoolVar(&o.partial, "partial", false, partialHelp)
	f.BoolVar(&o.json, "json", false, "one JSON object a line")
	return cmd
}

func runCassetteFrames(ctx context.Context, o *cassetteFramesOptions, name string, std streams) error {
	r, err := openCassette(name, o.partial, std)
	if err != nil {
		return err
	}
	defer r.Close()
	out := bufio.NewWriterSize(std.out, 64<<10)
	show := writeFrame
	if o.json {
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
		visible.Fprintln(std.err, "tapedeck: no frames: nothing was printed, or not in that time")
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
		all = r.Derive(&cassette.DeriveOptions{From: o.from.Duration})
	}
	return func(yield func(*cassette.Frame, error) bool) {
		var last *cassette.Frame
		for f, err := range all {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case f.Time() < o.from.Duration:
				continue
			case o.to.Duration > 0 && f.Time() > o.to.Duration:
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
func lastRecorded(r *cassette.Reader, to offsetFlag) iter.Seq2[*cassette.Frame, error] {
	return func(yield func(*cassette.Frame, error) bool) {
		f, err := r.LastFrame()
		if to.Duration > 0 {
			f, err = r.FrameAt(to.Duration)
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
	b, err := marshal(&shownFrame{f.Seq, f.TMS, f.Size, f.Text, f.Cursor, f.Title, f.RawStart, f.RawEnd, f.G})
	if err != nil {
		return err
	}
	w.Write(b)
	return w.WriteByte('\n')
}
