package runview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

const (
	keptText   = 2 << 10 // bytes of one text that a Run keeps for its picture
	keptFields = 24      // of the parameters or the output of one turn
)

// A Field is a named part of what a tool was given or gave, or all of it where that is no object: Name is "" then.
type Field struct {
	Name string
	Text string // a string as it is, any other value as JSON
	Len  int    // bytes of the whole text
}

// fieldsOf takes a value apart. Of each text max bytes are kept, and keptFields fields; 0 keeps all.
func fieldsOf(value json.RawMessage, max int) []Field {
	value = bytes.TrimSpace(value)
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	if value[0] != '{' {
		return []Field{field("", value, max)}
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	if _, err := dec.Token(); err != nil {
		return []Field{field("", value, max)}
	}
	var out []Field
	for dec.More() {
		name, err := dec.Token()
		var v json.RawMessage
		if err == nil {
			err = dec.Decode(&v)
		}
		if err != nil { // a record's values are JSON: this is none
			return []Field{field("", value, max)}
		}
		if max > 0 && len(out) == keptFields {
			out = append(out, Field{Name: ellipsis})
			break
		}
		text, _ := name.(string)
		out = append(out, field(text, v, max))
	}
	return out
}

func field(name string, value json.RawMessage, max int) Field {
	text := textOf(value)
	f := Field{Name: name, Text: text, Len: len(text)}
	if max > 0 {
		f.Name, f.Text = strings.Clone(clip(name, max)), strings.Clone(clip(text, max))
	}
	return f
}

// textOf is a string as it is, and any other value as JSON without spaces.
func textOf(value json.RawMessage) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	return b.String()
}

// inline is all of fields on one line: name=text, as far as max bytes.
func inline(fields []Field, max int) string {
	var b strings.Builder
	for _, f := range fields {
		if b.Len() > max {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if f.Name != "" {
			b.WriteString(f.Name)
			b.WriteByte('=')
		}
		b.WriteString(clip(strings.TrimSpace(f.Text), max))
	}
	return b.String()
}

const ellipsis = "…"

// fit returns as much of text, which must be visible, as goes into cols columns, with an ellipsis where something is left out.
func fit(text string, cols int) string {
	if len(text) <= cols { // no text takes more columns than bytes
		return text
	}
	switch {
	case columns(text, cols) == len(text):
		return text
	case cols < 1:
		return ""
	}
	return text[:columns(text, cols-1)] + ellipsis
}

// pad is text in exactly cols columns.
func pad(text string, cols int) string {
	text = fit(text, cols)
	return text + strings.Repeat(" ", max(0, cols-vt.StringWidth(text)))
}

// wrap returns the first rows rows of text, whose lines are broken at cols columns, and how many of its lines were left out.
// Lines are visible; a tab is two spaces.
func wrap(text string, cols, rows int) (out []string, left int) {
	cols = max(cols, 2) // a wide character must fit
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		line = visible.Line(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "  "))
		for first := true; first || line != ""; first = false {
			if len(out) == rows {
				return out, len(lines) - i
			}
			n := columns(line, cols)
			out = append(out, line[:n])
			line = line[n:]
		}
	}
	return out, 0
}

// columns is how many bytes of text go into cols columns.
func columns(text string, cols int) int {
	at := 0
	for used := 0; at < len(text); {
		cluster, w := vt.FirstCluster(text[at:])
		if used+w > cols {
			break
		}
		at, used = at+len(cluster), used+w
	}
	return at
}

// clip is text without what stands behind its first n bytes, cut where a character begins.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}

// Duration is how long something took, for people: 340ms, 42s, 3m 05s, 2h 10m, 3d 4h.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	}
	return elapsed(d)
}

// elapsed is Duration in whole seconds, for a clock that runs.
func elapsed(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	const day = 24 * time.Hour
	return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
}

// A style is how a text is drawn: the parameters of SGR, "" for plain.
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	red     style = "31"
	green   style = "32"
	yellow  style = "33"
	cyan    style = "36"
	refused style = "1;35"
	broken  style = "1;31"
	focused style = "7"
)

// unlimited is for rows of any width.
const unlimited = -1

// A row is one line of at most cols columns.
type row struct {
	b            strings.Builder
	cols, used   int
	colour, full bool
}

func newRow(cols int, colour bool) *row { return &row{cols: cols, colour: colour} }

// put adds text, one line of it whatever it holds, as far as it fits.
func (r *row) put(s style, text string) *row {
	if r.full || text == "" {
		return r
	}
	text = visible.Line(text)
	if r.cols != unlimited {
		if kept := fit(text, r.cols-r.used); kept != text {
			text, r.full = kept, true
		}
	}
	r.used += vt.StringWidth(text)
	if !r.colour || s == plain || text == "" {
		r.b.WriteString(text)
		return r
	}
	r.b.WriteString("\x1b[" + string(s) + "m" + text + "\x1b[0m") // text holds no other control
	return r
}

// column adds text in exactly cols columns.
func (r *row) column(s style, text string, cols int) *row {
	return r.put(s, pad(visible.Line(text), cols))
}

// left is how many columns are left.
func (r *row) left() int { return r.cols - r.used }

func (r *row) String() string { return r.b.String() }
