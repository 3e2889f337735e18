package overlay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// WriteBack brings what changed into Options.Dir: first it looks whether each path there stands as the program found it, and writes
// nothing where one does not; then each file is replaced whole, so that whatever ends the process leaves each the old or the new.
// Permissions stay but for the owner's x, and a directory that is gone stays where it holds what the tree does not show.
//
// Errors: there is no directory; a *files.ConflictError or one that wraps ErrStale, which name the paths that others changed; what
// the host refuses, with what came before written. What lies in a .git is never written: where the program changed any of it, all
// else is written and the error says what was not. It is the last that is done with
// a tree: Diff comes before it.
func (f *FS) WriteBack() error {
	if f.dir == "" {
		return errors.New("overlay: write back: the tree has no directory: give one as Options.Dir")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, store, err := f.changes()
	if err != nil {
		return err
	}
	if err := files.Apply(f.dir, all, store, false); err != nil {
		return fmt.Errorf("overlay: write back: %w", err)
	}
	return leftInGit(all)
}

// leftInGit names the changes that Apply passes over.
func leftInGit(all []files.Change) error {
	var left []string
	for i := range all {
		if all[i].InGit() {
			left = append(left, all[i].Path)
		}
	}
	if len(left) == 0 {
		return nil
	}
	const named = 5
	text := strings.Join(left[:min(len(left), named)], ", ")
	if n := len(left) - named; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("overlay: write back: %s: Git's own files are never written, all others are", text)
}
