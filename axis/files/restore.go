package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Restore writes the tree into dir, which it makes where it is missing: directories, files and links with their
// permissions and, where the tree has them, times, owned by the caller. Secret files are left out, because their true bytes are not in
// the store; their paths are returned.
//
// Errors: dir is not empty (ErrNotEmpty), the tree is not valid (ErrTree), a blob is missing or damaged (cas's errors),
// or the file system's. After an error dir holds a part of the tree.
func Restore(t *Tree, store cas.Store, dir string) (leftOut []string, err error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	root, err := OpenEmpty(dir)
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	defer root.Close()
	var dirs []*Entry
	for i := range t.Entries {
		e := &t.Entries[i]
		switch {
		case e.Mode.IsDir():
			dirs = append(dirs, e)
			err = root.Mkdir(localName(e.Path), 0o700)
		case e.Secret != "":
			leftOut = append(leftOut, e.Path)
		default:
			if _, err = create(root, e.Path, e, e.Mode.FileMode(), store); err == nil {
				err = e.setTime(root)
			}
		}
		if err != nil {
			return leftOut, fmt.Errorf("files: restore %s: %w", e.Path, err)
		}
	}
	if err := finishDirs(root, dirs); err != nil {
		return leftOut, fmt.Errorf("files: restore: %w", err)
	}
	return leftOut, t.Retime(root, ".")
}

// Retime gives a directory that was restored its time again, once something was made in it that the tree does not hold.
func (t *Tree) Retime(root *os.Root, dir string) error {
	at := t.MTime
	if dir != "." {
		e := t.at(filepath.ToSlash(dir))
		if e == nil {
			return nil
		}
		at = e.MTime
	}
	if at == 0 {
		return nil
	}
	if err := root.Chtimes(dir, time.Time{}, time.Unix(0, at)); err != nil {
		return fmt.Errorf("files: restore: %w", err)
	}
	return nil
}

// ErrNotEmpty is wrapped by the refusal to fill a directory that holds something already.
var ErrNotEmpty = errors.New("directory is not empty")

// OpenEmpty makes the directory dir, or takes an empty one, and opens it.
func OpenEmpty(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f, err := root.Open(".")
	if err == nil {
		defer f.Close()
		_, err = f.Readdirnames(1)
	}
	switch {
	case err == nil:
		err = fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	case errors.Is(err, io.EOF):
		return root, nil
	}
	root.Close()
	return nil, err
}

// Fill makes the regular file path of what r gives. What stands there already is an error; a file that could not be written whole is
// removed.
func Fill(root *os.Root, path string, r io.Reader, perm fs.FileMode) (int64, error) {
	f, err := root.OpenFile(localName(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, r)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		root.Remove(localName(path)) // the first error is the one to report
	}
	return n, err
}

// create makes the file, link or FIFO that e says at path, where nothing stands. A content is verified while it is copied.
func create(root *os.Root, path string, e *Entry, perm fs.FileMode, store cas.Store) (int64, error) {
	switch {
	case e.Mode.IsLink():
		return 0, root.Symlink(filepath.FromSlash(e.Target), localName(path))
	case e.Mode.IsFIFO():
		return 0, makeFIFO(root, path, perm)
	}
	src, err := store.Open(e.Digest)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	n, err := Fill(root, path, src, perm)
	if err == nil && e.Attrs != "" {
		err = setAttrs(root, path, e.Attrs)
	}
	return n, err
}

// setTime gives what stands at e.Path the time at which it was last written, where that is known.
func (e *Entry) setTime(root *os.Root) error {
	if e.MTime == 0 {
		return nil
	}
	return SetTimes(root, e.Path, 0, e.MTime)
}

// replace makes the file or link that e says at e.Path, whole or not at all: under a temporary name, which is then given
// the final one. A file or link that stands there goes.
func replace(root *os.Root, e *Entry, perm fs.FileMode, store cas.Store) error {
	temp := join(parentOf(e.Path), durable.TempPrefix+rand.Text())
	if _, err := create(root, temp, e, perm, store); err != nil {
		return err
	}
	if err := root.Rename(localName(temp), localName(e.Path)); err != nil {
		root.Remove(localName(temp)) // the first error is the one to report
		return err
	}
	return nil
}

// finishDirs gives directories their attributes, times where they have some, and permissions, the deepest first: one that its
// owner may not search comes last.
func finishDirs(root *os.Root, dirs []*Entry) error {
	for i := len(dirs) - 1; i >= 0; i-- {
		e := dirs[i]
		if e.Attrs != "" {
			if err := setAttrs(root, e.Path, e.Attrs); err != nil {
				return err
			}
		}
		if err := errors.Join(e.setTime(root), root.Chmod(localName(e.Path), e.Mode.FileMode())); err != nil {
			return err
		}
	}
	return nil
}
