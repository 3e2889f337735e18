package sessionlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// catchUp reads what stands in the log since it was looked at last, and puts a torn end aside. Other writers wrote it, or a
// crash left it.
func (w *Writer) catchUp() error {
	st, err := w.f.Stat()
	if err != nil {
		return err
	}
	size := st.Size()
	switch {
	case size == w.end:
		return nil
	case size < w.end:
		return fmt.Errorf("%s: %w: it had %d bytes and has %d", w.path, ErrShrunk, w.end, size)
	}
	torn, err := w.look(size)
	if err != nil {
		return err
	}
	if torn != nil {
		if size, err = w.putAside(torn, size); err != nil {
			return err
		}
	}
	w.end = size
	return w.lastByte()
}

// look reads the log from where it was looked at last.
func (w *Writer) look(size int64) (*Torn, error) {
	r := NewReader(io.NewSectionReader(w.f, w.end, size-w.end), w.path, &ReaderOptions{Tolerant: true})
	r.order = w.order
	for _, err := range r.Entries() {
		if err != nil {
			return nil, w.moved(err)
		}
	}
	if _, list := r.in.(*listSource); list {
		return nil, &LoadError{Path: w.path, Line: w.lines + 1, Offset: w.end, Err: fmt.Errorf("%w: %w", ErrMalformed, ErrList)}
	}
	if t := r.Torn(); t != nil {
		t.Line, t.Offset = t.Line+w.lines, t.Offset+w.end
		w.lines = t.Line - 1
		w.order = r.order
		return t, nil
	}
	w.order = r.order
	w.lines += r.in.(*lineSource).lines.Line()
	return nil, nil
}

// moved says of an error in the part of the log that was read where in the log it is.
func (w *Writer) moved(err error) error {
	var load *LoadError
	if errors.As(err, &load) {
		load.Line, load.Offset = load.Line+w.lines, load.Offset+w.end
	}
	return err
}

// putAside moves a torn end into a file of its own and returns how long the log is then. The sequence of system calls: the
// side file is written whole (package durable), then the log is cut. Killed in between, the same is found and done again.
func (w *Writer) putAside(t *Torn, size int64) (int64, error) {
	b := make([]byte, size-t.Offset)
	if _, err := w.f.ReadAt(b, t.Offset); err != nil {
		return 0, err
	}
	side, err := w.sideFile(t.Offset, b)
	if err != nil {
		return 0, fmt.Errorf("put the torn end of %s aside: %w", w.path, err)
	}
	if err := w.f.Truncate(t.Offset); err != nil {
		return 0, fmt.Errorf("cut the torn end of %s off: %w", w.path, err)
	}
	w.repairs = append(w.repairs, Repair{Line: t.Line, Offset: t.Offset, Length: int64(len(b)), Side: side})
	if w.opts.Sync {
		return t.Offset, w.f.Sync()
	}
	return t.Offset, nil
}

// sideFile writes b to a file that holds nothing else, and returns its path.
func (w *Writer) sideFile(offset int64, b []byte) (string, error) {
	for n := 1; ; n++ {
		path := fmt.Sprintf("%s.torn-%d", w.path, offset)
		if n > 1 {
			path = fmt.Sprintf("%s-%d", path, n)
		}
		there, err := os.ReadFile(path)
		switch {
		case err == nil && bytes.Equal(there, b):
			return path, nil
		case err == nil:
			continue
		case !errors.Is(err, os.ErrNotExist):
			return "", err
		}
		return path, durable.WriteFile(path, b, &durable.Options{Sync: w.opts.Sync})
	}
}

// lastByte finds out whether the log ends with a newline: a producer of another kind may leave the last one out.
func (w *Writer) lastByte() error {
	w.open = false
	if w.end == 0 {
		return nil
	}
	var last [1]byte
	if _, err := w.f.ReadAt(last[:], w.end-1); err != nil {
		return err
	}
	if w.open = last[0] != '\n'; w.open {
		w.lines-- // it counts newlines
	}
	return nil
}
