package fidelity

import (
	"path"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A place says whether a file gates, and which note names it where it does not.
type place uint8

const (
	workTree   place = iota // gates
	gitOwn                  // Git's bookkeeping inside the work tree
	gitIgnored              // by Git, inside the work tree
	outside                 // of the work tree
)

// placeOf returns the place of a path of the tape. One that is watched, or below a watched one, gates wherever it lies.
func placeOf(p string, watch []string) place {
	switch {
	case watched(p, watch):
		return workTree
	case p == "~", p == "$TMP", strings.HasPrefix(p, "~/"), strings.HasPrefix(p, "$TMP/"), strings.HasPrefix(p, "/"):
		return outside
	case bookkeeping(p):
		return gitOwn
	}
	return workTree
}

// bookkeeping reports whether a path is one that Git writes by itself below a .git. Its index holds the times of files and
// its commits those of their making, and so what names commits differs from run to run too: HEAD, refs, logs. What people
// and programs write there to change what Git does is none: hooks, config, info; of a submodule or worktree as well.
func bookkeeping(p string) bool {
	parts := strings.Split(p, "/")
	git := slices.Index(parts, ".git")
	if git < 0 || git == len(parts)-1 { // the last one is a file that names a directory elsewhere
		return false
	}
	for i, part := range parts[git+1:] {
		switch part {
		case "hooks", "config", "config.worktree":
			return false
		case "info":
			return slices.Equal(parts[git+2+i:], []string{"refs"}) // names commits
		case "index", "logs", "objects", "refs":
			return true
		}
	}
	return true
}

// watched reports whether the path is one of those watched, or below one.
func watched(p string, watch []string) bool {
	for _, w := range watch {
		w = strings.TrimSuffix(w, "/")
		if matched, err := path.Match(w, p); p == w || strings.HasPrefix(p, w+"/") || err == nil && matched {
			return true
		}
	}
	return false
}

// noteUnwatched notes what was to be watched and fits no file that either run changed: it may be misspelt.
func (c *ignoring) noteUnwatched() {
	for _, w := range c.o.Watch {
		only, fits := []string{w}, false
		for _, e := range c.records() {
			f := tape.FileOf(e.rec.Kind)
			fits = fits || f != nil && watched(f.Path, only)
		}
		if !fits {
			c.note("--watch %s fits no file that either run changed", w)
		}
	}
}

// noteFiles notes what differs between the files of both sides that do not gate.
func (c *ignoring) noteFiles(which string, sides *[2]outcome) {
	sides[Recorded].settle()
	sides[Replay].settle()
	if paths := sides[Recorded].differingPaths(&sides[Replay], c.o.Sides); len(paths) > 0 {
		c.note("%s differ (%d), which does not gate: %s", which, len(paths), list(paths, notedPaths))
	}
}

// placeOf returns the place of the file that a record is about. What is about none stands in the work tree, and so does what is
// no bookkeeping of Git's where both runs were given the same time and randomness.
func (o *LaneOptions) placeOf(k tape.Kind) place {
	f := tape.FileOf(k)
	if f == nil {
		return workTree
	}
	p := placeOf(f.Path, o.Watch)
	if o.Exact && o.OwnTimes.IsZero() && p == outside {
		return workTree
	}
	if !o.Exact && p == workTree && tape.FieldValue(f.Extra, "ignored") != nil && !watched(f.Path, o.Watch) {
		return gitIgnored
	}
	return p
}
