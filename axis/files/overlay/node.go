package overlay

import (
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// nodeCost is what a node counts beside its content, in bytes.
const nodeCost = 512

// A node is what the run made of a path: a file, a directory, a link, or that nothing stands there any more. All fields are guarded
// by FS.mu.
type node struct {
	mode   files.Mode // 0: gone
	data   []byte     // of a file; written in place by Files, so that who reads it copies it
	target string     // of a link
	kids   map[string]*node
	opaque bool // of a directory: what the lower layer has there is not seen

	dir     *node // where it stands; nil of the top, and of what was removed
	name    string
	mtime   time.Time
	opens   int   // Files that hold it
	pending *File // the one whose changes are not recorded yet
}

// size is what n counts.
func (n *node) size() int64 { return nodeCost + int64(len(n.data)) }

// path is where n stands, "" where it was removed.
func (n *node) path(top *node) string {
	if n == top {
		return "."
	}
	if n.dir == nil {
		return ""
	}
	up := n.dir.path(top)
	if up == "" {
		return ""
	}
	return join(up, n.name)
}

// put makes kid what stands at name in n, and returns what stood there.
func (n *node) put(name string, kid *node) (was *node) {
	if n.kids == nil {
		n.kids = make(map[string]*node)
	}
	if was = n.kids[name]; was != nil {
		was.dir = nil
	}
	n.kids[name] = kid
	kid.dir, kid.name = n, name
	return was
}

// seen is what n is to a program.
func (n *node) seen() look { return look{mode: n.mode, size: int64(len(n.data)), target: n.target} }
