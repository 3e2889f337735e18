package cas

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Put implements Store.
//
// A blob that is there already with the right length is trusted and not written again: reading it verifies. One of
// another length is what a damaged disk or a careless hand left, and is replaced. Anything in its place that is no
// regular file is refused with an error that wraps ErrNotRegular.
func (s *Dir) Put(b []byte) (Digest, error) {
	d := Sum(b)
	if there, err := s.has(d, int64(len(b))); there || err != nil {
		return d, err
	}
	f, err := s.create()
	if err != nil {
		return d, err
	}
	if _, err := f.Write(b); err != nil {
		f.Discard()
		return d, err
	}
	return d, f.Commit(s.Path(d))
}

// PutReader implements Store. What is there already is treated as Put treats it.
func (s *Dir) PutReader(r io.Reader) (Digest, int64, error) {
	f, err := s.create()
	if err != nil {
		return Digest{}, 0, err
	}
	d, n, err := copyHashed(f, r)
	if err != nil {
		f.Discard()
		return Digest{}, 0, err
	}
	return d, n, s.settle(f, d, n)
}

// settle gives the temporary file f, which holds the n bytes of d, its name, or drops it where the blob is there.
func (s *Dir) settle(f *durable.File, d Digest, n int64) error {
	there, err := s.has(d, n)
	if there || err != nil {
		f.Discard()
		return err
	}
	return f.Commit(s.Path(d))
}

// Link makes the file at from the blob d, by a hard link where the file system gives one, else by a copy that is
// verified while it is copied and refused with a *CorruptError. It returns the length of the blob in bytes.
//
// A hard link is not read, and shares its bytes with from: the caller vouches that they hash to d and that nobody will
// write to from again.
func (s *Dir) Link(d Digest, from string) (int64, error) {
	info, err := os.Lstat(from)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("cas: %s is %s: %w", from, info.Mode().Type(), ErrNotRegular)
	}
	if s.hardLink(d, from) {
		return info.Size(), s.sync(d)
	}
	if there, err := s.has(d, info.Size()); there || err != nil {
		return info.Size(), err
	}
	return info.Size(), s.copyFrom(d, from)
}

// hardLink gives the file at from the name of d as well, and reports whether it could. It does not look first at what
// stands there: a snapshot of a tree that did not change is one call of it a file.
func (s *Dir) hardLink(d Digest, from string) bool {
	err := os.Link(from, s.Path(d))
	if errors.Is(err, fs.ErrNotExist) && s.ensure() == nil {
		err = os.Link(from, s.Path(d))
	}
	return err == nil
}

// copyFrom is Link where no hard link can be had.
func (s *Dir) copyFrom(d Digest, from string) error {
	src, err := openNoFollow(from)
	if err != nil {
		return err
	}
	defer src.Close()
	f, err := s.create()
	if err != nil {
		return err
	}
	got, n, err := copyHashed(f, src)
	if err == nil && got != d {
		err = &CorruptError{Digest: d, Got: got}
	}
	if err != nil {
		f.Discard()
		return err
	}
	return s.settle(f, d, n)
}

// has reports whether a blob of n bytes stands in d's place. With Sync it is brought to the disk first: whoever wrote it
// may not have done so, or not yet.
func (s *Dir) has(d Digest, n int64) (bool, error) {
	info, err := os.Lstat(s.Path(d))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := s.regular(d, info); err != nil {
		return false, err
	}
	if info.Size() != n {
		return false, nil
	}
	return true, s.sync(d)
}

// sync brings the blob d and its name to the disk, with Sync.
func (s *Dir) sync(d Digest) error {
	if !s.opts.Sync {
		return nil
	}
	if err := durable.SyncFile(s.Path(d)); err != nil {
		return err
	}
	return durable.SyncDir(s.path)
}

// create opens a temporary file in the directory, which it makes where it is missing.
func (s *Dir) create() (*durable.File, error) {
	opts := &durable.Options{Sync: s.opts.Sync}
	f, err := durable.Create(s.path, opts)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := s.ensure(); err != nil {
		return nil, err
	}
	return durable.Create(s.path, opts)
}

// copyHashed copies r to w and returns the digest and the number of the bytes.
func copyHashed(w io.Writer, r io.Reader) (Digest, int64, error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	h := hashers.Get().(*Hasher)
	defer func() {
		h.Reset()
		hashers.Put(h)
	}()
	// The wrappers keep io.CopyBuffer from finding a way around the buffer, which would hide the bytes from the hasher.
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{io.TeeReader(r, h)}, *buf)
	return h.Sum(), n, err
}

// buffers holds the copying buffers: large enough that hashing, not system calls, sets the pace.
var buffers = sync.Pool{New: func() any { b := make([]byte, 128<<10); return &b }}
