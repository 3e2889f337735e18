package seal

import (
	"crypto/sha256"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// The shape of tiles, C2SP tlog-tiles: 256 hashes wide.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
	tileBytes  = tileWidth * tlog.HashSize
)

// A tree takes leaves one by one and keeps of its hashes the right edge alone: of each level of tiles the last one, while it
// is partial. Its zero value is empty and works.
type tree struct {
	n     int64
	edge  [][]byte                           // by level
	store func(level int, tile []byte) error // is given each tile when it is full, and the partial ones at the end; may be nil
}

// recordHash is the hash of a leaf.
func recordHash(b []byte) tlog.Hash {
	if len(b) < 512 {
		var buf [513]byte
		return sha256.Sum256(append(buf[:1], b...))
	}
	return tlog.RecordHash(b)
}

// add appends a leaf.
func (t *tree) add(h tlog.Hash) error {
	t.n++
	for level := 0; ; level++ {
		if level == len(t.edge) {
			t.edge = append(t.edge, make([]byte, 0, tileBytes))
		}
		t.edge[level] = append(t.edge[level], h[:]...)
		tile := t.edge[level]
		if len(tile) < tileBytes {
			return nil
		}
		if t.store != nil {
			if err := t.store(level, tile); err != nil {
				return err
			}
		}
		h = tileRoot(tile)
		t.edge[level] = tile[:0]
	}
}

// tileRoot is the hash over a full tile, which is overwritten.
func tileRoot(tile []byte) tlog.Hash {
	var node [1 + 2*tlog.HashSize]byte
	node[0] = 1
	for n := len(tile); n > tlog.HashSize; n /= 2 {
		for i := 0; i < n; i += 2 * tlog.HashSize {
			copy(node[1:], tile[i:i+2*tlog.HashSize])
			h := sha256.Sum256(node[:])
			copy(tile[i/2:], h[:])
		}
	}
	return tlog.Hash(tile[:tlog.HashSize])
}

// root returns the root over all leaves so far.
func (t *tree) root() (tlog.Hash, error) { return tlog.TreeHash(t.n, tlog.HashReaderFunc(t.read)) }

// read gives the hashes of the right edge.
func (t *tree) read(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		tile := tlog.TileForIndex(tileHeight, x)
		if tile.L >= len(t.edge) || tile.N != t.n>>(tileHeight*(tile.L+1)) {
			return nil, fmt.Errorf("hash %d is not at the edge of a tree of %d leaves", x, t.n)
		}
		tile.W = len(t.edge[tile.L]) / tlog.HashSize
		h, err := tlog.HashFromTile(tile, t.edge[tile.L], x)
		if err != nil {
			return nil, err
		}
		out[i] = h
	}
	return out, nil
}

// finish stores the partial tiles and returns the root.
func (t *tree) finish() (tlog.Hash, error) {
	for level, tile := range t.edge {
		if len(tile) == 0 || t.store == nil {
			continue
		}
		if err := t.store(level, tile); err != nil {
			return tlog.Hash{}, err
		}
	}
	return t.root()
}

// rootTree is the tree over the streams.
func (d *Document) rootTree() (tlog.Tree, error) {
	var t tree
	for i := range d.Streams {
		if err := t.add(recordHash(d.Streams[i].leaf())); err != nil {
			return tlog.Tree{}, err
		}
	}
	root, err := t.root()
	return tlog.Tree{N: t.n, Hash: root}, err
}
