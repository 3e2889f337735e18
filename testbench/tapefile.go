package testbench

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A tapeFile is a tape on the disk and the store of its blobs, which may take max bytes together. What is written before create is held
// back.
type tapeFile struct {
	*cas.Dir
	path  string
	max   int64
	taken atomic.Int64

	file *os.File // nil until create; closed by close
	head []byte   // of the tape, until create
}

func newTapeFile(path string, limit int64) (*tapeFile, error) {
	blobs, err := cas.OpenDir(path+tape.StoreSuffix, nil)
	if err != nil {
		return nil, err
	}
	return &tapeFile{Dir: blobs, path: path, max: limit}, nil
}

// take asks for room for n bytes more.
func (f *tapeFile) take(n int64) error {
	if f.taken.Add(n) > f.max {
		return &TapeLimitError{Limit: f.max}
	}
	return nil
}

// Write implements io.Writer, for the tape.
func (f *tapeFile) Write(b []byte) (int, error) {
	if err := f.take(int64(len(b))); err != nil {
		return 0, err
	}
	if f.file == nil {
		f.head = append(f.head, b...)
		return len(b), nil
	}
	return f.file.Write(b)
}

// Put implements cas.Store.
func (f *tapeFile) Put(b []byte) (cas.Digest, error) {
	if err := f.take(int64(len(b))); err != nil {
		return cas.Digest{}, err
	}
	return f.Dir.Put(b)
}

// PutReader implements cas.Store. How long the blob is, its end tells.
func (f *tapeFile) PutReader(r io.Reader) (cas.Digest, int64, error) {
	d, n, err := f.Dir.PutReader(r)
	if err == nil {
		err = f.take(n)
	}
	return d, n, err
}

func (f *tapeFile) begun() bool { return f.file != nil }

// create makes the file of the tape, and takes away the blobs of the tape that stood there: what a killed run leaves is its own.
func (f *tapeFile) create() error {
	mode, err := f.clear()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(f.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	if err := removeBlobs(f.Dir, f.path+tape.StoreSuffix, nil); err != nil {
		return errors.Join(err, out.Close())
	}
	if _, err := out.Write(f.head); err != nil {
		return errors.Join(err, out.Close())
	}
	f.file, f.head = out, nil
	return nil
}

func (f *tapeFile) close() error { return f.file.Close() }

// clear makes place for the file, and says which mode it gets.
func (f *tapeFile) clear() (fs.FileMode, error) {
	st, err := os.Lstat(f.path)
	plain := err == nil && st.Mode().IsRegular()
	if err == nil && !plain { // a link, most likely
		st, err = os.Stat(f.path)
	}
	switch {
	case plain:
		_ = os.Remove(f.path) // some file systems bring a file that was cut to the disk when it is closed
		return st.Mode().Perm(), nil
	case err == nil && !st.Mode().IsRegular():
		return 0, regular.Check(f.path)
	case err != nil:
		return 0o644, os.MkdirAll(filepath.Dir(f.path), 0o755)
	}
	return 0o644, nil
}

// removeBlobs takes away the blobs of a tape that is overwritten, but for those to keep, and the directory where it is empty then.
func removeBlobs(store *cas.Dir, dir string, keep map[cas.Digest]bool) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for d, err := range store.All() {
		if keep[d] {
			continue
		}
		if err == nil {
			err = os.Remove(store.Path(d))
		}
		if err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !notEmpty(dir) {
		return err
	}
	return nil
}

// notEmpty reports whether something stands in dir, which is left alone then: it is nobody's blob.
func notEmpty(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, _ := d.Readdirnames(1)
	return len(names) > 0
}
