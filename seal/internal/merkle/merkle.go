// Package merkle computes trees of RFC 6962, and of one that grows keeps the right edge alone, in tiles of 256 hashes (C2SP
// tlog-tiles). The text that is signed of a tree is here too (C2SP tlog-checkpoint).
package merkle

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// The shape of tiles.
const (
	Height    = 8           // of a tile
	Width     = 1 << Height // hashes of a full tile
	TileBytes = Width * tlog.HashSize
)

// A Tree takes leaves one by one. All of its future is made of its edge and of what is added. The zero Tree is empty and works.
type Tree struct {
	N      int64
	Levels [][]tlog.Hash // the edge: of each level of tiles the last one, while it is partial
	// Full is told of each tile that became full; nil is not.
	Full func(level int, n int64, tile []tlog.Hash) error
}

// Add appends a leaf. The error is that of Full.
func (t *Tree) Add(h tlog.Hash) error {
	t.N++
	n := t.N // of hashes on this level
	for l := 0; ; l++ {
		if l == len(t.Levels) {
			t.Levels = append(t.Levels, make([]tlog.Hash, 0, Width))
		}
		t.Levels[l] = append(t.Levels[l], h)
		tile := t.Levels[l]
		if len(tile) < Width {
			return nil
		}
		if t.Full != nil {
			if err := t.Full(l, n/Width-1, tile); err != nil {
				return err
			}
		}
		h, t.Levels[l] = Root(tile), tile[:0]
		n /= Width
	}
}

// Root is the root over all leaves so far.
func (t *Tree) Root() tlog.Hash {
	var right []tlog.Hash // what stands right of the level's hashes, as one; or nothing
	for _, l := range t.Levels {
		if all := append(append([]tlog.Hash(nil), l...), right...); len(all) > 0 {
			right = []tlog.Hash{Root(all)}
		}
	}
	return Root(right)
}

// Root is the hash over a list of hashes (RFC 6962, 2.1): the last may stand for a smaller tree than the others.
func Root(list []tlog.Hash) tlog.Hash {
	switch len(list) {
	case 0:
		h, _ := tlog.TreeHash(0, nil) // of the empty tree: no hash is read, nothing can fail
		return h
	case 1:
		return list[0]
	}
	k := split(len(list))
	return tlog.NodeHash(Root(list[:k]), Root(list[k:]))
}

// Path leads from the leaf at a place to the root over a list of leaves (RFC 6962, 2.1.1).
func Path(list []tlog.Hash, at int) tlog.RecordProof {
	if len(list) == 1 {
		return tlog.RecordProof{}
	}
	k := split(len(list))
	if at < k {
		return append(Path(list[:k], at), Root(list[k:]))
	}
	return append(Path(list[k:], at-k), Root(list[:k]))
}

// split is how many of n leaves, of which there are two or more, stand on the left.
func split(n int) (k int) {
	for k = 1; 2*k < n; k *= 2 {
	}
	return k
}

// Partial is the number of the last, partial tile of a level in a tree of n leaves, and how wide it is.
func Partial(n int64, level int) (tile int64, w int) {
	n >>= Height * level
	return n / Width, int(n % Width)
}

// Join are the bytes of a tile.
func Join(list []tlog.Hash) []byte {
	out := make([]byte, 0, len(list)*tlog.HashSize)
	for _, h := range list {
		out = append(out, h[:]...)
	}
	return out
}

// Head is the text of a checkpoint of a tree (C2SP tlog-checkpoint), without extension lines.
func Head(origin string, t tlog.Tree) string { return fmt.Sprintf("%s\n%d\n%s\n", origin, t.N, t.Hash) }

// ParseHead reads what Head wrote, and nothing else.
func ParseHead(text string) (origin string, t tlog.Tree, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[0] == "" {
		return "", t, errors.New("want three lines: origin, size, root")
	}
	t.N, err = strconv.ParseInt(lines[1], 10, 64)
	if err != nil || t.N < 0 {
		return "", t, fmt.Errorf("size %.40q is no count", lines[1])
	}
	t.Hash, err = tlog.ParseHash(lines[2])
	if err != nil || Head(lines[0], t) != text {
		return "", t, fmt.Errorf("size %.40q and root %.80q are no count and hash in base64 as they are written", lines[1], lines[2])
	}
	return lines[0], t, nil
}
