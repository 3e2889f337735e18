package files

import (
	"fmt"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
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
	root, err := openEmpty(dir)
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
	if t.MTime != 0 {
		if err := root.Chtimes(".", time.Time{}, time.Unix(0, t.MTime)); err != nil {
			return leftOut, fmt.Errorf("files: restore: %w", err)
		}
	}
	return leftOut, nil
}
