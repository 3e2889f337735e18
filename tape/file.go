package tape

import (
	"errors"
	"fmt"
	"os"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// StoreSuffix is what the directory of a tape's blobs has behind the tape's path.
const StoreSuffix = ".cas"

// A Tape is a tape on disk, opened for reading, with the blobs beside it.
type Tape struct {
	*Reader
	Store *cas.Dir
	f     *os.File
}

// Open opens the tape at path and reads its header. The blobs need not be there until one of them is read.
func Open(path string, o *ReaderOptions) (*Tape, error) {
	// A FIFO would keep its reader waiting for ever.
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReaderOptions(f, path, o)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	store, err := cas.OpenDir(path+StoreSuffix, nil)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Tape{Reader: r, Store: store, f: f}, nil
}

// Close closes the tape.
func (f *Tape) Close() error { return f.f.Close() }
