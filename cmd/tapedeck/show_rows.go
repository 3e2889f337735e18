package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// rows writes the lines of a timeline, a record in one or two.
type rows struct {
	say    sayer
	cols   int // of the terminal; 0 where it is none
	before int // columns that what stands before the last one has taken so far
	style  func(s saying, i int) (begin, end string)
}

func newRows(out io.Writer, store cas.Store) *rows {
	r := &rows{say: sayer{max: maxSaid, store: store}, style: func(saying, int) (string, string) { return "", "" }}
	if isTerminal(out) {
		r.cols = width(out)
	}
	if colour(out) {
		r.style = styleOf
	}
	return r
}

// ANSI styles.
const (
	styleDim = "\x1b[2m"
	styleRed = "\x1b[31m"
	styleEnd = "\x1b[0m"
)

// styleOf is the style of line i: of what failed the last line is red, which says so.
func styleOf(s saying, i int) (begin, end string) {
	switch {
	case s.failed && i == len(s.lines)-1:
		return styleRed, styleEnd
	case s.ignored:
		return styleDim, styleEnd
	}
	return "", ""
}

// write writes a record into columns that a tabwriter aligns.
func (r *rows) write(w io.Writer, rec *tape.Record, lane string) error {
	at := seconds(rec.MonotonicMS)
	r.room(len(fmt.Sprint(rec.Seq)) + len(at) + len(rec.Kind.Name()) + len(lane) + 8)
	return r.lines(rec, func(i int, begin, line, end string) error {
		if i > 0 {
			_, err := visible.Fprintf(w, "\t\t\t\t"+begin+"%s"+end+"\n", line)
			return err
		}
		_, err := visible.Fprintf(w, "%d\t%s\t%s\t%s\t"+begin+"%s"+end+"\n", rec.Seq, at, rec.Kind.Name(), lane, line)
		return err
	})
}

// follow writes a record at once; its columns cannot wait for those below.
func (r *rows) follow(w io.Writer, rec *tape.Record, lane string) error {
	r.room(65)
	return r.lines(rec, func(i int, begin, line, end string) error {
		if i > 0 {
			_, err := visible.Fprintf(w, strings.Repeat(" ", 65)+begin+"%s"+end+"\n", line)
			return err
		}
		_, err := visible.Fprintf(w, "%-5d  %9s  %-13s  %-30s  "+begin+"%s"+end+"\n", rec.Seq, seconds(rec.MonotonicMS),
			rec.Kind.Name(), lane, line)
		return err
	})
}

// room bounds what messages say to what is left of the terminal.
func (r *rows) room(before int) {
	r.before = max(r.before, before)
	if r.cols > 0 {
		r.say.max = max(r.cols-r.before, minSaid)
	}
}

// lines calls write for every line that a record says.
func (r *rows) lines(rec *tape.Record, write func(i int, begin, line, end string) error) error {
	s := saying{lines: []string{summary(rec.Kind)}}
	if isConversation(rec.Kind) {
		s = r.say.record(rec.Kind)
	}
	if x, ok := rec.Kind.(*tape.HTTPExchange); ok && strings.HasPrefix(x.Lane, "mcp:") {
		s.ignored = true // what it carried stands beside it
	}
	for i, line := range s.lines {
		begin, end := r.style(s, i)
		if err := write(i, begin, line, end); err != nil {
			return err
		}
	}
	return nil
}

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
	if s.notes == nil || len(s.notes.Annotations) == 0 {
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

// showScreenRow is one line of the timeline, without a number: those are the tape's.
func showScreenRow(w io.Writer, c *screen.Change) {
	visible.Fprintf(w, "\t%s\t%s\t%s\t%s\n", seconds(c.TMS), screen.KindScreen, screen.LaneTerminal, c.String())
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
	return marshal(struct {
		Kind string `json:"kind"`
		Lane string `json:"lane"`
		*screen.Change
	}{screen.KindScreen, screen.LaneTerminal, c})
}

// showMasksHere lists the masks of the work tree that holds the working directory.
func showMasksHere(json bool, out io.Writer) error {
	lib, err := openLibrary()
	if err != nil {
		return err
	}
	rows, headers, err := recording.MasksOf(filepath.Dir(lib.Dir))
	if err != nil {
		return err
	}
	return printMasks(rows, headers, json, out)
}

func (s *shown) showMasks(json bool, out io.Writer) error {
	return printMasks(s.rec.MaskUses(), s.rec.HeadersIgnored(), json, out)
}

func printMasks(rows []recording.MaskUse, headers []string, json bool, out io.Writer) error {
	if json {
		return printJSON(out, map[string]any{"masks": rows, "headers_ignored": headers})
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
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
	visible.Fprintf(out, "\nheaders of requests that do not compare: %s\n", strings.Join(headers, ", "))
	return nil
}

func (s *shown) showCoverage(json bool, out io.Writer) error {
	if s.rec == nil {
		return fmt.Errorf("--coverage: a bare tape does not say what it covers")
	}
	m := s.rec.Manifest
	by, whole := sealing.SealedBy(s.rec)
	if json {
		return printJSON(out, map[string]any{"axes": m.Axes, "not_covered": m.NotCovered(), "sealed": m.Sealed, "sealed_by": by, "daemon": m.Daemon})
	}
	for _, name := range sortedKeys(m.Axes) {
		state := "off"
		if m.Axes[name].On {
			state = "on"
		}
		visible.Fprintf(out, "%s: %s\n", name, state)
		for _, n := range m.Axes[name].NotCovered {
			visible.Fprintf(out, "  not covered: %s\n", n)
		}
	}
	said := "none"
	switch {
	case !whole:
		said = "it says that it has one, which is gone or damaged"
	case by != "":
		said = "by " + by + " (tapedeck verify tells whether it holds)"
	}
	visible.Fprintf(out, "seal: %s\n", said)
	s.showDaemon(out)
	return nil
}

// showRecord prints every field of one record, indented as JSON, or with --payloads for a person: what people noted about it behind
// the fields, then each body once.
func (s *shown) showRecord(rec *tape.Record, o *showOptions, out io.Writer) error {
	if !o.payloads && !isMessage(rec.Kind) {
		return indentJSON(out, tape.AppendRecord(nil, rec))
	}
	if err := errors.Join(writeRecord(out, rec), s.showNotes(out, rec.Seq, "")); err != nil {
		return err
	}
	if isMessage(rec.Kind) {
		return s.showMessages(rec.Kind, out)
	}
	return s.showPayloads(rec.Kind, out)
}

// showSingle prints one record and what people noted about it, in JSON as one more key.
func (s *shown) showSingle(rec *tape.Record, o *showOptions, out io.Writer) error {
	notes := s.begunAt(rec.Seq)
	if o.payloads || isMessage(rec.Kind) || len(notes) == 0 {
		return s.showRecord(rec, o, out)
	}
	line := bytes.TrimSpace(tape.AppendRecord(nil, rec))
	said, err := marshal(notes)
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
	return raw(out, "%s", wholeLines(b, isTerminal(out)))
}

// A member is a key of a JSON object and its value, in the order in which they stand.
type member struct {
	name  string
	value json.RawMessage
}

// members takes an object apart; nil where b is none.
func members(b []byte) []member {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		m := member{name: name}
		if err != nil || !ok || dec.Decode(&m.value) != nil {
			return nil
		}
		out = append(out, m)
	}
	return out
}

// writeRecord writes the fields of a record for a person, one a line, headers as they stand in HTTP. Of chunks and payloads it
// says how much there is: the bytes follow, each once.
func writeRecord(out io.Writer, rec *tape.Record) error {
	var b strings.Builder
	for _, m := range members(tape.AppendRecord(nil, rec)) {
		switch m.name {
		case "type":
		case "kind":
			for _, f := range members(m.value) {
				writeField(&b, f, rec.Kind)
			}
		default:
			writeField(&b, m, nil)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeField writes one field of a record, or of its kind k.
func writeField(b *strings.Builder, m member, k tape.Kind) {
	x := tape.ExchangeOf(k)
	switch {
	case x != nil && m.name == "request_headers":
		writeHeaders(b, m.name, x.RequestHeaders)
	case x != nil && m.name == "response_headers":
		writeHeaders(b, m.name, x.ResponseHeaders)
	case x != nil && m.name == "stream":
		visible.Fprintf(b, "stream: %s\n", chunksOf(x.Stream))
	default:
		visible.Fprintf(b, "%s: %s\n", m.name, valueOf(m.value))
	}
}

func writeHeaders(b *strings.Builder, name string, list []tape.HeaderField) {
	visible.Fprintf(b, "%s:\n", name)
	for _, h := range list {
		visible.Fprintf(b, "  %s: %s\n", h.Name, h.Value)
	}
}

func chunksOf(list []tape.Chunk) string {
	s := plural(len(list), "chunk", "chunks")
	if len(list) > 0 {
		s += fmt.Sprintf(", from %s to %s after the request", seconds(list[0].TMS), seconds(list[len(list)-1].TMS))
	}
	return s
}

// valueOf is a JSON value for a person: a string without its quotes, a payload by its hash and without its text.
func valueOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	parts := members(raw)
	for _, m := range parts {
		if m.name != "content_hash" {
			continue
		}
		var said []string
		for _, p := range parts {
			if p.name != "text" {
				said = append(said, p.name+" "+valueOf(p.value))
			}
		}
		return strings.Join(said, ", ")
	}
	return string(raw)
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
	return marshal(struct {
		Record   json.RawMessage `json:"record"`
		Payloads map[string]any  `json:"payloads"`
	}{line, payloads})
}
