package main

import (
	"io"
	"iter"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// changes yields what the recording's terminal showed and was given; nothing of a bare tape.
func (s *shown) changes(o *showOptions) iter.Seq2[*deck.ScreenChange, error] {
	if s.rec == nil {
		return func(func(*deck.ScreenChange, error) bool) {}
	}
	return deck.ScreenChanges(s.rec, o.payloads || o.filter.Grep != nil)
}

// showScreenRow is one line of the timeline, without a number: those are the tape's.
func showScreenRow(w io.Writer, c *deck.ScreenChange) {
	visible.Fprintf(w, "\t%s\t%s\t%s\t%s\n", seconds(c.TMS), deck.KindScreen, deck.LaneTerminal, c.String())
}

// showScreen prints the rows of a screen, down to the last that holds something.
func showScreen(c *deck.ScreenChange, out io.Writer) error {
	if c.What != deck.ChangeScreen {
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
func screenJSON(c *deck.ScreenChange, o *showOptions) ([]byte, error) {
	if !o.payloads {
		c.Screen = nil
	}
	return marshal(struct {
		Kind string `json:"kind"`
		Lane string `json:"lane"`
		*deck.ScreenChange
	}{deck.KindScreen, deck.LaneTerminal, c})
}
