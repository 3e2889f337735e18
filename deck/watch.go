package deck

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// watched spells paths as a tape does: ~/… and $TMP/… stay, others are absolute or seen from the directory cwd. Each may be a
// pattern of path.Match.
func (r *Roots) watched(cwd string, list []string) []string {
	var out []string
	for _, p := range list {
		if !isRooted(p) {
			if !filepath.IsAbs(p) {
				p = filepath.Join(cwd, p)
			}
			p = r.tapePath(filepath.Clean(p))
		}
		out = append(out, p)
	}
	return out
}

// isRooted reports whether a path begins with the name of a root, as on a tape.
func isRooted(p string) bool {
	for _, root := range []string{"~", "$TMP"} {
		if p == root || strings.HasPrefix(p, root+"/") {
			return true
		}
	}
	return false
}

// seesOutside reports whether a recording knows what changed outside its work tree.
func (m *Manifest) seesOutside() bool { return !slices.Contains(m.Axes["files"].NotCovered, gapFiles) }

// unwatchable says of each path that the snapshot tree, which may be nil, does not cover that what changed there cannot be
// compared.
func unwatchable(paths []string, tree *files.Tree) []string {
	var out []string
	for _, p := range paths {
		if inTree := !isRooted(p) && !filepath.IsAbs(p) && tree != nil; inTree && tree.Covers(p) && !strings.ContainsAny(p, "*?[") {
			continue
		}
		out = append(out, fmt.Sprintf("--watch %s: what changes outside the work tree, or is ignored there, is seen in the jail alone, and "+
			"one of the two runs was not there (record or replay it again)", p))
	}
	return out
}
