package deck

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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

// unwatchable says of each path outside the work tree that what changed there cannot be compared.
func unwatchable(paths []string) []string {
	var out []string
	for _, p := range paths {
		if isRooted(p) || filepath.IsAbs(p) {
			out = append(out, fmt.Sprintf("--watch %s: what changes outside the work tree is seen in the jail alone, and one of the two "+
				"runs was not there (record or replay it again)", p))
		}
	}
	return out
}
