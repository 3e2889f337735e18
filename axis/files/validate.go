package files

import (
	"errors"
	"fmt"
	"strings"
)

var (
	errOrder  = errors.New("out of order, or given twice")
	errParent = errors.New("its directory is not an entry before it")
	errAbsent = errors.New("it is an entry, too")
)

// Validate checks what every tree of this package holds: clean relative paths in ascending order, each one's directory an
// entry before it (so that no path leads through a link), a digest for each regular file and a target for each link and
// for nothing else. The error wraps ErrTree, and ErrPath where a path is the fault.
func (t *Tree) Validate() error {
	dirs := map[string]bool{"": true}
	last := ""
	for i := range t.Entries {
		e := &t.Entries[i]
		err := e.validate()
		switch {
		case err != nil:
		case e.Path <= last:
			err = errOrder
		case !dirs[parentOf(e.Path)]:
			err = errParent
		}
		if err != nil {
			return fmt.Errorf("files: entry %.80q: %w: %w", e.Path, ErrTree, err)
		}
		last = e.Path
		if e.Mode.IsDir() {
			dirs[e.Path] = true
		}
	}
	return errors.Join(t.validateAbsent(dirs), t.validateMoved(), t.validateNotCovered())
}

// validateAbsent checks the paths at which nothing stood against the directories that are entries.
func (t *Tree) validateAbsent(dirs map[string]bool) error {
	last := ""
	for _, p := range t.Absent {
		err := checkPath(p)
		_, there := t.Lookup(p)
		switch {
		case err != nil:
		case p <= last:
			err = errOrder
		case there:
			err = errAbsent
		case !dirs[parentOf(p)]:
			err = errParent
		}
		if err != nil {
			return fmt.Errorf("files: absent %.80q: %w: %w", p, ErrTree, err)
		}
		last = p
	}
	return nil
}

// validateMoved checks the paths of directories that were renamed.
func (t *Tree) validateMoved() error {
	last := ""
	for _, p := range t.Moved {
		err := checkPath(p)
		if err == nil && p <= last {
			err = errOrder
		}
		if err != nil {
			return fmt.Errorf("files: moved %.80q: %w: %w", p, ErrTree, err)
		}
		last = p
	}
	return nil
}

func (t *Tree) validateNotCovered() error {
	last := ""
	for _, n := range t.NotCovered {
		err := checkPath(n.Path)
		if err == nil && n.Path <= last {
			err = errOrder
		}
		if err != nil {
			return fmt.Errorf("files: not covered %.80q: %w: %w", n.Path, ErrTree, err)
		}
		last = n.Path
	}
	return nil
}

// validate checks one entry by itself.
func (e *Entry) validate() error {
	if err := checkPath(e.Path); err != nil {
		return err
	}
	file, link := e.Mode.IsRegular(), e.Mode.IsLink()
	switch {
	case !file && !link && !e.Mode.IsDir() && !e.Mode.IsFIFO():
		return fmt.Errorf("mode %s is not that of a directory, file, link or FIFO", e.Mode)
	case file == e.Digest.IsZero() || e.Size < 0 || !file && e.Size != 0:
		return errors.New("a digest and a size belong to each regular file and to nothing else")
	case link != (e.Target != "") || len(e.Target) > maxPathLen || strings.IndexByte(e.Target, 0) >= 0:
		return errors.New("a target belongs to each link and to nothing else")
	case e.Secret != "" && !file:
		return errors.New("only a regular file can be secret")
	case e.Attrs != "" && !file && !e.Mode.IsDir():
		return errors.New("xattrs belong to files and directories")
	}
	_, err := parseAttrs(e.Attrs)
	return err
}
