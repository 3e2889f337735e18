package foreign

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

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
