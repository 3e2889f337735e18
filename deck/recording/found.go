package recording

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// A Followed is a directory whose changes are recorded.
type Followed struct {
	Dir    string
	Prefix string // of its paths on the tape
	Name   string // of the file that keeps what the run found there
}

// FoundPrefix begins the names of the files that keep what a run found at the paths that it changed.
const FoundPrefix = "found-"

// Followed lists the directories whose changes are recorded, none twice. They need not exist. extra are those that the run
// could change beside the roots.
func (r *Roots) Followed(extra []string) []Followed {
	all := []Followed{
		{r.Tree, "", "tree"}, {r.Home, "~/", "home"}, {r.Temp, "$TMP/", "tmp"}, {Resolved("/tmp"), "/tmp/", "slash-tmp"},
	}
	for i, dir := range extra {
		all = append(all, Followed{dir, dir + "/", fmt.Sprintf("%d", i)})
	}
	var out []Followed
	seen := map[string]bool{"": true, "/": true}
	for _, dir := range r.Absent {
		seen[dir] = true
	}
	for _, f := range all {
		if !seen[f.Dir] {
			seen[f.Dir] = true
			f.Name = FoundPrefix + f.Name + ".json"
			out = append(out, f)
		}
	}
	return out
}

// Found reads what the run found at the paths that it changed and that tree.json does not have, by directory.
func (r *Recording) Found() (map[string]*files.Tree, error) {
	out := make(map[string]*files.Tree)
	for _, f := range r.Manifest.Roots.Followed(r.Manifest.Writable) {
		t, err := ReadTree(filepath.Join(r.Dir, f.Name))
		if err != nil {
			return nil, err
		}
		if t != nil {
			out[f.Dir] = t
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
