package main

import (
	"io"
	"iter"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

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
