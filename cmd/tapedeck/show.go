package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

type showOptions struct {
	filterFlags
	follow   bool
	payloads bool
	masks    bool
	coverage bool
	json     bool
	prices   string

	filter *follow.Filter
	bill   *llm.Bill // of the records that were shown
}

func newShowCommand(std streams) *cobra.Command {
	var o showOptions
	cmd := withHelp("show", &cobra.Command{
		Args: func(cmd *cobra.Command, args []string) error {
			if o.masks && len(args) == 0 {
				return nil
			}
			return takes("REC")(cmd, args)
		},
		ValidArgsFunction: recordingNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return showMasksHere(o.json, std.out)
			}
			return runShow(cmd.Context(), &o, args[0], std)
		},
	})
	f := cmd.Flags()
	o.define(f)
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until the recorder ends")
	f.BoolVar(&o.payloads, "payloads", false, "with the bytes of requests, answers, files and streams")
	f.BoolVar(&o.masks, "masks", false, "the masks, and how often each was used")
	f.BoolVar(&o.coverage, "coverage", false, "what each axis covered and what not")
	f.BoolVar(&o.json, "json", false, "as JSON")
	f.StringVar(&o.prices, "prices", "", "`file` of prices, as JSON")
	completeFlag(cmd, "kind", follow.KindNames...)
	return cmd
}

func runShow(ctx context.Context, o *showOptions, name string, std streams) (err error) {
	if o.filter, err = o.parse(); err != nil {
		return err
	}
	if o.bill, err = newBill(o.prices); err != nil {
		return err
	}
	path, err := tapeOrRecording(name)
	if err != nil {
		return err
	}
	if err := notForCassette(path); err != nil {
		return err
	}
	path, clean, err := unpacked(ctx, path, progressFor(std, o.json))
	if err != nil {
		return err
	}
	defer clean()
	if o.follow {
		return runFollow(ctx, o, path, std)
	}
	s, err := openShown(path)
	if err != nil {
		return err
	}
	defer s.close()
	switch {
	case o.masks:
		return s.showMasks(o.json, std.out)
	case o.coverage:
		return s.showCoverage(o.json, std.out)
	case s.tape == nil:
		return s.showUnbegun(o, std)
	}
	if s.rec == nil || s.rec.Finished() {
		s.foreignNotes(std.err)
	}
	if o.json {
		return s.showJSON(o, std.out)
	}
	if err := s.showText(o, std.out); err != nil {
		return err
	}
	return s.showEnd(o, std)
}

// shown is what is being shown: a recording's tape, or a bare one.
type shown struct {
	rec    *recording.Recording // nil for a bare tape
	tape   *tape.Tape           // nil where the recorder ended, or is, before it
	path   string               // of the tape
	notes  *annotations.Sidecar // nil where nobody noted anything
	unread error                // why the notes could not be read
}

func openShown(path string) (*shown, error) {
	rec, err := recording.OpenIfRecording(path)
	if err != nil {
		return nil, err
	}
	if rec != nil {
		path = rec.TapePath()
	}
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if errors.Is(err, fs.ErrNotExist) && rec != nil && !rec.Finished() {
		return &shown{rec: rec}, nil
	}
	s := &shown{rec: rec, tape: f, path: path}
	if err == nil {
		s.notes, s.unread = annotations.Open(path)
	}
	return s, err
}

func (s *shown) close() {
	if s.tape != nil {
		s.tape.Close()
	}
}

// showUnbegun shows a recording that has no tape yet, or never got one.
func (s *shown) showUnbegun(o *showOptions, std streams) error {
	if err := o.nothing(o.filter, 0); err != nil {
		return err
	}
	if o.json {
		if err := raw(std.out, `{"version":%d,"records":[]}`+"\n", jsonVersion); err != nil {
			return err
		}
	}
	return s.showState(std)
}

// showState says on stderr that a recording has no end, and why.
func (s *shown) showState(std streams) error {
	if s.rec == nil || s.rec.Finished() {
		return nil
	}
	why := "the recorder did not come to its end"
	if s.rec.Live() == recording.LiveYes {
		why = "it is being recorded"
	}
	_, err := visible.Fprintf(std.err, "tapedeck: unfinished: %s\n", why)
	return err
}

// chosen yields the records, and what the terminal showed, that the flags choose.
func (s *shown) chosen(o *showOptions) iter.Seq2[follow.Item, error] {
	return o.filter.Timeline(s.tape.Records(), s.tape.Store, s.changes(o))
}

// flushEvery is how many rows of the timeline are held to align their columns.
const flushEvery = 500

func (s *shown) showText(o *showOptions, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	rows := newRows(out, s.tape.Store)
	found := 0
	for it, err := range s.chosen(o) {
		if err != nil {
			return errors.Join(w.Flush(), err)
		}
		found++
		rec := it.Record
		if rec == nil {
			showScreenRow(w, it.Screen)
		} else {
			o.bill.Add(rec.Kind)
			if o.single {
				return s.showSingle(rec, o, out)
			}
			rows.write(w, rec, o.filter.LaneOf(rec.Kind))
			s.showNotes(w, rec.Seq, inTimeline)
		}
		if o.payloads || found%flushEvery == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if err := s.showBytes(it, o, out); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Flush(), o.nothing(o.filter, found)); err != nil {
		return err
	}
	return o.nothingFailed(found, out)
}

// showEnd says what stands behind the last record of a timeline: what was still streaming, and what the tape lost.
func (s *shown) showEnd(o *showOptions, std streams) error {
	if o.single {
		return nil
	}
	if err := writeBill(std.out, o.bill); err != nil {
		return err
	}
	if o.filter.All() {
		if err := s.showParts(std.out); err != nil {
			return err
		}
		s.showDaemon(std.out)
	}
	if s.unread != nil {
		visible.Fprintf(std.err, "tapedeck: annotations are left out: %v\n", s.unread)
	}
	if s.tape.Torn() {
		visible.Fprintln(std.err, "tapedeck: the last line is torn, as a crash leaves it; it was dropped")
	}
	return s.showState(std)
}

// showParts lists what was still streaming when the recorder was killed, or is.
func (s *shown) showParts(out io.Writer) error {
	if s.rec == nil || s.rec.Finished() {
		return nil
	}
	end := "of the answer, then the recorder ended"
	if s.rec.Live() == recording.LiveYes {
		end = "of the answer so far"
	}
	parts, err := s.rec.Parts()
	for _, p := range parts {
		visible.Fprintf(out, "part  %s %s: %s %s\n", p.Method, p.URL, size(p.Len), end)
	}
	return err
}

// showJSON prints {"version":1,"records":[…],"usage":{…},"annotations":[…]}, a record at a time.
func (s *shown) showJSON(o *showOptions, out io.Writer) error {
	if err := raw(out, `{"version":%d,"records":[`, jsonVersion); err != nil {
		return err
	}
	sep, found, noted := "\n", 0, []*annotations.Annotation{}
	for it, err := range s.chosen(o) {
		if err != nil {
			return err
		}
		var line []byte
		if it.Record == nil {
			line, err = screenJSON(it.Screen, o)
		} else {
			o.bill.Add(it.Record.Kind)
			noted = append(noted, s.begunAt(it.Record.Seq)...)
			line, err = s.recordJSON(it.Record, o)
		}
		if err != nil {
			return err
		}
		if err := raw(out, "%s%s", sep, line); err != nil {
			return err
		}
		sep = ",\n"
		found++
	}
	usage, err := marshal(newBillJSON(o.bill))
	if err != nil {
		return err
	}
	said, err := marshal(noted)
	if err != nil {
		return err
	}
	err = raw(out, "\n],\"usage\":%s,\"annotations\":%s}\n", usage, said)
	return errors.Join(err, o.nothing(o.filter, found))
}
