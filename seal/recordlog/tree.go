package recordlog

import (
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

const (
	height = 8           // of a tile
	width  = 1 << height // hashes or entries of a full tile
)

// tilePath is the path of tile n of a level, w hashes wide, below the log's directory, with slashes. Level "entries" has the
// entries.
func tilePath(level string, n int64, w int) string {
	s := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		s = fmt.Sprintf("x%03d/%s", n%1000, s)
	}
	if w != width {
		s += fmt.Sprintf(".p/%d", w)
	}
	return "tile/" + level + "/" + s
}

func levelPath(level int, n int64, w int) string { return tilePath(fmt.Sprint(level), n, w) }

const entriesLevel = "entries"

// An edge is the right edge of a tree: the hashes of its last, partial tile on each level. All of a tree's future is made of
// its edge and of what is added.
type edge struct {
	size   int64
	levels [][]tlog.Hash
	full   func(level int, n int64, hashes []tlog.Hash) error // is told of each tile that became full
}

// add appends one leaf.
func (e *edge) add(h tlog.Hash) error {
	e.size++
	n := e.size // of hashes on this level
	for l := 0; ; l++ {
		if l == len(e.levels) {
			e.levels = append(e.levels, nil)
		}
		e.levels[l] = append(e.levels[l], h)
		if len(e.levels[l]) < width {
			return nil
		}
		if err := e.full(l, n/width-1, e.levels[l]); err != nil {
			return err
		}
		h = mth(e.levels[l])
		e.levels[l] = e.levels[l][:0]
		n /= width
	}
}

// root is the root hash of the whole tree.
func (e *edge) root() tlog.Hash {
	var right []tlog.Hash // what stands right of the level's hashes, as one; or nothing
	for _, l := range e.levels {
		if all := append(append([]tlog.Hash(nil), l...), right...); len(all) > 0 {
			right = []tlog.Hash{mth(all)}
		}
	}
	if len(right) == 0 {
		h, _ := tlog.TreeHash(0, nil) // of the empty tree: no hash is read, nothing can fail
		return h
	}
	return right[0]
}

// mth is the Merkle tree hash of a list of hashes (RFC 6962, 2.1): the last may stand for a smaller tree than the others.
func mth(list []tlog.Hash) tlog.Hash {
	if len(list) == 1 {
		return list[0]
	}
	k := 1
	for 2*k < len(list) {
		k *= 2
	}
	return tlog.NodeHash(mth(list[:k]), mth(list[k:]))
}

// widthAt is how wide the last, partial tile of a level is in a tree of size n, and its number.
func widthAt(n int64, level int) (tile int64, w int) {
	n >>= height * level
	return n / width, int(n % width)
}
