package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// RedoOptions says from what Redo writes. Store is needed.
type RedoOptions struct {
	Store cas.Store // of the record
	By    uint32    // who would have made the change, as in Touch
	// Reveal makes of stored bytes what is written: the program's own values in the place of placeholders. Nil writes what is
	// stored.
	Reveal func(stored []byte) []byte
	// Kept leaves a file that stands there so already: whoever made it may have it open.
	Kept bool
}

// ErrNotRedone is wrapped where Redo leaves a change alone: its record is of a path outside every root, of content that is not
// kept, or something stands in the way.
var ErrNotRedone = errors.New("the recorded change cannot be made again")

// notRedone is err as that of f; nil where that is. What the store answers stays what it is.
func notRedone(f *tape.File, err error) error {
	var path *fs.PathError
	var link *os.LinkError
	if errors.As(err, &path) || errors.As(err, &link) || errors.Is(err, errNoContent) {
		return fmt.Errorf("%w: %s: %w", ErrNotRedone, f.Path, err)
	}
	if err != nil {
		return fmt.Errorf("files: %s: %w", f.Path, err)
	}
	return nil
}

var errNoContent = errors.New("its content is not kept")

// deleted removes what stands at rel; that nothing does is as well. A directory goes once what is in it has: its record stands
// before theirs.
func (r *journalRoot) deleted(rel string, isPlace bool) error {
	err := r.Root.Remove(localName(rel))
	switch {
	case isPlace && errors.Is(err, syscall.ENOTEMPTY):
		r.going = append(r.going, rel)
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for i := len(r.going) - 1; i >= 0; i-- {
		if under(rel, r.going[i]) && r.Root.Remove(localName(r.going[i])) == nil {
			r.going = slices.Delete(r.going, i, i+1)
		}
	}
	return nil
}

// written puts e, of which f tells, in its place, whole or not at all.
func (r *journalRoot) written(e *Entry, f *tape.File, o *RedoOptions) error {
	r.going = slices.DeleteFunc(r.going, func(dir string) bool { return under(e.Path, dir) })
	up := parentOf(e.Path)
	if e.Mode.IsDir() {
		up = e.Path
	}
	if err := r.Root.MkdirAll(localName(up), 0o755); err != nil {
		return err
	}
	if e.Mode.IsDir() {
		return finishDirs(r.Root, []*Entry{e})
	}
	store := o.Store
	if e.Mode.IsRegular() && (o.Reveal != nil || f.Content.Inline) {
		b, err := f.Content.Bytes(o.Store)
		if err != nil {
			return err
		}
		if o.Reveal != nil {
			b = o.Reveal(b)
		}
		given := cas.NewMemory()
		if e.Digest, err = given.Put(b); err != nil {
			return err
		}
		store = given
	}
	if o.Kept && r.stands(e) {
		return nil
	}
	return replace(r.Root, e, e.Mode.FileMode().Perm(), store)
}

// stands reports whether a file is as e says.
func (r *journalRoot) stands(e *Entry) bool {
	info, err := r.Root.Lstat(localName(e.Path))
	if err != nil || !info.Mode().IsRegular() || info.Mode() != e.Mode.FileMode() {
		return false
	}
	d, err := digestOf(r.Root, e.Path)
	return err == nil && d == e.Digest
}
