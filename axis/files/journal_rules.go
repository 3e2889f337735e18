package files

import "os"

// A rulesAbove tells what the rules of .gitignore files say of paths as they stand now, as a walk would.
type rulesAbove struct {
	root *os.Root
	dirs map[string]dirRules
}

// dirRules are the rules for what lies in a directory.
type dirRules struct {
	sets    []*ruleSet
	ignored bool // the directory is ignored, and so is all in it
}

// ignores reports whether a path is ignored.
func (r *rulesAbove) ignores(path string, isDir bool) bool {
	if inGit(path) {
		return false
	}
	d := r.dir(parentOf(path))
	return d.ignored || ignores(d.sets, path, isDir)
}

func (r *rulesAbove) dir(path string) dirRules {
	if d, ok := r.dirs[path]; ok {
		return d
	}
	d := r.read(path)
	if r.dirs == nil {
		r.dirs = make(map[string]dirRules)
	}
	r.dirs[path] = d
	return d
}

func (r *rulesAbove) read(path string) dirRules {
	var d dirRules
	w := &walker{root: r.root}
	if path == "" {
		if b, ok := w.rulesFile(".git/info/exclude"); ok {
			d.sets = append(d.sets, parseRules("", b))
		}
	} else {
		d = r.dir(parentOf(path))
		d.ignored = d.ignored || !inGit(path) && ignores(d.sets, path, true)
	}
	if d.ignored || inGit(path) {
		return d
	}
	if b, ok := w.rulesFile(join(path, ".gitignore")); ok {
		d.sets = append(d.sets[:len(d.sets):len(d.sets)], parseRules(path, b))
	}
	return d
}

// forget is called where a path was touched: rules may have changed.
func (r *rulesAbove) forget(path string) {
	if base := baseOf(path); base == ".gitignore" || base == "exclude" {
		r.dirs = nil
	}
}
