package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

type showOptions struct {
	seq      int64
	kind     string
	lane     string
	payloads bool
	masks    bool
	coverage bool
	json     bool
}

func newShowCommand(std streams) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show REC",
		Short: "Show the timeline of a recording or a tape, one record, or payloads",
		Long: `Without flags: one line a record. --seq shows one record with everything in it; --kind and --lane choose;
--payloads adds the bytes; --coverage says what was recorded and what was not; --masks lists the volatile facts that are
masked before two runs are compared, and how often each was seen.

Exit status: 0 done, 1 it could not be read.`,
		Example: `  tapedeck show last
  tapedeck show last --seq 3 --payloads
  tapedeck show last --kind llm_call --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: recordingNames,
		RunE:              func(_ *cobra.Command, args []string) error { return runShow(&o, args[0], std) },
	}
	f := cmd.Flags()
	f.Int64Var(&o.seq, "seq", -1, "only the record with this `number`")
	f.StringVar(&o.kind, "kind", "", "only records of this `kind`, as in llm_call")
	f.StringVar(&o.lane, "lane", "", "only records of this `lane`")
	f.BoolVar(&o.payloads, "payloads", false, "with the bytes of requests, answers, files and streams")
	f.BoolVar(&o.masks, "masks", false, "the masks, and how often each was used")
	f.BoolVar(&o.coverage, "coverage", false, "what each axis covered and what not")
	f.BoolVar(&o.json, "json", false, "as JSON")
	return cmd
}

func runShow(o *showOptions, name string, std streams) error {
	s, err := openShown(name)
	if err != nil {
		return err
	}
	defer s.tape.Close()
	switch {
	case o.masks:
		return s.showMasks(o.json, std.out)
	case o.coverage:
		return s.showCoverage(o.json, std.out)
	case o.json:
		return s.showJSON(o, std.out)
	}
	if err := s.showText(o, std.out); err != nil {
		return err
	}
	if err := s.showParts(o, std.out); err != nil {
		return err
	}
	if s.tape.Torn() {
		fmt.Fprintln(std.err, "tapedeck: the last line is torn, as a crash leaves it; it was dropped")
	}
	return nil
}

// shown is what is being shown: a recording's tape, or a bare one.
type shown struct {
	rec  *deck.Recording // nil for a bare tape
	tape *tape.Tape
}

func openShown(name string) (*shown, error) {
	path, err := tapeOrRecording(name)
	if err != nil {
		return nil, err
	}
	rec, err := deck.OpenIfRecording(path)
	if err != nil {
		return nil, err
	}
	if rec != nil {
		path = rec.TapePath()
	}
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	return &shown{rec, f}, err
}

// chosen yields the records that the flags choose.
func (s *shown) chosen(o *showOptions) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for rec, err := range s.tape.Records() {
			if err == nil && !o.wants(rec) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (o *showOptions) wants(rec *tape.Record) bool {
	if o.seq >= 0 && rec.Seq != uint64(o.seq) {
		return false
	}
	return (o.kind == "" || rec.Kind.Name() == o.kind) && (o.lane == "" || fidelity.LaneOf(rec.Kind) == o.lane)
}

func (s *shown) showText(o *showOptions, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	found := 0
	for rec, err := range s.chosen(o) {
		if err != nil {
			return err
		}
		found++
		if o.seq >= 0 {
			return s.showRecord(rec, o, out)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", rec.Seq, seconds(rec.MonotonicMS), rec.Kind.Name(), fidelity.LaneOf(rec.Kind), summary(rec.Kind))
		if o.payloads {
			if err := w.Flush(); err != nil {
				return err
			}
			if err := s.showPayloads(rec.Kind, out); err != nil {
				return err
			}
		}
	}
	return errors.Join(w.Flush(), o.nothing(found))
}

// nothing is the error of a choice that no record fits: a typing error must not read as an empty tape.
func (o *showOptions) nothing(found int) error {
	if found > 0 || o.seq < 0 && o.kind == "" && o.lane == "" {
		return nil
	}
	return errors.New("no record fits; `tapedeck show REC` lists their numbers, kinds and lanes")
}

// showParts lists what was still streaming when the recorder was killed.
func (s *shown) showParts(o *showOptions, out io.Writer) error {
	if s.rec == nil || o.seq >= 0 || o.kind != "" || o.lane != "" {
		return nil
	}
	parts, err := s.rec.Parts()
	for _, p := range parts {
		fmt.Fprintf(out, "part  %s %s: %s of the answer, then the recorder ended\n", p.Method, p.URL, size(p.Len))
	}
	return err
}

// showRecord prints every field of one record, indented as JSON.
func (s *shown) showRecord(rec *tape.Record, o *showOptions, out io.Writer) error {
	if err := indentJSON(out, tape.AppendRecord(nil, rec)); err != nil {
		return err
	}
	if !o.payloads {
		return nil
	}
	return s.showPayloads(rec.Kind, out)
}

func (s *shown) showPayloads(k tape.Kind, out io.Writer) error {
	for _, p := range namedPayloads(k) {
		b, err := p.payload.Bytes(s.tape.Store)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "--- %s (%s)\n%s", p.name, plural(len(b), "byte", "bytes"), printable(b))
	}
	return nil
}

// showJSON prints {"version":1,"records":[…]}, a record at a time.
func (s *shown) showJSON(o *showOptions, out io.Writer) error {
	if _, err := fmt.Fprintf(out, `{"version":%d,"records":[`, jsonVersion); err != nil {
		return err
	}
	sep, found := "\n", 0
	for rec, err := range s.chosen(o) {
		if err != nil {
			return err
		}
		line, err := s.recordJSON(rec, o)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s%s", sep, line); err != nil {
			return err
		}
		sep = ",\n"
		found++
	}
	_, err := fmt.Fprintln(out, "\n]}")
	return errors.Join(err, o.nothing(found))
}

func (s *shown) showMasks(json bool, out io.Writer) error {
	rows := s.rec.MaskUses()
	if json {
		return printJSON(out, map[string]any{"masks": rows})
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		used := strconv.Itoa(r.Used)
		if r.Off {
			used = "off"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, used, r.What, r.Example)
	}
	return w.Flush()
}

func (s *shown) showCoverage(json bool, out io.Writer) error {
	if s.rec == nil {
		return fmt.Errorf("--coverage: a bare tape does not say what it covers")
	}
	m := s.rec.Manifest
	if json {
		return printJSON(out, map[string]any{"axes": m.Axes, "not_covered": m.NotCovered()})
	}
	for _, name := range sortedKeys(m.Axes) {
		state := "off"
		if m.Axes[name].On {
			state = "on"
		}
		fmt.Fprintf(out, "%s: %s\n", name, state)
		for _, n := range m.Axes[name].NotCovered {
			fmt.Fprintf(out, "  not covered: %s\n", n)
		}
	}
	return nil
}
