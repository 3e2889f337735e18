package derive

import (
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// ErrNoTree is returned where a recording holds no work tree.
var ErrNoTree = errors.New("the recording holds no work tree")

// ErrUnfinished is returned where what the program changed last is not on the tape.
var ErrUnfinished = errors.New("the recording is unfinished: what the program changed last is not on the tape")

// Restore makes the work tree as the run of r found it in dir, which must not exist or be empty. It returns the files that it
// left out because they hold secrets.
func Restore(r *recording.Recording, dir string) (leftOut []string, err error) {
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

// RestoreEnd makes the work tree as the run of r left it in dir, as Restore does.
func RestoreEnd(r *recording.Recording, dir string) (leftOut []string, err error) {
	_, after, store, err := states(r)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return files.Restore(after, store, dir)
}

// states are the work tree as the run of r found it and as it left it, and the store of both, to be closed.
func states(r *recording.Recording) (before, after *files.Tree, store *files.Staging, err error) {
	if !r.Finished() {
		return nil, nil, nil, fmt.Errorf("%s: %w", r.Dir, ErrUnfinished)
	}
	if before, err = r.Tree(); err != nil {
		return nil, nil, nil, err
	}
	if before == nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", r.Dir, ErrNoTree)
	}
	after, store, err = endOf(r, before)
	return before, after, store, err
}

// WritePatch writes workspace.diff: what the run of r made of the work tree that it found, as before, the tape and the blobs have it.
func WritePatch(w io.Writer, r *recording.Recording, before *files.Tree) error {
	after, store, err := endOf(r, before)
	if err != nil {
		return err
	}
	defer store.Close()
	return files.WritePatch(w, files.Changes(before, after), store)
}

// endOf is the work tree as the run of r left it that found before, and the store of both, to be closed.
func endOf(r *recording.Recording, before *files.Tree) (after *files.Tree, store *files.Staging, err error) {
	f, err := r.OpenTape()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if store, err = files.NewStaging(f.Store, ""); err != nil {
		return nil, nil, err
	}
	if after, err = files.After(before, f.Records(), store); err != nil {
		store.Close()
		return nil, nil, err
	}
	return after, store, nil
}

// Apply does to the work tree what the run did to it or, reversed, undoes it, and returns the paths that it changed, and how
// many of Git's own files, below .git, it left as they are.
// Where a path does not stand as the run found it (reversed: left it), nothing is changed and the error is a
// *files.ConflictError that lists every one.
func Apply(r *recording.Recording, reverse bool) (paths []string, inGit int, err error) {
	before, after, store, err := states(r)
	if err != nil {
		return nil, 0, err
	}
	defer store.Close()
	changes := files.Changes(before, after)
	for i := range changes {
		if changes[i].InGit() {
			inGit++
		} else {
			paths = append(paths, changes[i].Path)
		}
	}
	return paths, inGit, files.Apply(r.Manifest.Roots.Tree, changes, store, reverse)
}
