package cassette

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A lineReader reads the lines of a stream, each of at most MaxLine bytes.
type lineReader struct {
	*jsonscan.Lines
	file string
}

func newLineReader(file string, r io.Reader) *lineReader {
	return &lineReader{jsonscan.NewLines(r, MaxLine), file}
}

// next returns the next line that is not blank, without its newline; valid until the next call. io.EOF: there is none.
func (l *lineReader) next() ([]byte, error) {
	for {
		b, err := l.read()
		if b = bytes.TrimSpace(b); err != nil || len(b) > 0 {
			return b, err
		}
	}
}

// read returns the next line. The last one may have no newline.
func (l *lineReader) read() ([]byte, error) {
	b, err := l.Next()
	var long *jsonscan.LongLineError
	if errors.As(err, &long) {
		return nil, refuse(l.file, long.Line, ErrTooLong, "a line has at most %d bytes", MaxLine)
	}
	return b, err
}

// decode reads a line into v.
func decode(file string, line int, b []byte, v any) error {
	if b[0] != '{' {
		return refuse(file, line, ErrBadJSON, "expected an object, found %.40q", b)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return refuse(file, line, ErrBadJSON, "%v in %.60q", err, b)
	}
	return nil
}

// decodeEvent reads a line of the stream s.
func decodeEvent(s Stream, line int, b []byte) (*Event, error) {
	e := &Event{Stream: s}
	var v any
	var at *Timed
	var g *uint64
	switch s {
	case StreamInput:
		e.Input = new(Input)
		v, at, g = e.Input, &e.Input.Timed, &e.Input.G
	case StreamOutput:
		e.Chunk = new(Chunk)
		v, at, g = e.Chunk, &e.Chunk.Timed, &e.Chunk.G
	case StreamFrames:
		e.Frame = new(Frame)
		v, at, g = e.Frame, &e.Frame.Timed, &e.Frame.G
	case StreamService:
		e.Service = new(ServiceEvent)
		v, at, g = e.Service, &e.Service.Timed, &e.Service.G
	default:
		return nil, fmt.Errorf("no stream %d", s)
	}
	if err := decode(s.File(), line, b, v); err != nil {
		return nil, err
	}
	e.Timed, e.G = *at, *g
	return e, nil
}

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

// The lines of a stream are in the order of time, so that a place in it is found by halving the file: no index is needed.

// seekTime sets f to its first line whose t_ms is at least ms.
func seekTime(f *os.File, s Stream, torn bool, ms int64) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	at, err := findLine(f, s, st.Size(), torn, func(t Timed) bool { return t.TMS >= ms })
	if err != nil {
		return err
	}
	_, err = f.Seek(at, io.SeekStart)
	return err
}

// findLine returns where the first line begins that is good; all lines behind a good one are. size where none is. torn: what is no
// JSON is good too.
func findLine(f io.ReaderAt, s Stream, size int64, torn bool, good func(Timed) bool) (int64, error) {
	var failed error
	low := sort.Search(int(size), func(i int) bool { // whether the first line that begins at i or behind it is good
		if failed != nil {
			return true
		}
		_, b, err := lineFrom(f, s, int64(i), size)
		if err != nil {
			failed = err
			return true
		}
		var t Timed
		if b == nil {
			return true
		}
		if err := decode(s.File(), 0, b, &t); err != nil {
			if !torn {
				failed = err
			}
			return true
		}
		return good(t)
	})
	if failed != nil {
		return 0, failed
	}
	at, _, err := lineFrom(f, s, int64(low), size)
	return at, err
}

// lineFrom returns the first line that begins at offset or behind it and is not blank, and where; nil where there is none.
func lineFrom(f io.ReaderAt, s Stream, offset, size int64) (int64, []byte, error) {
	at := max(offset-1, 0) // the newline before it, if it is one
	l := newLineReader(s.File(), io.NewSectionReader(f, at, size-at))
	var b []byte
	var err error
	if offset > 0 {
		_, err = l.read()
	}
	if err == nil {
		b, err = l.next()
	}
	if errors.Is(err, io.EOF) {
		return size, nil, nil
	}
	return at + l.Offset(), b, err
}

// lastLine returns the last line that is not blank, nil where there is none.
func lastLine(f io.ReaderAt, s Stream, size int64) ([]byte, error) {
	var tail []byte
	for at := size; at > 0; {
		n := min(at, 64<<10)
		at -= n
		block := make([]byte, n, int(n)+len(tail))
		if _, err := f.ReadAt(block, at); err != nil {
			return nil, err
		}
		tail = append(block, tail...)
		line := bytes.TrimSpace(tail)
		if len(line) == 0 {
			tail = nil // blanks, of which there may be any number
			continue
		}
		if i := bytes.LastIndexByte(line, '\n'); i >= 0 {
			return line[i+1:], nil
		}
		if len(line) > MaxLine {
			return nil, refuse(s.File(), 0, ErrTooLong, "a line has at most %d bytes", MaxLine)
		}
	}
	if line := bytes.TrimSpace(tail); len(line) > 0 {
		return line, nil
	}
	return nil, nil
}

// A refusal is one of the errors below, by its short name and for people.
type refusal struct{ code, text string }

func (r *refusal) Error() string { return r.text }

// What a reader refuses. Open returns each of them wrapped, with the file, the line and both sides where there are two; Code
// gives its short name.
var (
	ErrNoManifest   error = &refusal{"unfinished", "no manifest: the recording is not finished"}
	ErrMissingFile  error = &refusal{"missing-file", "a required file is missing"}
	ErrVersion      error = &refusal{"version", "a version of the format that is not known here"}
	ErrNoID         error = &refusal{"no-id", "no id"}
	ErrNoDigest     error = &refusal{"no-digest", "no content digest"}
	ErrDigest       error = &refusal{"digest", "the content digest does not match output.raw"}
	ErrChunkDigest  error = &refusal{"chunk-digest", "a chunk's digest does not match its bytes"}
	ErrChunkRange   error = &refusal{"chunk-range", "a chunk's range is wrong"}
	ErrSequence     error = &refusal{"sequence", "seq has a gap or goes back"}
	ErrTime         error = &refusal{"time", "t_ms goes back"}
	ErrFeature      error = &refusal{"feature", "a required feature is not known here"}
	ErrNoEmulator   error = &refusal{"no-emulator", "no emulator"}
	ErrResolution   error = &refusal{"resolution", "resolution_ms is not above 0"}
	ErrBadJSON      error = &refusal{"bad-json", "not the JSON that must stand here"}
	ErrTooLong      error = &refusal{"too-long", "longer than a reader takes"}
	ErrNotBound     error = &refusal{"not-bound", "another cassette than the expected one"}
	ErrEmulator     error = &refusal{"emulator", "another emulator than the required one"}
	ErrNotDirectory error = &refusal{"not-a-directory", "not a directory"}
)

// What a writer refuses.
var (
	ErrExists   error = &refusal{"exists", "there is a cassette already"}
	ErrNoFinal  error = &refusal{"no-final", "a cassette ends with a final record"}
	ErrFinished error = &refusal{"finished", "the recording has ended"}
)

// Code returns the short name of the refusal that err is, "" where it is none. The names stand in docs/reference/cassette.md.
func Code(err error) string {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.code
	}
	return ""
}

// A FileError is a refusal with its place. Unwrap gives the refusal.
type FileError struct {
	File   string // the name within the cassette
	Line   int    // from 1; 0 where the file has no lines
	Detail string // what was expected and what came; "" where the refusal says all
	Err    error
}

// Error returns "file: line 3: refusal: detail".
func (e *FileError) Error() string {
	s := e.File
	if e.Line > 0 {
		s = fmt.Sprintf("%s: line %d", s, e.Line)
	}
	s += ": " + e.Err.Error()
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the refusal.
func (e *FileError) Unwrap() error { return e.Err }

func refuse(file string, line int, err error, format string, args ...any) error {
	return &FileError{File: file, Line: line, Err: err, Detail: fmt.Sprintf(format, args...)}
}
