package cassette

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A merger gives the events of several streams in the order of seq, holding one of each.
type merger struct {
	lanes []*lane
	last  Timed
	from  bool              // the first event may have any seq, and others may be left out: gaps are not seen
	torn  bool              // a lane may end in the middle of a line: the others go on, as far as no seq is missing
	err   error             // how the first torn lane ended
	file  *lane             // of the last event
	note  func(error) error // where it is set a line that is refused is told and passed by
}

// A lane is one stream of a merger.
type lane struct {
	stream Stream
	f      *os.File
	lines  *lineReader // nil: there is no more than head
	head   *Event
	line   int // of head
}

// lineStreams are the streams that have lines.
var lineStreams = []Stream{StreamInput, StreamOutput, StreamFrames, StreamService}

// newMerger opens the streams of dir. final may be nil.
func newMerger(dir string, streams []Stream, final *Final, from time.Duration, partial bool) (*merger, error) {
	m := &merger{from: from > 0 || len(streams) < len(lineStreams), torn: partial}
	for _, s := range streams {
		l, err := openLane(dir, s, from, partial)
		if errors.Is(err, fs.ErrNotExist) {
			if partial {
				continue
			}
			err = refuse(s.File(), 0, ErrMissingFile, "")
		}
		if err != nil {
			m.close()
			return nil, err
		}
		m.lanes = append(m.lanes, l)
	}
	if final != nil && final.Time() >= from {
		m.lanes = append(m.lanes, &lane{stream: StreamFinal, head: &Event{Timed: final.Timed, Stream: StreamFinal, G: final.G, Final: final}})
	}
	return m, nil
}

func openLane(dir string, s Stream, from time.Duration, torn bool) (*lane, error) {
	f, err := openRegular(filepath.Join(dir, s.File()))
	if err != nil {
		return nil, err
	}
	if from > 0 {
		if err := seekTime(f, s, torn, (from + time.Millisecond - 1).Milliseconds()); err != nil {
			f.Close()
			return nil, err
		}
	}
	return &lane{stream: s, f: f, lines: newLineReader(s.File(), f)}, nil
}

// fill reads the lane's next event where it has none. At the end head stays nil.
func (l *lane) fill() error {
	if l.head != nil || l.lines == nil {
		return nil
	}
	b, err := l.lines.next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	l.line = l.lines.Line()
	l.head, err = decodeEvent(l.stream, l.line, b)
	return err
}

// next returns the next event, io.EOF at the end.
func (m *merger) next() (*Event, error) {
	var first *lane
	for _, l := range m.lanes {
		if err := m.fill(l); err != nil {
			return nil, err
		}
		if l.head != nil && (first == nil || l.head.Seq < first.head.Seq) {
			first = l
		}
	}
	if first == nil {
		return nil, cmp.Or(m.err, io.EOF)
	}
	e := first.head
	first.head, m.file = nil, first
	if err := m.pass(m.check(e, first)); err != nil {
		return nil, err
	}
	m.last = Timed{max(m.last.Seq, e.Seq), max(m.last.TMS, e.TMS)}
	return e, nil
}

// fill reads the next event of a lane.
func (m *merger) fill(l *lane) error {
	for {
		err := l.fill()
		if err == nil || m.note == nil && !m.torn {
			return err
		}
		if m.note == nil || errors.Is(err, ErrTooLong) { // what comes behind cannot be told
			l.lines = nil
		}
		if m.note == nil {
			m.err = cmp.Or(m.err, err)
			return nil
		}
		if err := m.note(err); err != nil {
			return err
		}
	}
}

// pass tells of a refusal, where somebody listens.
func (m *merger) pass(err error) error {
	if err == nil || m.note == nil {
		return err
	}
	return m.note(err)
}

func (m *merger) check(e *Event, l *lane) error {
	switch {
	case !m.from && e.Seq != m.last.Seq+1:
		return refuse(l.stream.File(), l.line, ErrSequence, "expected %d, found %d", m.last.Seq+1, e.Seq)
	case e.Seq <= m.last.Seq:
		return refuse(l.stream.File(), l.line, ErrSequence, "expected more than %d, found %d", m.last.Seq, e.Seq)
	case e.TMS < m.last.TMS:
		return refuse(l.stream.File(), l.line, ErrTime, "expected at least %d ms, found %d", m.last.TMS, e.TMS)
	}
	return nil
}

func (m *merger) close() {
	for _, l := range m.lanes {
		if l.f != nil {
			l.f.Close()
		}
	}
}

// openRegular opens a file that is one: a cassette of others must not make a reader wait for a pipe.
func openRegular(path string) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, refuse(filepath.Base(path), 0, ErrMissingFile, "expected a regular file, found %s", st.Mode().Type())
	}
	return os.Open(path)
}
