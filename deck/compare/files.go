package compare

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A File is one that a run left otherwise than the first one. A state is the mode and the begin of the digest, "" where nothing stands.
type File struct {
	Path  string `json:"path"`
	First string `json:"first"`
	Other string `json:"other"`
}

// files finds what each run left otherwise than the first: among the files that either changed.
func (c *Comparison) files() error {
	first, err := endOf(c.Rows[0], nil)
	if err != nil {
		return err
	}
	c.Rows[0].found = first.found
	var others []int
	for i, r := range c.Rows[1:] {
		own, err := endOf(r, first)
		if err != nil {
			return err
		}
		if r.found = own.found; r.found != first.found {
			others = append(others, i+2)
		}
		paths := slices.Sorted(maps.Keys(r.account.Files))
		for path := range first.changed {
			if _, too := r.account.Files[path]; !too {
				paths = append(paths, path)
			}
		}
		slices.Sort(paths)
		for _, path := range paths {
			if was, is := first.state(path), own.state(path); was != is {
				r.Files = append(r.Files, File{path, was, is})
			}
		}
	}
	if len(others) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%s found another work tree than 1: files that neither run changed are not compared", numbers(others)))
	}
	return nil
}

// An end is what a run left in its work tree.
type end struct {
	changed map[string]account.File
	before  *files.Tree // nil where none was kept
	digest  cas.Digest  // of the file that holds it
	found   cas.Digest  // of before, without times
}

// endOf reads the work tree of a recording as it was found. That of forks is their parent's: where it is that of first it is read once.
func endOf(r *Row, first *end) (*end, error) {
	e := &end{changed: r.account.Files}
	b, err := os.ReadFile(filepath.Join(r.rec.Dir, recording.TreeName))
	if err != nil {
		return e, nil // there is none: what was not changed is not known
	}
	e.digest = cas.Sum(b)
	if first != nil && first.digest == e.digest {
		e.before, e.found = first.before, first.found
		return e, nil
	}
	if e.before, err = r.rec.Tree(); err != nil || e.before == nil {
		return e, err
	}
	entries := make([]files.Entry, len(e.before.Entries))
	for i, f := range e.before.Entries {
		f.MTime = 0
		entries[i] = f
	}
	e.found = cas.Sum(fmt.Append(nil, entries))
	return e, nil
}

// state is how a run left a file.
func (e *end) state(path string) string {
	if f, ok := e.changed[path]; ok {
		if f == (account.File{}) {
			return ""
		}
		return f.Mode + " " + f.Digest.Short()
	}
	if e.before == nil {
		return "as found"
	}
	was, ok := e.before.Lookup(path)
	switch {
	case !ok:
		return ""
	case was.Target != "":
		return was.Mode.Taped() + " " + cas.Sum([]byte(was.Target)).Short()
	}
	return was.Mode.Taped() + " " + was.Digest.Short()
}
