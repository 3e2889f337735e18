package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
