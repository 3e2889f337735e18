package sessionlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// copying applies what was found to the entries of the same log, in order.
type copying struct {
	inserts []insert // those that are still to come
	drops   map[int][]int
}

func (f *Findings) copying() *copying { return &copying{f.inserts, f.drops} }

// before gives the events that stand before an entry.
func (c *copying) before(index int, each func(event []byte) error) error {
	for len(c.inserts) > 0 && c.inserts[0].before <= index {
		event := c.inserts[0].event
		c.inserts = c.inserts[1:]
		if err := each(event); err != nil {
			return err
		}
	}
	return nil
}

// event returns what stands in the place of an event: itself, or a tool_completed without the results that came twice, nil where
// no result is left of it.
func (c *copying) event(index int, event []byte) []byte {
	drop := c.drops[index]
	if drop == nil {
		return event
	}
	var s jsonscan.Scanner
	s.Reset(event)
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != "results" {
			s.Skip()
			continue
		}
		s.Peek()
		from := s.Offset()
		list, kept := without(s.Raw(), drop)
		if kept == 0 {
			return nil
		}
		return slices.Concat(event[:from], list, event[s.Offset():])
	}
	return event
}

// without returns a list without the elements of these indexes, and how many are left.
func without(list []byte, drop []int) (out []byte, kept int) {
	var s jsonscan.Scanner
	s.Reset(list)
	out = []byte{'['}
	n := 0
	for s.Begin('['); s.More(']'); n++ {
		raw := s.Raw()
		if slices.Contains(drop, n) {
			continue
		}
		if kept > 0 {
			out = append(out, ',')
		}
		out = append(out, raw...)
		kept++
	}
	return append(out, ']'), kept
}

// Examine reads a whole log, opened as tolerant, and says what a crash left in it. It holds the ids of the calls, and what it
// found. The error is that of the log, or a *LoadError around an *EventError. The log itself is never written to.
func Examine(log *Reader) (*Findings, error) {
	x := newExaminer()
	for e, err := range log.Entries() {
		if err != nil {
			return nil, err
		}
		if e.event != nil {
			if err := x.add(e.event, e.Line); err != nil {
				return nil, log.fail(err)
			}
		}
		x.index++
	}
	x.end()
	if torn := log.Torn(); torn != nil {
		x.find(TornLine, "0", "", torn.Line, "the last line has no end, and is no event; the copy is without it")
	}
	return x.found(), nil
}

// errOther is what is wrong with a log that is not the one that was examined.
var errOther = errors.New("the log is not as it was when it was examined: examine it again")

// WriteCopy reads the same log again and writes it with what was found closed. Without a finding the copy is the log. Events
// that were whole stand in it byte for byte, and so do records and lines without an event; the numbers of envelopes (seq)
// behind an event that was added or left out move with it. A list of events stays one, on a line each.
func (f *Findings) WriteCopy(w io.Writer, log *Reader) error {
	out := &copyWriter{w: bufio.NewWriterSize(w, 1<<16), plain: len(f.List) == 0}
	c, n := f.copying(), 0
	for e, err := range log.Entries() {
		if err != nil {
			return err
		}
		out.next(e)
		if err := c.before(n, out.made); err != nil {
			return err
		}
		event := e.event
		if event != nil {
			event = c.event(n, event)
		}
		if err := out.entry(e, event); err != nil {
			return err
		}
		n++
	}
	if n != f.entries {
		return errOther
	}
	out.atEnd = true
	if err := c.before(n, out.made); err != nil {
		return err
	}
	return out.close(log.Tail())
}

// A copyWriter writes the entries of a copy in the form of its log.
type copyWriter struct {
	w     *bufio.Writer
	plain bool // nothing was found: as it stood
	list  bool
	begun bool
	open  bool // the last line has no end
	wrote int
	shift int64 // how far numbers have moved

	// The entry that an event is made before, or, at the end, behind.
	form   Form
	seq    uint64
	hasSeq bool
	atEnd  bool
	buf    []byte
}

// next notes the entry that comes next in the log.
func (o *copyWriter) next(e *Entry) {
	if !o.begun {
		o.begun = true
		o.list = bytes.IndexByte(e.before, '[') >= 0
	}
	o.form, o.seq, o.hasSeq = e.Form, e.Seq, e.HasSeq
}

// made writes an event that the log does not have.
func (o *copyWriter) made(event []byte) error {
	seq := int64(o.seq) + o.shift //nolint:gosec // numbers of entries
	if o.atEnd {
		seq++
	}
	o.shift++
	line := event
	if o.form != FormBare && o.hasSeq {
		line = fmt.Appendf(nil, `{"seq":%d,"event":%s}`, seq, event)
	} else if o.form != FormBare {
		line = fmt.Appendf(nil, `{"event":%s}`, event)
	}
	return o.put(nil, line, []byte("\n"))
}

// entry writes an entry, of which event is what its event is now; nil for none left.
func (o *copyWriter) entry(e *Entry, event []byte) error {
	if e.event != nil && event == nil {
		o.shift--
		return nil
	}
	raw := e.raw
	if e.event != nil && !sameMemory(event, e.event) {
		at := cap(e.raw) - cap(e.event)
		raw = bytes.Join([][]byte{raw[:at], event, raw[at+len(e.event):]}, nil)
	}
	if o.shift != 0 && e.HasSeq {
		raw = renumbered(raw, strconv.AppendInt(o.buf[:0], int64(e.Seq)+o.shift, 10)) //nolint:gosec // as above
	}
	return o.put(e.before, raw, e.after)
}

func sameMemory(a, b []byte) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// renumbered returns an envelope with another number.
func renumbered(raw, seq []byte) []byte {
	var s jsonscan.Scanner
	s.Reset(raw)
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != "seq" {
			s.Skip()
			continue
		}
		s.Peek()
		from := s.Offset()
		s.Skip()
		return bytes.Join([][]byte{raw[:from], seq, raw[s.Offset():]}, nil)
	}
	return raw
}

// put writes an entry with what stands around it in its log; in a list that changes, on a line.
func (o *copyWriter) put(before, raw, after []byte) error {
	if o.list && !o.plain {
		before, after = []byte("[\n"), nil
		if o.wrote > 0 {
			before = []byte(",\n")
		}
	}
	if o.open && !o.list {
		o.w.WriteByte('\n')
	}
	o.w.Write(before)
	o.w.Write(raw)
	_, err := o.w.Write(after)
	o.open = !bytes.HasSuffix(after, []byte("\n"))
	o.wrote++
	return err
}

func (o *copyWriter) close(tail []byte) error {
	switch {
	case o.list && !o.plain && o.wrote == 0:
		o.w.WriteString("[]\n")
	case o.list && !o.plain:
		o.w.WriteString("\n]\n")
	default:
		o.w.Write(tail)
	}
	return o.w.Flush()
}
