package foreign

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// typescript reads what script(1) of util-linux wrote: a timing file and the logs that its lines count the bytes of.
type typescript struct {
	path    string // of the timing
	f       io.ReadCloser
	lines   lines
	head    Header
	out, in *typelog // the same where one log holds both
	time    timeline
	event   Event

	log        *typelog // of which left bytes are to come as Events of kind at
	kind       Kind
	left       int64
	at         time.Duration
	exit       *int
	ended      bool
	inputs     int   // that are in no log
	short      int64 // bytes that the logs lack
	torn       bool
	afterFacts bool
}

// typescriptFiles are where the parts of a typescript lie.
type typescriptFiles struct{ timing, out, in string }

// survey is what a timing file says as a whole.
type survey struct {
	facts   map[string]string
	out, in int64 // bytes
}

// surveyTiming reads a timing file once, for its facts and sums. Lines that are wrong are left to the second reading.
func surveyTiming(path string) (*survey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &survey{facts: make(map[string]string)}
	for l := newLines(f); ; {
		b, err := l.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, &Error{Path: path, Line: l.Line(), Err: err}
		}
		t, err := parseTiming(b)
		if err != nil {
			continue
		}
		switch t.stream {
		case 'O':
			s.out += t.n
		case 'I':
			s.in += t.n
		case 'H':
			if _, there := s.facts[t.name]; !there && len(s.facts) < 64 {
				s.facts[t.name] = t.rest
			}
		}
	}
}

// findTypescript says where the parts of the typescript are of which path is one.
func findTypescript(path string, timing bool, o *Options) (*typescriptFiles, error) {
	files := &typescriptFiles{timing: o.Timing, out: o.LogOut, in: o.LogIn}
	if o.LogIO != "" {
		files.out, files.in = o.LogIO, o.LogIO
	}
	switch {
	case timing:
		files.timing = path
	case files.out == "":
		files.out = path
	}
	if files.timing == "" {
		return nil, fmt.Errorf("%s is a typescript: its timing file is needed too (--timing FILE; script -T makes one)", path)
	}
	if files.out != "" && files.in != "" {
		return files, nil
	}
	s, err := surveyTiming(files.timing)
	if err != nil {
		return nil, err
	}
	if files.out == "" {
		files.out = beside(files.timing, s.facts["OUTPUT_LOG"])
	}
	if files.in == "" {
		files.in = beside(files.timing, s.facts["INPUT_LOG"])
	}
	if files.out == "" {
		return nil, fmt.Errorf("%s is a timing file: the typescript that it belongs to is needed too (--log-out FILE)", path)
	}
	if s.facts["INPUT_LOG"] != "" && s.facts["INPUT_LOG"] == s.facts["OUTPUT_LOG"] {
		files.in = files.out
	}
	return files, nil
}

// beside is a file of that name in the directory of path; "" where there is none. What stands in a file leads nowhere else.
func beside(path, name string) string {
	base := filepath.Base(filepath.FromSlash(name))
	if name == "" || base == "." || base == ".." || base == string(filepath.Separator) {
		return ""
	}
	found := filepath.Join(filepath.Dir(path), base)
	if st, err := os.Stat(found); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	return found
}

func newTypescript(files *typescriptFiles) (*typescript, error) {
	s, err := surveyTiming(files.timing)
	if err != nil {
		return nil, err
	}
	t := &typescript{path: files.timing}
	if err := t.openLogs(files, s); err != nil {
		t.Close()
		return nil, err
	}
	if t.f, err = os.Open(files.timing); err != nil {
		t.Close()
		return nil, err
	}
	t.lines = newLines(t.f)
	facts := t.out.facts()
	for k, v := range s.facts {
		facts[k] = v
	}
	t.setHeader(facts)
	return t, nil
}

func (t *typescript) openLogs(files *typescriptFiles, s *survey) (err error) {
	if files.in == files.out {
		t.out, err = openTypelog(files.out, s.out+s.in)
		t.in = t.out
		return err
	}
	if t.out, err = openTypelog(files.out, s.out); err != nil || files.in == "" {
		return err
	}
	t.in, err = openTypelog(files.in, s.in)
	return err
}

func (t *typescript) setHeader(facts map[string]string) {
	t.head = Header{
		Format: Typescript, Term: facts["TERM"], Command: facts["COMMAND"], Started: scriptTime(facts["START_TIME"]),
	}
	if sh := facts["SHELL"]; sh != "" {
		t.head.Env = map[string]string{"SHELL": sh}
	}
	rows, errRows := strconv.Atoi(facts["LINES"])
	cols, errCols := strconv.Atoi(facts["COLUMNS"])
	if errRows == nil && errCols == nil && checkSize(rows, cols) == nil {
		t.head.Rows, t.head.Cols = rows, cols
	}
	if secs, err := strconv.ParseFloat(facts["DURATION"], 64); err == nil {
		t.head.Duration = seconds(secs)
	}
}

func (t *typescript) Header() *Header { return &t.head }

func (t *typescript) Files() []string {
	files := []string{t.path, t.out.path}
	if t.in != nil && t.in != t.out {
		files = append(files, t.in.path)
	}
	return files
}

func (t *typescript) Close() error {
	var errs []error
	if t.f != nil {
		errs = append(errs, t.f.Close())
	}
	if t.out != nil {
		errs = append(errs, t.out.f.Close())
	}
	if t.in != nil && t.in != t.out {
		errs = append(errs, t.in.f.Close())
	}
	return errors.Join(errs...)
}

func (t *typescript) Next() (*Event, error) {
	for {
		if e, err := t.piece(); e != nil || err != nil {
			return e, err
		}
		if t.ended {
			return nil, io.EOF
		}
		b, err := t.lines.next()
		if errors.Is(err, io.EOF) {
			t.ended = true
			if e := t.exitEvent(); e != nil {
				return e, nil
			}
			continue
		}
		if err != nil {
			return nil, t.errorf(err)
		}
		if e, err := t.line(b); e != nil || err != nil {
			return e, err
		}
	}
}

func (t *typescript) errorf(err error) error {
	return &Error{Path: t.path, Line: t.lines.Line(), Err: err}
}

// piece is the next part of what the last line counted; nil where that is over.
func (t *typescript) piece() (*Event, error) {
	if t.left == 0 {
		return nil, nil
	}
	b, err := t.log.take(t.left)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		t.short += t.left
		t.left = 0
		return nil, nil
	}
	t.left -= int64(len(b))
	t.event = Event{At: t.at, Kind: t.kind, Data: b}
	return &t.event, nil
}

// line takes a line of the timing; the event is nil where it is none, or one whose bytes are still to be read.
func (t *typescript) line(b []byte) (*Event, error) {
	if len(b) == 0 {
		return nil, nil
	}
	l, err := parseTiming(b)
	if err != nil {
		switch {
		case t.lines.Torn():
			t.torn = true
			return nil, nil
		case t.afterFacts:
			return nil, nil // a fact of several lines, such as a command
		}
		return nil, t.errorf(err)
	}
	t.afterFacts = l.stream == 'H'
	if t.at, err = t.time.step(l.delay); err != nil {
		return nil, t.errorf(err)
	}
	switch l.stream {
	case 'O':
		t.log, t.kind, t.left = t.out, Output, l.n
	case 'I':
		if t.in == nil {
			t.inputs++
			return nil, nil
		}
		t.log, t.kind, t.left = t.in, Input, l.n
	case 'S':
		return t.signal(l)
	case 'H':
		if n, err := strconv.Atoi(l.rest); l.name == "EXIT_CODE" && err == nil {
			t.exit = &n
		}
	}
	return nil, nil
}

// signal is a resize where the size was told.
func (t *typescript) signal(l timingLine) (*Event, error) {
	if l.name != "SIGWINCH" {
		t.event = Event{At: t.at, Kind: Signal, Data: []byte(l.name)}
		return &t.event, nil
	}
	rows, cols, err := winch(l.rest)
	if err != nil {
		return nil, t.errorf(err)
	}
	t.event = Event{At: t.at, Kind: Resize, Rows: rows, Cols: cols}
	return &t.event, nil
}

func (t *typescript) exitEvent() *Event {
	if t.exit == nil && t.out.exited {
		t.exit = &t.out.status
	}
	if t.exit == nil {
		return nil
	}
	t.event = Event{At: t.at, Kind: Exit, Code: *t.exit}
	return &t.event
}

func (t *typescript) Notes() []string {
	notes := t.time.notes()
	if t.inputs > 0 {
		notes = append(notes, fmt.Sprintf("%d inputs are in no log that was given (--log-in FILE): they are left out", t.inputs))
	}
	if t.short > 0 {
		notes = append(notes, fmt.Sprintf("the log ends %d bytes before the timing does", t.short))
	}
	if t.torn {
		notes = append(notes, fmt.Sprintf("line %d of the timing is cut off: the recording ends before it", t.lines.Line()))
	}
	if t.out.at < t.out.end && t.ended {
		notes = append(notes, fmt.Sprintf("%d bytes of %s are in no line of the timing: they are left out",
			t.out.end-t.out.at, strings.TrimSpace(filepath.Base(t.out.path))))
	}
	return notes
}

// A typelog is one of script's logs: a line "Script started", what came, and a line "Script done" with an empty one before it.
type typelog struct {
	path   string
	f      *os.File
	r      *bufio.Reader
	begin  int64 // where the content begins
	end    int64 // where it ends
	at     int64
	head   string // the first line, or lines: a command may have several
	status int
	exited bool // status is known
	data   []byte
}

const (
	started = "Script started on "
	done    = "\nScript done on "
)

var (
	exitCode = lazyregexp.New(`COMMAND_EXIT_CODE="(-?\d{1,10})"`)
	fact     = lazyregexp.New(`\b(TERM|TTY|COLUMNS|LINES)="([^"]*)"`)
)

// openTypelog finds the content of a log. total is how many bytes of content the timing knows; below 0 where it knows none.
func openTypelog(path string, total int64) (*typelog, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := &typelog{path: path, f: f}
	if err := l.find(total); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(l.begin, io.SeekStart); err != nil {
		f.Close()
		return nil, err
	}
	l.at = l.begin
	l.r = bufio.NewReaderSize(f, 64<<10)
	return l, nil
}

// ends is how much of a log's beginning and of its end is looked at for the lines of script.
const ends = 64 << 10

func (l *typelog) find(total int64) error {
	st, err := l.f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return errors.New(l.path + " is no file")
	}
	l.end = st.Size()
	if err := l.findEnd(st.Size()); err != nil {
		return err
	}
	return l.findBegin(total)
}

// findEnd takes the last line off.
func (l *typelog) findEnd(size int64) error {
	from := max(0, size-ends)
	tail := make([]byte, size-from)
	if _, err := io.ReadFull(io.NewSectionReader(l.f, from, size-from), tail); err != nil {
		return err
	}
	i := bytes.LastIndex(tail, []byte(done))
	if i < 0 || !lastLine(tail[i+len(done):]) {
		return nil // script was killed
	}
	l.end = from + int64(i)
	if m := exitCode.FindSubmatch(tail[i:]); m != nil {
		n, err := strconv.Atoi(string(m[1]))
		l.status, l.exited = n, err == nil
	}
	return nil
}

// lastLine reports whether b holds no line behind its first.
func lastLine(b []byte) bool {
	i := bytes.IndexByte(b, '\n')
	return i < 0 || i == len(b)-1
}

// findBegin takes the first line off. A command of several lines is told by the length that the timing knows.
func (l *typelog) findBegin(total int64) error {
	b := make([]byte, min(ends, l.end))
	if _, err := io.ReadFull(io.NewSectionReader(l.f, 0, int64(len(b))), b); err != nil {
		return err
	}
	if !bytes.HasPrefix(b, []byte(started)) {
		return nil // taken off already
	}
	n := int64(bytes.IndexByte(b, '\n') + 1)
	if n == 0 {
		n = int64(len(b))
	}
	if by := l.end - total; total >= 0 && by > n && by <= int64(len(b)) && b[by-1] == '\n' {
		n = by
	}
	l.begin, l.head = n, strings.TrimSuffix(string(b[:n]), "\n")
	return nil
}

// facts are what the first line tells: TERM, COLUMNS, LINES, COMMAND, and the time as "".
func (l *typelog) facts() map[string]string {
	out := make(map[string]string)
	s, ok := strings.CutPrefix(l.head, started)
	if !ok {
		return out
	}
	when, rest, _ := strings.Cut(s, " [")
	out["START_TIME"] = when
	rest = strings.TrimSuffix(rest, "]")
	if s, ok := strings.CutPrefix(rest, `COMMAND="`); ok { // its quotes are not escaped, so its end is the last that can be
		end := strings.LastIndex(s, `" TERM="`)
		if end < 0 {
			end = strings.LastIndex(s, `" <`)
		}
		if end < 0 {
			end = len(strings.TrimSuffix(s, `"`))
		}
		out["COMMAND"], rest = s[:end], s[end:]
	}
	for _, m := range fact.FindAllStringSubmatch(rest, -1) {
		out[m[1]] = m[2]
	}
	return out
}

// take reads the next n bytes, in pieces: it returns at most 64 KiB, and nothing at the content's end.
func (l *typelog) take(n int64) ([]byte, error) {
	n = min(n, 64<<10, l.end-l.at)
	if n <= 0 {
		return nil, nil
	}
	if int64(cap(l.data)) < n {
		l.data = make([]byte, n)
	}
	l.data = l.data[:n]
	got, err := io.ReadFull(l.r, l.data)
	l.at += int64(got)
	if unexpectedEnd(err) { // it was made shorter while it was read
		err = nil
	}
	return l.data[:got], err
}

// ttyrecHead is the length of a ttyrec record's header: seconds, microseconds and the length of the data, each of 32 bits,
// little-endian.
const ttyrecHead = 12

// ttyrec reads ttyrec files.
type ttyrec struct {
	path   string
	f      io.ReadCloser
	r      *bufio.Reader
	offset int64 // of the record that is read
	head   Header
	time   timeline
	begun  bool
	first  time.Duration // the time of the first record, which is the session's beginning
	data   []byte
	event  Event
	torn   bool
}

func newTtyrec(path string, f io.ReadCloser) *ttyrec {
	t := &ttyrec{path: path, f: f, r: bufio.NewReaderSize(f, 64<<10), head: Header{Format: Ttyrec}}
	b, _ := t.r.Peek(t.r.Size()) // a shorter one is whole
	if len(b) >= ttyrecHead {
		t.head.Started = time.Unix(int64(binary.LittleEndian.Uint32(b)), 0).UTC()
		t.head.Rows, t.head.Cols = announced(b[ttyrecHead:])
	}
	return t
}

// announcement is the request for a size (XTWINOPS) with which some recorders begin a file.
var announcement = lazyregexp.New(`\x1b\[8;(\d{1,4});(\d{1,4})t`)

func announced(b []byte) (rows, cols int) {
	m := announcement.FindSubmatch(b[:min(len(b), 256)])
	if m == nil {
		return 0, 0
	}
	rows, _ = strconv.Atoi(string(m[1]))
	cols, _ = strconv.Atoi(string(m[2]))
	if checkSize(rows, cols) != nil {
		return 0, 0
	}
	return rows, cols
}

func (t *ttyrec) Header() *Header { return &t.head }
func (t *ttyrec) Close() error    { return t.f.Close() }
func (t *ttyrec) Files() []string { return []string{t.path} }

func (t *ttyrec) errorf(err error) error { return &Error{Path: t.path, Offset: t.offset, Err: err} }

func (t *ttyrec) Next() (*Event, error) {
	var head [ttyrecHead]byte
	n, err := io.ReadFull(t.r, head[:])
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		t.torn = true
		return nil, io.EOF
	}
	if err != nil {
		return nil, t.errorf(err)
	}
	at, length, err := parseTtyrec(head)
	if err != nil {
		return nil, t.errorf(err)
	}
	if t.event.At, err = t.since(at); err != nil {
		return nil, t.errorf(err)
	}
	if cap(t.data) < length {
		t.data = make([]byte, length)
	}
	t.data = t.data[:length]
	if _, err = io.ReadFull(t.r, t.data); unexpectedEnd(err) && length > 0 {
		t.torn = true
		return nil, io.EOF
	} else if err != nil && length > 0 {
		return nil, t.errorf(err)
	}
	t.offset += int64(n + length)
	t.event.Kind, t.event.Data = Output, t.data
	return &t.event, nil
}

// parseTtyrec checks a header.
func parseTtyrec(head [ttyrecHead]byte) (at time.Duration, length int, err error) {
	sec, usec := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	n := binary.LittleEndian.Uint32(head[8:])
	if usec >= 1e6 {
		return 0, 0, fmt.Errorf("a record with %d microseconds: want less than 1000000", usec)
	}
	if n > MaxData {
		return 0, 0, fmt.Errorf("a record of %d bytes: want at most %d", n, MaxData)
	}
	return time.Duration(sec)*time.Second + time.Duration(usec)*time.Microsecond, int(n), nil
}

// since is the time at, which is one of the wall clock, since the first record.
func (t *ttyrec) since(at time.Duration) (time.Duration, error) {
	if !t.begun {
		t.begun, t.first = true, at
	}
	return t.time.to(at - t.first)
}

func (t *ttyrec) Notes() []string {
	notes := t.time.notes()
	if t.torn {
		notes = append(notes, fmt.Sprintf("the record at offset %d is cut off: the recording ends before it", t.offset))
	}
	return notes
}
