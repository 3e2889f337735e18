package cas

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// ErrNotRegular is wrapped by the refusal of a blob whose place holds a symlink, a FIFO, a directory or anything else
// that is no regular file.
var ErrNotRegular = errors.New("not a regular file")

// DirOptions says how a Dir writes. Nil and zero work.
type DirOptions struct {
	// Sync brings every blob and its name to the disk before Put returns. The default hands them to the kernel.
	Sync bool
}

// Dir is a Store in a directory: one file a blob, named by its digest. Several Dirs, in several processes, may use one
// directory at once: a blob has its name when it is whole, and not before. It is linked from a file that has none, where the system has such
// files and Sync is not asked for, else renamed from a temporary one.
//
// The directory is made by the first Put; until then it need not exist, and reads as empty. What lies in it under other
// names is left alone: temporary files of a writer that was killed, for one.
type Dir struct {
	path string
	opts DirOptions
	lent Lender // nil for none
}

// A Lender has blobs that are not in a directory yet. It may be used by several goroutines.
type Lender interface {
	// Bring has a blob put into the directory, with others that cost no more; a *MissingError is for none.
	Bring(d Digest, put func(r io.Reader) error) error
	// All has each blob put.
	All(put func(r io.Reader) error) error
}

var lenders sync.Map // Lender by path

// Lend has every Dir of this process that is opened at a path, from now on until the end is called, take from l what it does not hold when that is
// asked for. So a directory that fills as it is read can be given to whoever takes a path.
func Lend(path string, l Lender) (end func()) {
	lenders.Store(path, l)
	return func() { lenders.Delete(path) }
}

// put keeps what r gives.
func (s *Dir) put(r io.Reader) error {
	_, _, err := s.PutReader(r)
	return err
}

// OpenDir returns the store at path. It fails where something other than a directory stands there.
func OpenDir(path string, opts *DirOptions) (*Dir, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("cas: %s is not a directory", path)
	}
	dir := &Dir{path: path}
	if opts != nil {
		dir.opts = *opts
	}
	if l, ok := lenders.Load(path); ok {
		dir.lent = l.(Lender)
	}
	return dir, nil
}

// Path returns the path of the file that holds, or would hold, d.
func (s *Dir) Path(d Digest) string { return filepath.Join(s.path, d.String()) }

// Get implements Store. The blob is held in memory whole; Open streams it.
func (s *Dir) Get(d Digest) ([]byte, error) {
	f, size, err := s.open(d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 0, min(size, readAhead)+1) // what stat says is no reason yet to allocate it
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(b) == cap(b) {
			b = slices.Grow(b, len(b))
		}
	}
	if got := Sum(b); got != d {
		return nil, &CorruptError{Digest: d, Got: got}
	}
	return b, nil
}

// readAhead is the most, in bytes, that Get allocates before it has read anything.
const readAhead = 1 << 20

// Open implements Store.
func (s *Dir) Open(d Digest) (io.ReadCloser, error) {
	f, _, err := s.open(d)
	if err != nil {
		return nil, err
	}
	return &verifier{ReadCloser: f, want: d, hash: hashers.Get().(*Hasher)}, nil
}

// File opens the file of d, whose bytes nobody has checked, and returns how many there are: for who looks for something in many.
func (s *Dir) File(d Digest) (*os.File, int64, error) { return s.open(d) }

// open opens the regular file of d and returns its size in bytes.
func (s *Dir) open(d Digest) (*os.File, int64, error) {
	f, err := openNoFollow(s.Path(d))
	if s.lent != nil && errors.Is(err, fs.ErrNotExist) {
		if err := s.lent.Bring(d, s.put); err != nil {
			return nil, 0, err
		}
		f, err = openNoFollow(s.Path(d))
	}
	if err != nil {
		return nil, 0, s.explain(d, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = s.regular(d, info)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// explain turns the failure to open d into the store's own error where it has one. The place is looked at again because
// systems disagree on the error number of a refused symlink or socket.
func (s *Dir) explain(d Digest, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &MissingError{Digest: d}
	}
	if info, statErr := os.Lstat(s.Path(d)); statErr == nil {
		if regErr := s.regular(d, info); regErr != nil {
			return regErr
		}
	}
	return err
}

func (s *Dir) regular(d Digest, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("cas: %s is %s: %w", s.Path(d), info.Mode().Type(), ErrNotRegular)
}

// Size implements Store.
func (s *Dir) Size(d Digest) (int64, error) {
	info, err := os.Lstat(s.Path(d))
	if s.lent != nil && errors.Is(err, fs.ErrNotExist) {
		if err := s.lent.Bring(d, s.put); err != nil {
			return 0, err
		}
		info, err = os.Lstat(s.Path(d))
	}
	if err != nil {
		return 0, s.explain(d, err)
	}
	if err := s.regular(d, info); err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// All implements Store. A name that is a digest is listed whatever stands there; reading it tells.
func (s *Dir) All() iter.Seq2[Digest, error] {
	return func(yield func(Digest, error) bool) {
		if s.lent != nil {
			if err := s.lent.All(s.put); err != nil {
				yield(Digest{}, err)
				return
			}
		}
		all, err := s.names()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Digest{}, err)
			return
		}
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// listAtOnce is how many names are held as text while the directory is read: a digest is a quarter of its name's entry.
const listAtOnce = 4096

// names returns the names of the directory that are digests, sorted.
func (s *Dir) names() ([]Digest, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Digest
	for {
		names, err := f.Readdirnames(listAtOnce)
		for _, name := range names {
			if d, err := Parse(name); err == nil {
				all = append(all, d)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, Digest.compare)
	return slices.Compact(all), nil // a file that is renamed while the directory is read may be seen twice
}

// ensure makes the directory.
func (s *Dir) ensure() error {
	if err := os.MkdirAll(s.path, 0o700); err != nil {
		return err
	}
	if !s.opts.Sync {
		return nil
	}
	return durable.SyncDir(filepath.Dir(s.path))
}

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

// settle gives f, which holds the n bytes of d, its name, or drops it where the blob is there.
func (s *Dir) settle(f blobFile, d Digest, n int64) error {
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

// A blobFile is a blob that is being written.
type blobFile interface {
	io.Writer
	// Commit gives the file its name, in the place of what stands there, and closes it.
	Commit(path string) error
	// Discard closes and drops a file that was not committed.
	Discard()
}

// create opens a file for a blob in the directory, which it makes where it is missing.
func (s *Dir) create() (blobFile, error) {
	f, err := s.begin()
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := s.ensure(); err != nil {
		return nil, err
	}
	return s.begin()
}

func (s *Dir) begin() (blobFile, error) {
	if !s.opts.Sync { // of a rename each file system says what a loss of power leaves of it
		if f, err := createUnnamed(s.path); err == nil {
			return f, nil
		}
	}
	return durable.Create(s.path, &durable.Options{Sync: s.opts.Sync})
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
