package sessionlog

import (
	"fmt"
	"io"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// A Log is a whole log in memory.
type Log struct {
	Entries []*Entry
	Order   Order
	Torn    *Torn  // the torn end that was dropped, nil for none
	tail    []byte // what stands behind the last entry
}

// Load reads a log to its end; for one that may be long see NewReader. The error is that of the reader.
func Load(r io.Reader, name string, o *ReaderOptions) (*Log, error) {
	return load(NewReader(r, name, o))
}

// LoadFile reads the log at path.
func LoadFile(path string, o *ReaderOptions) (*Log, error) {
	f, err := Open(path, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return load(f.Reader)
}

func load(r *Reader) (*Log, error) {
	l := &Log{}
	for e, err := range r.Entries() {
		if err != nil {
			return nil, err
		}
		l.Entries = append(l.Entries, e.Clone())
	}
	l.Order, l.Torn, l.tail = r.Order(), r.Torn(), r.Tail()
	return l, nil
}

// WriteTo writes the log as it stood, byte for byte, but for a torn end that was dropped.
func (l *Log) WriteTo(w io.Writer) (int64, error) {
	var total int64
	var buf []byte
	for _, e := range l.Entries {
		buf = e.AppendTo(buf[:0])
		n, err := w.Write(buf)
		if total += int64(n); err != nil {
			return total, fmt.Errorf("save the log: %w", err)
		}
	}
	n, err := w.Write(l.tail)
	return total + int64(n), err
}

// Copy writes the log that r reads as it stands, in bounded memory, but for a torn end that is dropped.
func Copy(w io.Writer, r *Reader) error {
	var buf []byte
	for e, err := range r.Entries() {
		if err != nil {
			return err
		}
		buf = e.AppendTo(buf[:0])
		if _, err := w.Write(buf); err != nil {
			return fmt.Errorf("copy the log: %w", err)
		}
	}
	_, err := w.Write(r.Tail())
	return err
}

// A File is a log on disk, opened for reading.
type File struct {
	*Reader
	f *os.File
}

// Open opens the log at path.
func Open(path string, o *ReaderOptions) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	return &File{Reader: NewReader(f, path, o), f: f}, nil
}

// Close closes the log.
func (f *File) Close() error { return f.f.Close() }
