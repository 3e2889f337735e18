package foreign

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// ExportOptions say what of a cassette is written, and how. Nil and zero write all of it as asciicast v2, without the input.
type ExportOptions struct {
	Version int // of asciicast: 2 or 3; 0 is 2
	// Input writes what was typed too. It is left out else: it may hold what nobody was to see.
	Input bool
	// From and To cut: what came before From stands at the beginning, all at once, so that the screen is right; what came after
	// To is left out. To 0 is the end.
	From, To time.Duration
	Speed    float64       // so many times as fast; 0 is 1
	MaxIdle  time.Duration // longer pauses become this long; 0 keeps them
	Title    string        // "": what the cassette was imported with
	// Progress is told how many bytes of how many of output were written.
	Progress func(done, total int64)
}

// Exported is what was written.
type Exported struct {
	Events   int           `json:"events"`
	Duration time.Duration `json:"-"`
	Replaced int           `json:"replaced"` // bytes, or beginnings of UTF-8 sequences, that became U+FFFD
	LeftOut  int           `json:"left_out"` // events that the format has no place for, and inputs that were not asked for
}

// Export writes the cassette r as an asciicast.
func Export(ctx context.Context, r *cassette.Reader, w io.Writer, opts *ExportOptions) (*Exported, error) {
	o := ExportOptions{}
	if opts != nil {
		o = *opts
	}
	override(&o.Version, max(o.Version, 2))
	if o.Speed < 0 || o.From < 0 || o.MaxIdle < 0 || o.To != 0 && o.To < o.From {
		return nil, fmt.Errorf("export from %v to %v at speed %v with pauses of %v: want times of 0 or more in their order", o.From, o.To, o.Speed, o.MaxIdle)
	}
	out, err := NewWriter(w, o.Version, headerOf(r, &o))
	if err != nil {
		return nil, err
	}
	x := &exporter{r: r, w: out, o: &o, pace: pace{from: o.From, idle: o.MaxIdle, speed: o.Speed}}
	if err := x.run(ctx); err != nil {
		return nil, err
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	x.out.Replaced, x.out.LeftOut, x.out.Duration = out.Replaced(), x.out.LeftOut+out.LeftOut(), x.pace.shown
	return &x.out, nil
}

// headerOf is what the manifest says.
func headerOf(r *cassette.Reader, o *ExportOptions) *Header {
	m := r.Manifest()
	h := &Header{Rows: m.Terminal.InitialRows, Cols: m.Terminal.InitialCols, Term: m.Terminal.Term, Command: commandOf(m.Command.Argv)}
	if at, err := time.Parse(time.RFC3339, m.Provenance.RecordedAt); err == nil {
		h.Started = at
	}
	uncarry(h, m)
	override(&h.Title, o.Title)
	if o.MaxIdle > 0 {
		h.IdleLimit = 0 // they are short already
	}
	return h
}

// commandOf is the inverse of argvOf, and else what a shell would take.
func commandOf(argv []string) string {
	if len(argv) == 3 && argv[0] == "sh" && argv[1] == "-c" {
		return argv[2]
	}
	return visible.Command(argv)
}

// A pace says when an event is shown.
type pace struct {
	from, idle  time.Duration
	speed       float64
	last, shown time.Duration
}

func (p *pace) at(t time.Duration) time.Duration {
	gap := max(0, t-max(p.last, p.from))
	p.last = max(p.last, t)
	if p.idle > 0 {
		gap = min(gap, p.idle)
	}
	if p.speed > 0 {
		gap = time.Duration(float64(gap) / p.speed)
	}
	p.shown += gap
	return p.shown
}

type exporter struct {
	r    *cassette.Reader
	w    *Writer
	o    *ExportOptions
	pace pace
	done int64
	out  Exported
}

// streams are those that an asciicast has a place for.
var streams = []cassette.Stream{cassette.StreamInput, cassette.StreamOutput, cassette.StreamService, cassette.StreamFinal}

func (x *exporter) run(ctx context.Context) error {
	for e, err := range x.r.Events(&cassette.EventsOptions{Streams: streams}) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if x.o.To > 0 && e.Time() > x.o.To {
			return nil
		}
		if err := x.event(e); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) event(e *cassette.Event) error {
	out := Event{}
	switch {
	case e.Chunk != nil:
		out.Kind, out.Data = Output, e.Bytes
		x.done += e.Chunk.Length
	case e.Input != nil:
		if !x.input(&out, e.Input) {
			return nil
		}
	case e.Service != nil:
		out.Kind, out.Data = Marker, []byte(label(e.Service.Payload))
	case e.Final != nil:
		code, known := exitCodeOf(e.Final.Exit)
		if !known || x.o.Version < 3 { // version 2 has no exit
			return nil
		}
		out.Kind, out.Code = Exit, code
	default:
		return nil
	}
	out.At = x.pace.at(e.Time())
	if err := x.w.Write(&out); err != nil {
		return err
	}
	x.out.Events++
	if x.o.Progress != nil {
		x.o.Progress(x.done, x.r.Size())
	}
	return nil
}

// input fills out; false where the event is not to be written.
func (x *exporter) input(out *Event, in *cassette.Input) bool {
	switch {
	case in.Kind == cassette.KindResize && in.Size != nil && checkSize(in.Size.Rows, in.Size.Cols) == nil:
		out.Kind, out.Rows, out.Cols = Resize, in.Size.Rows, in.Size.Cols
	case in.Kind == cassette.KindInput && x.o.Input:
		out.Kind, out.Data = Input, in.Bytes
	default:
		x.out.LeftOut++
		return false
	}
	return true
}

// maxLabel is how many bytes of a payload a marker shows.
const maxLabel = 200

// label is the text of the marker that a service event becomes: that of an imported marker, else the payload itself.
func label(payload json.RawMessage) string {
	var m mark
	if json.Unmarshal(payload, &m) == nil && m.Type == markerType {
		return m.Label
	}
	s := string(payload)
	if len(s) > maxLabel {
		s = strings.ToValidUTF8(s[:maxLabel], "") + "…"
	}
	return s
}

// exitCodeOf is the code as a shell would say it: 128+n for one that signal n ended, where the number of that is known.
func exitCodeOf(e *cassette.Exit) (code int, known bool) {
	switch {
	case e == nil:
		return 0, false
	case e.Exited:
		return e.Code, true
	case e.Signaled:
		n, known := signals[strings.TrimPrefix(strings.ToUpper(e.Signal), "SIG")]
		return 128 + n, known
	}
	return 0, false
}

// signals are the numbers that Linux gives to those that end programs.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10, "SEGV": 11,
	"USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "XCPU": 24, "XFSZ": 25, "SYS": 31,
}

// A Writer writes an asciicast.
//
// Version 2 has the time since the beginning, to the microsecond; version 3 the time since the event before, to the millisecond,
// with what rounding took carried into the next. A UTF-8 sequence that is cut by the end of a chunk goes out with the next chunk.
type Writer struct {
	w       *bufio.Writer
	version int
	last    time.Duration // of the event before
	written int64         // ms, the sum of the intervals of version 3
	texts   map[Kind]*text
	buf     []byte
	outside int
}

// NewWriter writes the header. version is 2 or 3; the header must have a size.
func NewWriter(w io.Writer, version int, h *Header) (*Writer, error) {
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("asciicast version %d cannot be written: want 2 or 3", version)
	}
	if err := checkSize(h.Rows, h.Cols); err != nil {
		return nil, err
	}
	out := &Writer{w: bufio.NewWriterSize(w, 64<<10), version: version}
	out.texts = map[Kind]*text{Output: {}, Input: {}}
	b, err := jsonscan.Marshal(newCastHeader(h, version))
	if err != nil {
		return nil, err
	}
	_, err = out.w.Write(append(b, '\n'))
	return out, err
}

// Write adds an event, whose time must not be before that of the last. A Signal has no place in an asciicast and is counted as
// left out; so is an Exit in version 2.
func (w *Writer) Write(e *Event) error {
	if e.At < w.last {
		return fmt.Errorf("an event at %v after one at %v", e.At, w.last)
	}
	w.last = e.At
	switch e.Kind {
	case Output, Input:
		b := w.texts[e.Kind].add(e.Data)
		if len(b) == 0 && len(e.Data) > 0 {
			return nil // it goes out with the next chunk
		}
		return w.event(e.Kind, b)
	case Marker:
		return w.event(Marker, bytes.ToValidUTF8(e.Data, []byte("\uFFFD")))
	case Resize:
		return w.event(Resize, fmt.Appendf(nil, "%dx%d", e.Cols, e.Rows))
	case Exit:
		if w.version == 3 {
			return w.exit(e)
		}
	}
	w.outside++
	return nil
}

func (w *Writer) exit(e *Event) error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.event(Exit, strconv.AppendInt(nil, int64(e.Code), 10))
}

// Close writes what is still held. It does not close the writer below. Nothing may be written after it.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.w.Flush()
}

// flush writes unfinished sequences, as U+FFFD.
func (w *Writer) flush() error {
	for _, kind := range []Kind{Output, Input} {
		if b := w.texts[kind].end(); len(b) > 0 {
			if err := w.event(kind, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Replaced is how many bytes, or beginnings of UTF-8 sequences, became U+FFFD.
func (w *Writer) Replaced() int { return w.texts[Output].replaced + w.texts[Input].replaced }

// LeftOut is how many events the format has no place for.
func (w *Writer) LeftOut() int { return w.outside }

func (w *Writer) event(kind Kind, data []byte) error {
	w.buf = append(w.buf[:0], '[')
	w.buf = w.appendTime(w.buf)
	w.buf = fmt.Appendf(w.buf, ", \"%c\", ", kind)
	w.buf = append(w.buf, visible.JSON(string(jsonscan.AppendText(nil, string(data))))...) // what is not to be printed is escaped
	w.buf = append(w.buf, "]\n"...)
	_, err := w.w.Write(w.buf)
	return err
}

func (w *Writer) appendTime(b []byte) []byte {
	if w.version == 2 {
		us := w.last.Microseconds()
		return fmt.Appendf(b, "%d.%06d", us/1e6, us%1e6)
	}
	now := w.last.Round(time.Millisecond).Milliseconds()
	step := now - w.written
	w.written = now
	return fmt.Appendf(b, "%d.%03d", step/1e3, step%1e3)
}
