// Package regular opens and replaces what people name as a file, and nothing but a regular one: a FIFO would keep its reader waiting for
// ever, a device may have no end, and neither may be replaced. An error says what stands there in its place.
//
// It does not guard against somebody who replaces the file between the look and the use.
package regular

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Open opens the regular file at path for reading.
func Open(path string) (*os.File, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// Check returns nil where path is a regular file, or leads to one. The error is that of Stat, or says what stands there.
func Check(path string) error {
	st, err := os.Stat(path)
	if err != nil || st.Mode().IsRegular() {
		return err
	}
	return fmt.Errorf("%s is %s: want a regular file", path, Kind(st.Mode()))
}

// Target returns the path at which a file stands or may be made that is called path: where a link leads to one, that one. The error is
// as of Check; that nothing stands there is none.
func Target(path string) (string, error) {
	err := Check(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// Kind names what a file is that is no regular one, as in "a FIFO".
func Kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "no file or directory"
}
