package foreign

import (
	"context"
	"hash/maphash"
)

// A tree says which lines of a file stand on the branch of its last one, for formats whose lines name the one before them: an agent
// that goes back in a conversation leaves a branch behind. Lines are entries, by number from 0.
type tree struct {
	on     []uint64 // a bit an entry
	orphan bool     // an entry of the branch names a parent that is not there; the branch begins at it
}

// links is what a line says of its place.
type links struct {
	id     string
	parent string // "" for none
	rooted bool   // it says what its parent is; without, it is the entry before
	none   bool   // the line is no entry
	tip    bool   // the branch may end with it
}

func (t *tree) has(entry int) bool {
	return entry/64 < len(t.on) && t.on[entry/64]&(1<<(entry%64)) != 0
}

// The parents of entries that have none.
const (
	noParent   = -1
	lostParent = -2
)

// branchOf reads a file's tree: four bytes and a place in a map for each entry. What is wrong with a line is not said here where
// read does not come to it: the file is read once more for what it says.
func branchOf(ctx context.Context, path string, read func(line []byte) (links, error)) (*tree, error) {
	var parents []int32
	var tip int32 = noParent
	byID := make(map[uint64]int32)
	seed := maphash.MakeSeed()
	err := walk(ctx, path, newReport("", path), func(line []byte, _ int) error {
		l, err := read(line)
		if err != nil || l.none {
			return err
		}
		at := int32(len(parents))
		parent := at - 1
		if l.rooted && l.parent == "" {
			parent = noParent
		} else if l.rooted {
			var ok bool
			if parent, ok = byID[maphash.String(seed, l.parent)]; !ok {
				parent = lostParent
			}
		}
		if l.id != "" {
			byID[maphash.String(seed, l.id)] = at
		}
		if l.tip {
			tip = at
		}
		parents = append(parents, parent)
		return nil
	})
	t := &tree{on: make([]uint64, (len(parents)+63)/64)}
	for at := tip; at >= 0; at = parents[at] {
		t.on[at/64] |= 1 << (at % 64)
		t.orphan = parents[at] == lostParent
	}
	return t, err
}
