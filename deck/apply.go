package deck

import (
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ErrNoTree is returned where a recording holds no work tree.
var ErrNoTree = errors.New("the recording holds no work tree")

// Restore makes the work tree as the run found it in dir, which must not exist or be empty. It returns the files that it
// left out because they hold secrets.
func (r *Recording) Restore(dir string) (leftOut []string, err error) {
	t, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("%s: %w", r.Dir, ErrNoTree)
	}
	store, err := r.Store()
	if err != nil {
		return nil, err
	}
	return files.Restore(t, store, dir)
}

// Apply does to the work tree what the run did to it or, reversed, undoes it, and returns the paths that it changed.
// Where a path does not stand as the run found it (reversed: left it), nothing is changed and the error is a
// *files.ConflictError that lists every one.
func (r *Recording) Apply(reverse bool) ([]string, error) {
	root := r.Manifest.Roots.Tree
	if root == "" {
		return nil, fmt.Errorf("%s: %w", r.Dir, ErrNoTree)
	}
	f, err := r.OpenTape()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var kinds []tape.Kind
	for rec, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		if isFile(rec.Kind) {
			kinds = append(kinds, rec.Kind)
		}
	}
	return files.Apply(root, kinds, f.Store, reverse)
}

func isFile(k tape.Kind) bool {
	switch k.(type) {
	case *tape.FileWrite, *tape.FileDelete:
		return true
	}
	return false
}
