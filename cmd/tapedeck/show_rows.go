package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/tapeview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// inTimeline is what a note begins with in the columns of a timeline, below those of its event.
const inTimeline = "\t\t\t\t"

// showNotes writes what was noted about the event seq, a note a line, each behind indent.
func (s *shown) showNotes(w io.Writer, seq uint64, indent string) error {
	for _, a := range s.begunAt(seq) {
		if _, err := visible.Fprintf(w, indent+"noted: %s\n", a.String()); err != nil {
			return err
		}
	}
	return nil
}

// foreignNotes says on stderr where the notes were made for another tape than the one that is shown.
func (s *shown) foreignNotes(w io.Writer) {
	if s.notes == nil || len(s.notes.Annotations) == 0 || s.rec != nil && !s.rec.Finished() {
		return
	}
	if of, err := s.notes.Of(s.path); err == nil && !of {
		visible.Fprintln(w, "tapedeck: the notes were made for another tape: what they say of its events may not hold here (tapedeck annotate check)")
	}
}

// begunAt are the notes that stand below the event seq: of a span that is the first one.
func (s *shown) begunAt(seq uint64) (notes []*annotations.Annotation) {
	for _, a := range s.notes.About(seq) {
		if a.EventID == seq {
			notes = append(notes, a)
		}
	}
	return notes
}

// changes yields what the recording's terminal showed and was given; nothing of a bare tape.
func (s *shown) changes(o *showOptions) iter.Seq2[*screen.Change, error] {
	if s.rec == nil {
		return func(func(*screen.Change, error) bool) {}
	}
	return screen.Changes(s.rec, o.payloads || o.filter.Grep != nil)
}

// showScreen prints the rows of a screen, down to the last that holds something.
func showScreen(c *screen.Change, out io.Writer) error {
	if c.What != screen.ChangeScreen {
		return nil
	}
	rows := c.Screen
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	visible.Fprintf(out, "--- screen (%d rows)\n", len(c.Screen))
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(visible.Line(row))
		b.WriteByte('\n')
	}
	return raw(out, "%s", b.String())
}

// screenJSON is a change as an object of its own kind.
func screenJSON(c *screen.Change, o *showOptions) ([]byte, error) {
	if !o.payloads {
		c.Screen = nil
	}
	return jsonscan.Marshal(struct {
		Kind string `json:"kind"`
		Lane string `json:"lane"`
		*screen.Change
	}{screen.KindScreen, screen.LaneTerminal, c})
}

// showMasksHere lists the masks of the work tree that holds the working directory.
func showMasksHere(std *console) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	rows, headers, err := recording.MasksOf(filepath.Dir(lib.Dir))
	if err != nil {
		return err
	}
	return printMasks(rows, headers, std)
}

func printMasks(rows []recording.MaskUse, headers []string, std *console) error {
	if std.json {
		return printJSON(std.out, map[string]any{"masks": rows, "headers_ignored": headers})
	}
	w := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		used := strconv.Itoa(r.Used)
		if r.Off {
			used = "off"
		}
		visible.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, used, r.What, r.Example)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	visible.Fprintf(std.out, "\nheaders of requests that do not compare: %s\n", strings.Join(headers, ", "))
	return nil
}

func (s *shown) showCoverage(std *console) error {
	if s.rec == nil {
		return fmt.Errorf("--coverage: a bare tape does not say what it covers")
	}
	m := s.rec.Manifest
	by, whole := sealing.SealedBy(s.rec)
	if std.json {
		return printJSON(std.out, map[string]any{"axes": m.Axes, "not_covered": m.NotCovered(), "sealed": m.Sealed, "sealed_by": by, "daemon": m.Daemon})
	}
	for _, name := range sortedKeys(m.Axes) {
		state := "off"
		if m.Axes[name].On {
			state = "on"
		}
		visible.Fprintf(std.out, "%s: %s\n", name, state)
		for _, n := range m.Axes[name].NotCovered {
			visible.Fprintf(std.out, "  not covered: %s\n", n)
		}
	}
	said := "none"
	switch {
	case !whole:
		said = "it says that it has one, which is gone or damaged"
	case by != "":
		said = "by " + by + " (tapedeck verify tells whether it holds)"
	}
	visible.Fprintf(std.out, "seal: %s\n", said)
	s.showDaemon(std.out)
	return nil
}

// showRecord prints every field of one record, indented as JSON, or with --payloads for a person: what people noted about it behind
// the fields, then each body once.
func (s *shown) showRecord(rec *tape.Record, o *showOptions, out io.Writer) error {
	if !o.payloads && !tapeview.IsMessage(rec.Kind) {
		return indentJSON(out, tape.AppendRecord(nil, rec))
	}
	if err := errors.Join(tapeview.Fields(out, rec), s.showNotes(out, rec.Seq, "")); err != nil {
		return err
	}
	if tapeview.IsMessage(rec.Kind) {
		return s.showMessages(rec.Kind, out)
	}
	return s.showPayloads(rec.Kind, out)
}

// showSingle prints one record and what people noted about it, in JSON as one more key.
func (s *shown) showSingle(rec *tape.Record, o *showOptions, out io.Writer) error {
	notes := s.begunAt(rec.Seq)
	if o.payloads || tapeview.IsMessage(rec.Kind) || len(notes) == 0 {
		return s.showRecord(rec, o, out)
	}
	line := bytes.TrimSpace(tape.AppendRecord(nil, rec))
	said, err := jsonscan.Marshal(notes)
	if err != nil {
		return err
	}
	return indentJSON(out, fmt.Appendf(line[:len(line)-1], `,"annotations":%s}`, said))
}

// showBytes prints what --payloads asks for below a line.
func (s *shown) showBytes(it follow.Item, o *showOptions, out io.Writer) error {
	switch {
	case !o.payloads:
		return nil
	case it.Record == nil:
		return showScreen(it.Screen, out)
	}
	return s.showPayloads(it.Record.Kind, out)
}

func (s *shown) showPayloads(k tape.Kind, out io.Writer) error {
	for _, p := range follow.PayloadsOf(k) {
		if err := s.showPayload(p, out); err != nil {
			return err
		}
	}
	return nil
}

func (s *shown) showPayload(p follow.NamedPayload, out io.Writer) error {
	b, err := p.Bytes(s.tape.Store)
	if err != nil {
		return err
	}
	visible.Fprintf(out, "--- %s (%s)\n", p.Name, plural(len(b), "byte", "bytes"))
	return raw(out, "%s", tapeview.Text(b, isTerminal(out)))
}

// showDaemon says which run of a daemon a recording is.
func (s *shown) showDaemon(out io.Writer) {
	if s.rec == nil || s.rec.Manifest.Daemon == nil {
		return
	}
	d := s.rec.Manifest.Daemon
	for i, run := range append([]string{d.RunID}, d.Continued...) {
		if i == 0 {
			told := ""
			if s.rec.Finished() {
				told = ", " + plural(d.Turns, "turn", "turns")
			}
			visible.Fprintf(out, "daemon: run %s of %s at %s%s (tapedeck runs show %s)\n", run, d.AgentID, d.URL, told, run)
			continue
		}
		visible.Fprintf(out, "daemon: it goes on as run %s\n", run)
	}
}

// recordJSON is the record's line, with --payloads the bytes of its payloads beside it.
func (s *shown) recordJSON(rec *tape.Record, o *showOptions) ([]byte, error) {
	line := bytes.TrimSpace(tape.AppendRecord(nil, rec))
	if !o.payloads {
		return line, nil
	}
	payloads := make(map[string]any)
	for _, p := range follow.PayloadsOf(rec.Kind) {
		b, err := p.Bytes(s.tape.Store)
		if err != nil {
			return nil, err
		}
		if utf8.Valid(b) {
			payloads[p.Name] = string(b)
		} else {
			payloads[p.Name] = map[string][]byte{"base64": b}
		}
	}
	return jsonscan.Marshal(struct {
		Record   json.RawMessage `json:"record"`
		Payloads map[string]any  `json:"payloads"`
	}{line, payloads})
}

// pricesOf reads the prices of a file; "" are those of the work tree and, behind them, of the table that is built in.
func pricesOf(file string) (*llm.Prices, error) {
	if file == "" {
		return projectPrices()
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--prices: %w", err)
	}
	defer f.Close()
	p, err := llm.LoadPrices(f)
	if err != nil {
		return nil, fmt.Errorf("--prices %s: %w", file, err)
	}
	return p, nil
}

// writeBill is the line at the end of a timeline.
func writeBill(w io.Writer, b *llm.Bill) (err error) {
	if line := tapeview.Bill(b); line != "" {
		_, err = visible.Fprintln(w, line)
	}
	return err
}

// maxIndented is how long, in bytes, a message may be that is indented. A longer one shows as it stands.
const maxIndented = 8 << 20

// showMessages prints the whole of what one record of a conversation holds, JSON indented.
func (s *shown) showMessages(k tape.Kind, out io.Writer) error {
	for _, p := range follow.PayloadsOf(k) {
		if p.Len > maxIndented {
			if err := s.showPayload(p, out); err != nil {
				return err
			}
			continue
		}
		b, err := p.Bytes(s.tape.Store)
		if err != nil {
			return err
		}
		visible.Fprintf(out, "--- %s (%s)\n", p.Name, plural(len(b), "byte", "bytes"))
		if err := raw(out, "%s", tapeview.Indented(b, isTerminal(out))); err != nil {
			return err
		}
	}
	return nil
}

func indentJSON(w io.Writer, line []byte) error {
	var buf bytes.Buffer
	if err := json.Indent(&buf, bytes.TrimSpace(line), "", "  "); err != nil {
		return err
	}
	buf.WriteByte('\n')
	return raw(w, "%s", visible.JSON(buf.String()))
}
