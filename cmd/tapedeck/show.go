package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/tapeview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

type showOptions struct {
	filterFlags
	lookFlags
	follow   bool
	payloads bool
	masks    bool
	coverage bool
	prices   string
	store    storeFlags
	stored   bool // --store

	view tapeview.Options
	bill *llm.Bill // of the records that were shown
}

func newShowCommand(std *console) *cobra.Command {
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
				return showMasksHere(std)
			}
			var err error
			if o.stored, err = o.store.asked(cmd.Flags()); err != nil {
				return err
			}
			return runShow(cmd.Context(), &o, args[0], std)
		},
	})
	f := cmd.Flags()
	o.filterFlags.define(f)
	o.lookFlags.define(cmd)
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until the recorder ends")
	f.BoolVar(&o.payloads, "payloads", false, "with the bytes of requests, answers, files and streams")
	f.BoolVar(&o.masks, "masks", false, "the masks, and how often each was used")
	f.BoolVar(&o.coverage, "coverage", false, "what each axis covered and what not")
	o.store.define(f)
	std.jsonFlag(cmd, "as JSON")
	f.StringVar(&o.prices, "prices", "", "`file` of prices, as JSON")
	completeFlag(cmd, "kind", follow.KindNames...)
	return cmd
}

func runShow(ctx context.Context, o *showOptions, name string, std *console) (err error) {
	if o.filter.Tail < 0 {
		return fmt.Errorf("--tail %d: want how many of the last records to show", o.filter.Tail)
	}
	if err = o.look(std.out); err != nil {
		return err
	}
	path, clean, err := o.open(ctx, name, std)
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
		rows, headers := s.rec.Manifest.MaskUses()
		return printMasks(rows, headers, std)
	case o.coverage:
		return s.showCoverage(std)
	case s.tape == nil:
		return s.showUnbegun(o, std)
	case std.json:
		s.foreignNotes(std.err)
		return s.showJSON(o, std.out)
	}
	return o.paged(std, func(std *console) error {
		s.foreignNotes(std.err)
		if err := s.showText(o, std.out); err != nil {
			return err
		}
		return s.showEnd(o, std)
	})
}

// open returns where a recording or a bare tape lies; one in a store comes as far as it is shown.
func (o *showOptions) open(ctx context.Context, name string, std *console) (path string, clean func(), err error) {
	if !o.stored {
		return anyTape(ctx, name, std.progress())
	}
	var seq *uint64
	if o.single && !o.masks && !o.coverage && !o.follow && o.filter.Grep == nil && o.filter.Lane == nil && len(o.filter.Kinds) == 0 {
		seq = &o.filter.First
	}
	return o.store.lookAt(ctx, name, seq, std)
}

// look prepares what rows and the bill below them are made with.
func (o *showOptions) look(out io.Writer) (err error) {
	if o.view.Prices, err = pricesOf(o.prices); err != nil {
		return err
	}
	o.bill = llm.NewBill(o.view.Prices)
	if isTerminal(out) {
		o.view.Cols = width(out)
	}
	o.view.Colour = o.colours(out)
	return nil
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
func (s *shown) showUnbegun(o *showOptions, std *console) error {
	if err := o.nothing(0); err != nil {
		return err
	}
	if std.json {
		if err := raw(std.out, `{"version":%d,"records":[]}`+"\n", jsonVersion); err != nil {
			return err
		}
	}
	return s.showState(std)
}

// showState says on stderr that a recording has no end, and why.
func (s *shown) showState(std *console) error {
	if s.rec == nil || s.rec.Finished() {
		return nil
	}
	why := "the recorder did not come to its end"
	if s.rec.Live() == recording.LiveYes {
		why = "it is being recorded"
	}
	return std.say("unfinished: %s", why)
}

// chosen yields the records, and what the terminal showed, that the flags choose.
func (s *shown) chosen(o *showOptions, records iter.Seq2[*tape.Record, error]) iter.Seq2[follow.Item, error] {
	return o.filter.Timeline(records, s.tape.Store, s.changes(o))
}

// flushEvery is how many rows of the timeline are held to align their columns.
const flushEvery = 500

func (s *shown) showText(o *showOptions, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	rows := tapeview.New(s.tape.Store, &o.view)
	write := func(rec *tape.Record) {
		rows.Write(w, rec, o.filter.LaneOf(rec.Kind))
		s.showNotes(w, rec.Seq, inTimeline)
	}
	noted := func(seq uint64) bool { return len(s.begunAt(seq)) > 0 }
	helpers := tapeview.Helpers{Each: o.payloads || !o.filter.All(), Keep: noted, Row: write, Folded: func(n int, first, last *tape.Record) {
		rows.WriteFolded(w, n, first, last)
	}}
	found := 0
	for it, err := range s.chosen(o, rows.Hear(s.tape.Records())) {
		if err != nil {
			return errors.Join(w.Flush(), err)
		}
		found++
		rec := it.Record
		if rec == nil {
			helpers.End()
			visible.Fprintf(w, "\t%s\t%s\t%s\t%s\n", tapeview.Seconds(it.Screen.TMS), screen.KindScreen, screen.LaneTerminal, it.Screen.String())
		} else {
			o.bill.Add(rec.Kind)
			if o.single {
				return s.showSingle(rec, o, out)
			}
			helpers.Add(rec)
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
	helpers.End()
	if err := errors.Join(w.Flush(), o.nothing(found)); err != nil {
		return err
	}
	return o.nothingFailed(found, out)
}

// showEnd says what stands behind the last record of a timeline: what was still streaming, and what the tape lost.
func (s *shown) showEnd(o *showOptions, std *console) error {
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
		std.say("annotations are left out: %v", s.unread)
	}
	if s.tape.Torn() {
		std.say("the last line is torn, as a crash leaves it; it was dropped")
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
	for it, err := range s.chosen(o, s.tape.Records()) {
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
	usage, err := jsonscan.Marshal(tapeview.NewBillJSON(o.bill))
	if err != nil {
		return err
	}
	said, err := jsonscan.Marshal(noted)
	if err != nil {
		return err
	}
	err = raw(out, "\n],\"usage\":%s,\"annotations\":%s}\n", usage, said)
	return errors.Join(err, o.nothing(found))
}

// filterFlags choose records.
type filterFlags struct {
	filter *follow.Filter
	single bool // --seq N
}

func (f *filterFlags) define(fs *pflag.FlagSet) {
	f.filter = follow.NewFilter()
	fs.Func("seq", "only the record with this number, or those of a range: `N`, N-M or N-", f.parseSeq)
	fs.StringSliceVar(&f.filter.Kinds, "kind", nil, "only records of this `kind`, as in llm_call (repeatable, or with commas)")
	parsedFlag(fs, &f.filter.Lane, "lane", "", "only records whose `lane` begins so, or fits a pattern with * and ?",
		func(s string) (func(string) bool, error) { return follow.MatchLane(s), nil })
	parsedFlag(fs, &f.filter.Grep, "grep", "", "only records in whose fields or payloads this regular `expression` (RE2) is found", parseGrep)
	millis := func(s string) (int64, error) { d, err := parseOffset(s); return d.Milliseconds(), err }
	parsedFlag(fs, &f.filter.Since, "since", "", "only records from this `time` after the start on: 1500 (ms), 1.5s or 2m", millis)
	parsedFlag(fs, &f.filter.Until, "until", "", "only records up to this `time` after the start", millis)
	fs.BoolVar(&f.filter.Failed, "errors", false, "only what was refused, exchanges that failed and programs that did not exit with 0")
	fs.IntVar(&f.filter.Tail, "tail", 0, "only the last `N` of what the other flags choose")
}

func (f *filterFlags) parseSeq(s string) error {
	from, to, ranged := strings.Cut(s, "-")
	out := f.filter
	var err1, err2 error
	out.First, err1 = strconv.ParseUint(from, 10, 64)
	switch {
	case !ranged:
		out.Last, f.single = out.First, true
	case to != "":
		out.Last, err2 = strconv.ParseUint(to, 10, 64)
	}
	if err1 != nil || err2 != nil || out.First > out.Last {
		return &valueError{fmt.Errorf("%q: want the number of a record, or a range as in 10-20 or 10-", s)}
	}
	return nil
}

// unknown is the error of a kind that was asked for, and that neither tapedeck nor the tape knows.
func (f *filterFlags) unknown() error {
	kind, known := f.filter.Unknown()
	if kind == "" {
		return nil
	}
	return fmt.Errorf("--kind %s: want one of %s", kind, strings.Join(known, ", "))
}

// nothing is the error of a choice that no record fits: a typing error must not read as an empty tape.
func (f *filterFlags) nothing(found int) error {
	o := f.filter
	strict := (f.single || o.First > 0 || o.Last < math.MaxUint64 || len(o.Kinds) > 0 || o.Lane != nil || o.Grep != nil) && !o.Failed
	if err := f.unknown(); err != nil || found > 0 || !strict {
		return err
	}
	return errors.New("no record fits; `tapedeck show REC` lists their numbers, kinds and lanes")
}

// nothingFailed says that --errors has found nothing, so that no output is not taken for none made.
func (f *filterFlags) nothingFailed(found int, out io.Writer) error {
	if found > 0 || !f.filter.Failed {
		return nil
	}
	_, err := visible.Fprintln(out, "nothing was refused and nothing failed")
	return err
}
