package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
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
	case s.aside:
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
	if isTalk(rec.Kind) {
		s = r.say.talk(rec.Kind)
	}
	if x, ok := rec.Kind.(*tape.HTTPExchange); ok && strings.HasPrefix(x.Lane, "mcp:") {
		s.aside = true // what it carried stands beside it
	}
	for i, line := range s.lines {
		begin, end := r.style(s, i)
		if err := write(i, begin, line, end); err != nil {
			return err
		}
	}
	return nil
}
