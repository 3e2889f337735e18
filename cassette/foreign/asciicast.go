package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// castHeader is the header of every version of asciicast; v3 has the terminal in an object.
type castHeader struct {
	Version   int               `json:"version"`
	Width     int               `json:"width,omitempty"`
	Height    int               `json:"height,omitempty"`
	Term      *castTerm         `json:"term,omitempty"`
	Timestamp json.Number       `json:"timestamp,omitempty"`
	Duration  float64           `json:"duration,omitempty"`
	IdleLimit float64           `json:"idle_time_limit,omitempty"`
	Command   string            `json:"command,omitempty"`
	Title     string            `json:"title,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Theme     *Theme            `json:"theme,omitempty"`
	Tags      []string          `json:"tags,omitempty"`
}

type castTerm struct {
	Cols    int    `json:"cols"`
	Rows    int    `json:"rows"`
	Type    string `json:"type,omitempty"`
	Version string `json:"version,omitempty"`
	Theme   *Theme `json:"theme,omitempty"`
}

// parseCastHeader reads the object b, which may have fields that it does not know.
func parseCastHeader(b []byte) (*castHeader, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, fmt.Errorf("the header is no JSON object: %w", err)
	}
	var h castHeader
	for key, v := range raw {
		if err := h.set(key, v); err != nil {
			return nil, err
		}
	}
	return &h, nil
}

// set takes one field. What an optional one holds is not refused where it is of another type: recorders differ there.
func (h *castHeader) set(key string, v json.RawMessage) error {
	must := map[string]any{"version": &h.Version, "width": &h.Width, "height": &h.Height, "term": &h.Term}
	if to := must[key]; to != nil {
		if err := json.Unmarshal(v, to); err != nil {
			return fmt.Errorf("the header's %s: %w", key, err)
		}
		return nil
	}
	may := map[string]any{
		"timestamp": &h.Timestamp, "duration": &h.Duration, "idle_time_limit": &h.IdleLimit, "command": &h.Command,
		"title": &h.Title, "theme": &h.Theme, "tags": &h.Tags,
	}
	switch to := may[key]; {
	case key == "env":
		h.Env = stringsOf(v)
	case to != nil:
		_ = json.Unmarshal(v, to) // it stays empty then
	}
	return nil
}

// stringsOf returns those members of the object v that are strings.
func stringsOf(v json.RawMessage) map[string]string {
	var raw map[string]any
	if json.Unmarshal(v, &raw) != nil {
		return nil
	}
	out := make(map[string]string, len(raw))
	for k, v := range raw {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}

// header returns the neutral form. A size of 0, which recorders without a terminal write, is as good as none.
func (h *castHeader) header(f Format) (*Header, error) {
	out := &Header{
		Format: f, Rows: h.Height, Cols: h.Width, Theme: h.Theme, Started: stamp(h.Timestamp), Duration: seconds(h.Duration),
		IdleLimit: seconds(h.IdleLimit), Command: h.Command, Title: h.Title, Env: h.Env, Tags: h.Tags, Term: h.Env["TERM"],
	}
	if f == AsciicastV3 {
		if h.Term == nil {
			return nil, fmt.Errorf("the header has no term: want {\"term\": {\"cols\": …, \"rows\": …}}")
		}
		out.Rows, out.Cols, out.TermVersion, out.Theme = h.Term.Rows, h.Term.Cols, h.Term.Version, h.Term.Theme
		if h.Term.Type != "" {
			out.Term = h.Term.Type
		}
	}
	if out.Rows == 0 || out.Cols == 0 {
		out.Rows, out.Cols = 0, 0
		return out, nil
	}
	return out, checkSize(out.Rows, out.Cols)
}

// newCastHeader is the form of h in version 2 or 3.
func newCastHeader(h *Header, version int) *castHeader {
	out := &castHeader{
		Version: version, IdleLimit: h.IdleLimit.Seconds(), Command: h.Command, Title: h.Title, Env: h.Env,
	}
	if !h.Started.IsZero() {
		out.Timestamp = json.Number(fmt.Sprint(h.Started.Unix()))
	}
	if version == 3 {
		out.Term = &castTerm{Cols: h.Cols, Rows: h.Rows, Type: h.Term, Version: h.TermVersion, Theme: h.Theme}
		out.Tags = h.Tags
		return out
	}
	out.Width, out.Height, out.Theme, out.Duration = h.Cols, h.Rows, h.Theme, h.Duration.Seconds()
	if h.Term != "" && h.Env["TERM"] == "" {
		out.Env = map[string]string{"TERM": h.Term}
		for k, v := range h.Env {
			out.Env[k] = v
		}
	}
	return out
}

// seconds is n seconds to the microsecond; 0 for what is no duration.
func seconds(n float64) time.Duration {
	if d, err := duration(n); err == nil && d >= 0 {
		return d
	}
	return 0
}

// duration is n seconds to the microsecond.
func duration(n float64) (time.Duration, error) {
	if math.IsNaN(n) || math.Abs(n) > MaxTime.Seconds() {
		return 0, errTime
	}
	return time.Duration(math.Round(n*1e6)) * time.Microsecond, nil
}

// stamp is a Unix time, which some recorders write with a fraction.
func stamp(n json.Number) time.Time {
	f, err := n.Float64()
	if err != nil || f <= 0 || f > 253402300799 || strings.TrimSpace(n.String()) == "" { // the year 9999
		return time.Time{}
	}
	return time.UnixMicro(int64(f * 1e6)).UTC()
}

// cast reads asciicast v2 and v3: a header and one array a line.
type cast struct {
	path  string
	f     io.ReadCloser
	lines lines
	head  *Header
	time  timeline
	event Event
	torn  bool
	other map[string]int // codes that are not known
}

func newCast(path string, f io.ReadCloser) (*cast, error) {
	c := &cast{path: path, f: f, lines: newLines(f), other: make(map[string]int)}
	b, err := c.lines.next()
	if err != nil {
		return nil, c.errorf(err)
	}
	h, err := parseCastHeader(b)
	if err != nil {
		return nil, c.errorf(err)
	}
	formats := map[int]Format{2: AsciicastV2, 3: AsciicastV3}
	if formats[h.Version] == "" {
		return nil, c.errorf(fmt.Errorf("asciicast version %d: want 1, 2 or 3", h.Version))
	}
	if c.head, err = h.header(formats[h.Version]); err != nil {
		return nil, c.errorf(err)
	}
	return c, nil
}

func (c *cast) errorf(err error) error {
	return &Error{Path: c.path, Line: max(1, c.lines.Line()), Err: err}
}

func (c *cast) Header() *Header { return c.head }
func (c *cast) Close() error    { return c.f.Close() }
func (c *cast) Files() []string { return []string{c.path} }

// Next skips comments and events of unknown kinds, as the format asks of its readers.
func (c *cast) Next() (*Event, error) {
	for {
		b, err := c.lines.next()
		if errors.Is(err, io.EOF) {
			return nil, err
		}
		if err != nil {
			return nil, c.errorf(err)
		}
		if len(b) == 0 || b[0] == '#' && c.head.Format == AsciicastV3 {
			continue
		}
		known, err := c.parse(b)
		if err != nil && c.lines.Torn() {
			c.torn = true
			return nil, io.EOF
		}
		if err != nil {
			return nil, c.errorf(err)
		}
		if known {
			return &c.event, nil
		}
	}
}

// parse reads one line into c.event; known is false where it is of a kind to be skipped.
func (c *cast) parse(b []byte) (known bool, err error) {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil || len(parts) != 3 {
		return false, fmt.Errorf("want [time, code, data], not %s", excerpt(b))
	}
	var code string
	if err := json.Unmarshal(parts[1], &code); err != nil {
		return false, fmt.Errorf("the code %s: want a string", excerpt(parts[1]))
	}
	at, err := c.at(parts[0])
	if err != nil {
		return false, err
	}
	c.event = Event{At: at}
	if len(code) != 1 || !isKind(Kind(code[0])) {
		if len(c.other) < 16 {
			c.other[code]++
		}
		return false, nil
	}
	c.event.Kind = Kind(code[0])
	return true, c.event.setText(parts[2])
}

func (c *cast) at(b json.RawMessage) (time.Duration, error) {
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return 0, fmt.Errorf("the time %s: want seconds", excerpt(b))
	}
	d, err := duration(n)
	if err != nil {
		return 0, err
	}
	if c.head.Format == AsciicastV3 {
		return c.time.step(d)
	}
	return c.time.to(d)
}

// isKind reports whether asciicast has events of kind k.
func isKind(k Kind) bool { return slices.Contains([]Kind{Output, Input, Resize, Marker, Exit}, k) }

// setText takes the data of an event of asciicast.
func (e *Event) setText(b json.RawMessage) (err error) {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("the data %s: want a string", excerpt(b))
	}
	switch e.Kind {
	case Resize:
		e.Rows, e.Cols, err = parseSize(text)
	case Exit:
		if e.Code, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
			err = fmt.Errorf("the exit status %s: want a whole number", excerpt([]byte(text)))
		}
	default:
		e.Data = []byte(text)
	}
	return err
}

func parseSize(text string) (rows, cols int, err error) {
	w, h, _ := strings.Cut(text, "x")
	cols, errW := strconv.Atoi(w)
	rows, errH := strconv.Atoi(h)
	if errW != nil || errH != nil {
		return 0, 0, fmt.Errorf("the size %s: want COLSxROWS, as in 80x24", excerpt([]byte(text)))
	}
	return rows, cols, checkSize(rows, cols)
}

func (c *cast) Notes() []string {
	notes := c.time.notes()
	for _, code := range slices.Sorted(maps.Keys(c.other)) {
		notes = append(notes, fmt.Sprintf("%d events of the kind %s are left out", c.other[code], excerpt([]byte(code))))
	}
	if c.torn {
		notes = append(notes, fmt.Sprintf("line %d is cut off: the recording ends before it", c.lines.Line()))
	}
	return notes
}

// excerpt is the beginning of b for a message.
func excerpt(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}

// castV1 is asciicast v1: one object, whose "stdout" is an array of [delay, data]. It is read at once, as what describes the terminal
// may stand behind the array.
type castV1 struct {
	path   string
	head   *Header
	time   timeline
	events []Event
	next   int
	torn   bool
}

// maxV1 is how many bytes an asciicast v1 has at most, unpacked.
const maxV1 = 1 << 30

func newCastV1(path string, f io.ReadCloser) (*castV1, error) {
	c := &castV1{path: path}
	s := jsonscan.NewStream(io.LimitReader(f, maxV1), MaxData)
	h, err := c.read(s)
	if err == nil && h.Version != 1 {
		err = fmt.Errorf("asciicast version %d in one object: want 1", h.Version)
	}
	if err == nil {
		c.head, err = h.header(AsciicastV1)
	}
	if err == nil {
		return c, f.Close()
	}
	var wrong *jsonscan.SyntaxError
	var long *jsonscan.LongLineError
	at := s.Offset()
	if errors.As(err, &wrong) {
		at, err = wrong.Offset, wrong.Err
	} else if errors.As(err, &long) {
		err = fmt.Errorf("a value of more than %d MiB", MaxData>>20)
	} else if unexpectedEnd(err) {
		err = errors.New("the file ends within the object")
	}
	return nil, &Error{Path: path, Offset: at, Err: err}
}

// read reads the object. One that is cut off within the array, or behind it, is as good as one that ends there.
func (c *castV1) read(s *jsonscan.Stream) (*castHeader, error) {
	h, begun := new(castHeader), false
	for s.Begin('{'); s.More('}'); {
		key := string(s.Key())
		if key == "stdout" {
			begun = true
			for s.Begin('['); s.More(']'); {
				if raw := s.Raw(); s.Err() == nil {
					if err := c.add(raw); err != nil {
						return nil, err
					}
				}
			}
		} else if v := s.Raw(); s.Err() == nil {
			if err := h.set(key, v); err != nil {
				return nil, err
			}
		}
	}
	if c.torn = begun && unexpectedEnd(s.Err()); c.torn {
		return h, nil
	}
	return h, s.Err()
}

func (c *castV1) add(raw []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(raw, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("an event of %d parts: want [delay, data]", len(pair))
	}
	n, err := strconv.ParseFloat(string(pair[0]), 64)
	if err != nil {
		return fmt.Errorf("the delay %s: want seconds", excerpt(pair[0]))
	}
	d, err := duration(n)
	if err != nil {
		return err
	}
	e := Event{Kind: Output}
	if e.At, err = c.time.step(d); err != nil {
		return err
	}
	err = e.setText(pair[1])
	c.events = append(c.events, e)
	return err
}

func (c *castV1) Header() *Header { return c.head }
func (c *castV1) Close() error    { return nil }
func (c *castV1) Files() []string { return []string{c.path} }

func (c *castV1) Next() (*Event, error) {
	if c.next == len(c.events) {
		return nil, io.EOF
	}
	c.next++
	return &c.events[c.next-1], nil
}

func (c *castV1) Notes() []string {
	notes := c.time.notes()
	if c.torn {
		notes = append(notes, "the file is cut off: the recording ends before it should")
	}
	return notes
}
