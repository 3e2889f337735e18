package durable

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// TempPrefix begins the name of every temporary file. A reader of a directory ignores such names.
const TempPrefix = ".tmp-"

// Options says how durable a write is. Nil and zero work.
type Options struct {
	// Sync makes the write survive a loss of power. The default survives the death of the process alone.
	Sync bool
	// Mode is the file's permission; 0 means 0600. It is set as given, whatever the umask.
	Mode fs.FileMode
}

// A File is a temporary file on its way to a final name. It ends with Commit or Discard. It is not safe for concurrent
// use.
type File struct {
	f    *os.File
	opts Options
}

// Create opens a temporary file in dir, which must exist and hold the final name too.
func Create(dir string, opts *Options) (*File, error) {
	f, err := os.CreateTemp(dir, TempPrefix+"*")
	if err != nil {
		return nil, err
	}
	file := &File{f: f}
	if opts != nil {
		file.opts = *opts
	}
	return file, nil
}

// Write appends b to the temporary file.
func (f *File) Write(b []byte) (int, error) { return f.f.Write(b) }

// Commit gives the file its final name, replacing what stood there. On an error the temporary file is removed and the
// final name is untouched, unless the error is that of the last fsync.
func (f *File) Commit(path string) error {
	if err := f.finish(); err != nil {
		f.Discard()
		return err
	}
	if err := os.Rename(f.f.Name(), path); err != nil {
		f.Discard()
		return err
	}
	if !f.opts.Sync {
		return nil
	}
	return SyncDir(filepath.Dir(path))
}

// finish brings the temporary file to its final state and closes it.
func (f *File) finish() error {
	if f.opts.Mode != 0 {
		if err := f.f.Chmod(f.opts.Mode); err != nil {
			return err
		}
	}
	if f.opts.Sync {
		if err := f.f.Sync(); err != nil {
			return err
		}
	}
	return f.f.Close()
}

// Discard closes and removes the temporary file. After a successful Commit it must not be called.
func (f *File) Discard() {
	f.f.Close()           // may be closed already
	os.Remove(f.f.Name()) // a leftover is harmless: readers ignore its name
}

// WriteFile replaces the file at path by one that holds b.
func WriteFile(path string, b []byte, opts *Options) error {
	f, err := Create(filepath.Dir(path), opts)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		f.Discard()
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return f.Commit(path)
}

// SyncFile brings the content of a file that is written already to the disk.
func SyncFile(path string) error {
	f, err := os.OpenFile(path, syncFlags, 0)
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
