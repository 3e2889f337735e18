package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

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
