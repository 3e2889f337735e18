package files

import "strings"

// read returns what the journal read of the file at path below the root dir, where that is sure to be what stands there: it has
// the stamp that it had then, and whoever changed it since would have changed that. A nil journal read nothing.
func (j *Journal) read(dir, path string, s stamp) (c cached, ok bool) {
	if j == nil {
		return c, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.roots {
		if r.Dir != dir {
			continue
		}
		n := r.node.lookup(path)
		if n == nil || !n.is(isSure) || n.stamp == nil || *n.stamp != s || n.last == nil || !n.last.mode.IsRegular() {
			return c, false
		}
		return cached{stamp: s, digest: n.last.digest, size: n.last.size, secret: n.last.text}, true
	}
	return c, false
}

// lookup returns the node at path below n, nil where there is none.
func (n *node) lookup(path string) *node {
	for path != "" && n != nil {
		name, rest, _ := strings.Cut(path, "/")
		n, path = n.below[name], rest
	}
	return n
}
