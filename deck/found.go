package deck

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// A followed is a directory whose changes are recorded.
type followed struct {
	dir    string
	prefix string // of its paths on the tape
	name   string // of the file that keeps what the run found there
}

// foundPrefix begins the names of the files that keep what a run found at the paths that it changed.
const foundPrefix = "found-"

// followed lists the directories whose changes are recorded, none twice. They need not exist. extra are those that the run
// could change beside the roots.
func (r *Roots) followed(extra []string) []followed {
	all := []followed{
		{r.Tree, "", "tree"}, {r.Home, "~/", "home"}, {r.Temp, "$TMP/", "tmp"}, {resolved("/tmp"), "/tmp/", "slash-tmp"},
	}
	for i, dir := range extra {
		all = append(all, followed{dir, dir + "/", fmt.Sprintf("%d", i)})
	}
	var out []followed
	seen := map[string]bool{"": true, "/": true}
	for _, dir := range r.Absent {
		seen[dir] = true
	}
	for _, f := range all {
		if !seen[f.dir] {
			seen[f.dir] = true
			f.name = foundPrefix + f.name + ".json"
			out = append(out, f)
		}
	}
	return out
}

// Found reads what the run found at the paths that it changed and that tree.json does not have, by directory.
func (r *Recording) Found() (map[string]*files.Tree, error) {
	out := make(map[string]*files.Tree)
	for _, f := range r.Manifest.Roots.followed(r.Manifest.Writable) {
		t, err := readTree(filepath.Join(r.Dir, f.name))
		if err != nil {
			return nil, err
		}
		if t != nil {
			out[f.dir] = t
		}
	}
	return out, nil
}

// allTrees reads everything that the run found.
func (r *Recording) allTrees() ([]*files.Tree, error) {
	var out []*files.Tree
	t, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if t != nil {
		out = append(out, t)
	}
	found, err := r.Found()
	return slices.AppendSeq(out, maps.Values(found)), err
}
