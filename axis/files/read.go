package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/cas"
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

// OpenRegular opens the regular file at path, which is relative with "/", below root for reading. What stands there is looked at
// before it is opened, so that no FIFO and no device ever is, and no link in the last place is followed.
func OpenRegular(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
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

// digestOf returns the digest of the regular file at path.
func digestOf(root *os.Root, path string) (cas.Digest, error) {
	f, _, err := OpenRegular(root, path)
	if err != nil {
		return cas.Digest{}, err
	}
	defer f.Close()
	h := cas.NewHasher()
	_, err = io.Copy(h, f)
	return h.Sum(), err
}

// ReadRegular returns the content of the regular file at path below root, which it opens as OpenRegular does. Errors: those of the
// system, and of what is no regular file or has more than limit bytes.
func ReadRegular(root *os.Root, path string, limit int64) ([]byte, error) {
	f, info, err := OpenRegular(root, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, errTooLarge
	}
	return readInto(nil, f, info.Size(), limit)
}

// readInto reads r to its end, which should come after size bytes and must come within limit, into an empty b where that has
// room. What it returns is never nil.
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

// Limits on names, in bytes: those of Linux.
const (
	maxPathLen = 4096
	maxNameLen = 255
)

// ErrPath is wrapped by every refusal of a path that came with data: absolute, empty, too long, with "." or "..", with
// a NUL, or not local on this system.
var ErrPath = errors.New("not a clean relative path")

// checkPath refuses a path that could name something outside a root, or one thing in two ways.
func checkPath(p string) error {
	if p == "" || len(p) > maxPathLen || strings.IndexByte(p, 0) >= 0 {
		return fmt.Errorf("files: path %.80q: %w", p, ErrPath)
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == "" || name == "." || name == ".." || len(name) > maxNameLen {
			return fmt.Errorf("files: path %.80q: %w", p, ErrPath)
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(p)) {
		return fmt.Errorf("files: path %.80q: %w", p, ErrPath)
	}
	return nil
}

// parentOf returns the directory that holds p, "" for the root.
func parentOf(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// baseOf returns the last component of p.
func baseOf(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// join appends a name to a directory, "" being the root.
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// under reports whether p is dir or lies below it; everything lies below "".
func under(p, dir string) bool {
	return dir == "" || p == dir || len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// inGit reports whether p is a .git directory or file, or lies in one.
func inGit(p string) bool {
	for name := range strings.SplitSeq(p, "/") {
		if name == ".git" {
			return true
		}
	}
	return false
}

// localName returns the name by which an os.Root knows path.
func localName(path string) string {
	if path == "" {
		return "."
	}
	return filepath.FromSlash(path)
}
