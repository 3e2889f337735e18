package cassette

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A stream is a file that is appended to through a buffer.
type stream struct {
	w   io.Writer
	f   *os.File // nil where w is none
	buf []byte
	max int
	at  int64 // bytes so far, those in the buffer too
}

func openStream(dir, name string, size int) (*stream, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &stream{w: f, f: f, max: size}, nil
}

func (s *stream) write(p []byte) error {
	s.at += int64(len(p))
	if len(s.buf)+len(p) > s.max {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if len(p) >= s.max {
		_, err := s.w.Write(p)
		return err
	}
	s.buf = append(s.buf, p...)
	return nil
}

func (s *stream) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.w.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// line writes v as a line of JSON.
func (s *stream) line(v any) error {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(append(b, '\n'))
}

// files are the streams of a cassette that is being written.
type files struct {
	dir                                 string
	raw, chunks, input, frames, service *stream
}

func createFiles(dir string) (*files, error) {
	f := &files{dir: dir}
	for _, s := range []struct {
		to   **stream
		name string
		size int
	}{{&f.raw, OutputFile, 256 << 10}, {&f.chunks, ChunksFile, 64 << 10}, {&f.input, InputFile, 16 << 10},
		{&f.frames, FramesFile, 64 << 10}, {&f.service, ServiceFile, 16 << 10}} {
		opened, err := openStream(dir, s.name, s.size)
		if err != nil {
			f.close()
			return nil, err
		}
		*s.to = opened
	}
	return f, nil
}

// all returns the streams, the output before its index.
func (f *files) all() []*stream { return []*stream{f.raw, f.chunks, f.input, f.frames, f.service} }

// flush gives everything to the kernel.
func (f *files) flush() error {
	for _, s := range f.all() {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (f *files) close() error {
	var errs []error
	for _, s := range f.all() {
		if s != nil {
			errs = append(errs, s.f.Close())
		}
	}
	return errors.Join(errs...)
}

// writeJSON puts v in place as a whole file.
func writeJSON(path string, v any, sync bool) error {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	return durable.WriteFile(path, out.Bytes(), &durable.Options{Sync: sync})
}

// compact returns one JSON value without white space.
func compact(v json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// readSmall reads a JSON file of at most MaxLine bytes.
func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxLine+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxLine {
		return nil, refuse(filepath.Base(path), 0, ErrTooLong, "more than %d bytes", MaxLine)
	}
	return b, nil
}
