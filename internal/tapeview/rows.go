package tapeview

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Options say how rows look. Zero is for a file or a pipe.
type Options struct {
	Cols   int // of the terminal; 0 where it is none
	Colour bool
	Prices *llm.Prices // nil are those that are built in
}

// maxTurns is of how many calls what they say is kept at once until they are written.
const maxTurns = 20_000

// Rows write a timeline, a record in one line or two. They are for one goroutine.
type Rows struct {
	say    sayer
	cols   int
	before int // columns that what stands before the last one has taken so far
	style  func(s saying, i int) (begin, end string)

	book  *account.Book
	turns map[uint64]*account.Turn // that were heard and not written yet, by seq
}

// New returns rows of a tape whose payloads are in store.
func New(store cas.Store, o *Options) *Rows {
	r := &Rows{
		say: sayer{max: maxSaid, store: store}, cols: o.Cols, style: func(saying, int) (string, string) { return "", "" },
		book: account.NewBook(store, o.Prices), turns: make(map[uint64]*account.Turn),
	}
	if o.Colour {
		r.style = styleOf
	}
	return r
}

// Hear passes records on and listens to what the calls of models among them say: a request repeats what was said before, so that rows of
// some records need to have heard the others.
func (r *Rows) Hear(records iter.Seq2[*tape.Record, error]) iter.Seq2[*tape.Record, error] {
	return func(yield func(*tape.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				r.Listen(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Listen is Hear for one record.
func (r *Rows) Listen(rec *tape.Record) {
	if _, ok := rec.Kind.(*tape.LLMCall); !ok || len(r.turns) == maxTurns {
		return
	}
	if t := r.book.Add(rec); t != nil {
		r.turns[rec.Seq] = t
	}
}

// ANSI styles.
const (
	styleBold = "\x1b[1m"
	styleDim  = "\x1b[2m"
	styleRed  = "\x1b[31m"
	styleEnd  = "\x1b[0m"
)

// styleOf is the style of line i: of what failed the last line is red, which says so.
func styleOf(s saying, i int) (begin, end string) {
	switch {
	case s.failed && i == len(s.lines)-1:
		return styleRed, styleEnd
	case s.ignored:
		return styleDim, styleEnd
	case s.model && i == 0:
		return styleBold, styleEnd
	}
	return "", ""
}

// isInput reports whether a record is an input that nobody looks for first.
func isInput(k tape.Kind) bool {
	switch k.(type) {
	case *tape.NameLookup, *tape.ClockRead, *tape.ClockSleep, *tape.EnvRead, *tape.FileStat, *tape.DirList, *tape.RandomRead:
		return true
	}
	return false
}

// Write writes a record into columns that a tabwriter aligns.
func (r *Rows) Write(w io.Writer, rec *tape.Record, lane string) error {
	at, lane := Seconds(rec.MonotonicMS), clipped(lane)
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

// maxLane is how many characters of a lane have room: that of a process is its command line, which stands beside it.
const maxLane = 30

func clipped(lane string) string {
	if runes := []rune(lane); len(runes) > maxLane {
		return string(runes[:maxLane-1]) + "…"
	}
	return lane
}

// Now writes a record at once; its columns cannot wait for those below.
func (r *Rows) Now(w io.Writer, rec *tape.Record, lane string) error {
	r.room(65)
	return r.lines(rec, func(i int, begin, line, end string) error {
		if i > 0 {
			_, err := visible.Fprintf(w, strings.Repeat(" ", 65)+begin+"%s"+end+"\n", line)
			return err
		}
		_, err := visible.Fprintf(w, "%-5d  %9s  %-13s  %-30s  "+begin+"%s"+end+"\n", rec.Seq, Seconds(rec.MonotonicMS),
			rec.Kind.Name(), clipped(lane), line)
		return err
	})
}

// room bounds what messages say to what is left of the terminal.
func (r *Rows) room(before int) {
	r.before = max(r.before, before)
	if r.cols > 0 {
		r.say.max = max(r.cols-r.before, minSaid)
	}
}

// lines calls write for every line that a record says.
func (r *Rows) lines(rec *tape.Record, write func(i int, begin, line, end string) error) error {
	s := saying{lines: []string{Line(rec.Kind)}, failed: follow.Failed(rec.Kind), ignored: isInput(rec.Kind)}
	if isConversation(rec.Kind) {
		say := r.say
		say.turn = r.turns[rec.Seq]
		delete(r.turns, rec.Seq)
		s = say.record(rec.Kind)
		s.lines[len(s.lines)-1] += wayOn(rec.Kind)
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
