package cassette

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A lineReader reads the lines of a stream, each of at most MaxLine bytes.
type lineReader struct {
	file string
	r    *bufio.Reader
	line int // the number of the last line
	buf  []byte
}

func newLineReader(file string, r io.Reader) *lineReader {
	return &lineReader{file: file, r: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next line that is not blank, without its newline; valid until the next call. io.EOF: there is none.
func (l *lineReader) next() ([]byte, error) {
	for {
		b, err := l.read()
		if err != nil {
			return nil, err
		}
		if b = bytes.TrimSpace(b); len(b) > 0 {
			return b, nil
		}
	}
}

// read returns the next line. The last one may have no newline.
func (l *lineReader) read() ([]byte, error) {
	l.line++
	b, err := l.r.ReadSlice('\n')
	if err == nil || errors.Is(err, io.EOF) && len(b) > 0 {
		return b, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	l.buf = append(l.buf[:0], b...)
	for {
		b, err = l.r.ReadSlice('\n')
		l.buf = append(l.buf, b...)
		if len(l.buf) > MaxLine {
			return nil, refuse(l.file, l.line, ErrTooLong, "a line has at most %d bytes", MaxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return l.buf, nil
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
	switch s {
	case StreamInput:
		e.Input = new(Input)
		if err := decode(s.File(), line, b, e.Input); err != nil {
			return nil, err
		}
		e.Timed, e.G = e.Input.Timed, e.Input.G
	case StreamOutput:
		e.Chunk = new(Chunk)
		if err := decode(s.File(), line, b, e.Chunk); err != nil {
			return nil, err
		}
		e.Timed, e.G = e.Chunk.Timed, e.Chunk.G
	case StreamFrames:
		e.Frame = new(Frame)
		if err := decode(s.File(), line, b, e.Frame); err != nil {
			return nil, err
		}
		e.Timed, e.G = e.Frame.Timed, e.Frame.G
	case StreamService:
		e.Service = new(ServiceEvent)
		if err := decode(s.File(), line, b, e.Service); err != nil {
			return nil, err
		}
		e.Timed, e.G = e.Service.Timed, e.Service.G
	default:
		return nil, fmt.Errorf("no stream %d", s)
	}
	return e, nil
}
