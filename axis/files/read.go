package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

var (
	// errNotRegular says that something else than a regular file stands, or stood for a moment, at a path.
	errNotRegular = errors.New("not a regular file")
	// errTooLarge says that a file has more bytes than a snapshot takes.
	errTooLarge = errors.New("file is over the size limit")
)

// isGone reports whether err says that a path, or a directory on its way, does not exist.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// openRegular opens the regular file at path below root for reading. What it opened is what the path names without
// following a link in its last place, at that moment.
func openRegular(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
	listed, err := root.Lstat(localName(path))
	if err != nil {
		return nil, nil, err
	}
	if !listed.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("files: %s: %w", path, errNotRegular)
	}
	f, err := root.OpenFile(localName(path), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(listed, info) {
		err = fmt.Errorf("files: %s: %w", path, errNotRegular)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readRegular returns the content of a regular file of at most limit bytes, and its state from before the reading.
// settled says that the file did not change meanwhile.
func readRegular(root *os.Root, path string, limit int64) (b []byte, before fs.FileInfo, settled bool, err error) {
	f, before, err := openRegular(root, path)
	if err != nil {
		return nil, nil, false, err
	}
	defer f.Close()
	if before.Size() > limit {
		return nil, nil, false, errTooLarge
	}
	b, err = readUpTo(f, before.Size(), limit)
	if err != nil {
		return nil, nil, false, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, nil, false, err
	}
	settled = int64(len(b)) == before.Size() && after.Size() == before.Size() && after.ModTime().Equal(before.ModTime())
	return b, before, settled, nil
}

// readUpTo reads r to its end, which should come after size bytes and must come within limit.
func readUpTo(r io.Reader, size, limit int64) ([]byte, error) { return readInto(nil, r, size, limit) }

// readInto is readUpTo into an empty b where that has room. What it returns is never nil.
func readInto(b []byte, r io.Reader, size, limit int64) ([]byte, error) {
	if int64(cap(b)) <= size {
		b = make([]byte, 0, size+1)
	}
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return b, errTooLarge
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
	}
}

// ReadRegular returns the content of the regular file at path, which is relative with "/", below root. What stands there is looked
// at before it is opened, so that no FIFO and no device ever is, and no link in the last place is followed. Errors: those of the
// system, and of what is no regular file or has more than limit bytes.
func ReadRegular(root *os.Root, path string, limit int64) ([]byte, fs.FileInfo, error) {
	b, info, _, err := readRegular(root, path, limit)
	return b, info, err
}

// ListDir returns what stands in the directory at path, "." being the root's own, in no order. What is no directory is not opened.
func ListDir(root *os.Root, path string) ([]fs.DirEntry, error) {
	listed, err := root.Lstat(localName(path))
	if err != nil {
		return nil, err
	}
	if !listed.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: syscall.ENOTDIR}
	}
	f, err := root.OpenFile(localName(path), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// OpenRegular opens the regular file at path below root for reading, as ReadRegular does.
func OpenRegular(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
	return openRegular(root, path)
}
