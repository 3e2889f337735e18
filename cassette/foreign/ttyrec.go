package foreign

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

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

func newTtyrec(path string, f io.ReadCloser) (*ttyrec, error) {
	t := &ttyrec{path: path, f: f, r: bufio.NewReaderSize(f, 64<<10), head: Header{Format: Ttyrec}}
	b, _ := t.r.Peek(t.r.Size()) // a shorter one is whole
	if len(b) >= ttyrecHead {
		t.head.Started = time.Unix(int64(binary.LittleEndian.Uint32(b)), 0).UTC()
		t.head.Rows, t.head.Cols = announced(b[ttyrecHead:])
	}
	return t, nil
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
