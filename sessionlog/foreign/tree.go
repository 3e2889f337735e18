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

// claudeNode is a line of the tree.
type claudeNode struct {
	parent  int32  // the index of the node it hangs on; -1 for none
	message uint64 // of the answer that it is a part of; 0 for none
	flags   claudeFlags
}

type claudeFlags uint8

const (
	claudeSide   claudeFlags = 1 << iota // of a sub-agent
	claudeSpeaks                         // a message, not something of the program's
	claudeResult                         // what a tool gave
	claudeKept                           // it belongs to the conversation
)

// claudeTree is what the first reading of a transcript finds.
type claudeTree struct {
	nodes []claudeNode
	index map[uint64]int32 // by uuid
	seed  maphash.Seed
	holes int // lines that hang on one that is not there
	hole  int // the first of them
}

// A claudeLink is what a line says of its place.
type claudeLink struct {
	ID      maybe  `json:"uuid"`
	Parent  maybe  `json:"parentUuid"`
	Logical maybe  `json:"logicalParentUuid"`
	Side    bool   `json:"isSidechain"`
	Kind    string `json:"type"`
	Subtype string `json:"subtype"`
	Message struct {
		ID      string `json:"id"`
		Content []byte `json:"content"`
	} `json:"message"`
}

// line notes a line that has a uuid.
func (t *claudeTree) line(b []byte, n int) error {
	var l claudeLink
	if err := decode(b, &l); err != nil || !l.ID.some {
		return err
	}
	node := claudeNode{parent: -1}
	if l.Side {
		node.flags |= claudeSide
	}
	switch {
	case l.Kind == "user" && hasResult(l.Message.Content):
		node.flags |= claudeSpeaks | claudeResult
	case l.Kind == "user":
		node.flags |= claudeSpeaks
	case l.Kind == "assistant":
		node.flags |= claudeSpeaks
		if l.Message.ID != "" {
			node.message = maphash.String(t.seed, l.Message.ID)
		}
	}
	if l.Parent.some {
		node.parent = t.parent(l.Parent.text, n)
	} else if l.Logical.some || l.Subtype == "compact_boundary" {
		node.parent = t.parent(l.Logical.text, n)
	}
	id := maphash.String(t.seed, l.ID.text)
	if _, twice := t.index[id]; !twice {
		t.index[id] = int32(len(t.nodes))
	}
	t.nodes = append(t.nodes, node)
	return nil
}

// parent finds the node of a uuid. Where it is not there (a line was lost, or stands in another file) it is the one before.
func (t *claudeTree) parent(uuid string, n int) int32 {
	if i, ok := t.index[maphash.String(t.seed, uuid)]; ok {
		return i
	}
	if len(t.nodes) > 0 {
		if t.holes++; t.holes == 1 {
			t.hole = n
		}
	}
	return int32(len(t.nodes)) - 1
}

// choose marks the branch of the last line that says something, with what belongs to it.
func (t *claudeTree) choose(r *Report) {
	t.index = nil
	leaf := t.leaf(true)
	if leaf < 0 {
		if leaf = t.leaf(false); leaf >= 0 {
			r.note("this is the transcript of a sub-agent")
			for i := range t.nodes {
				t.nodes[i].flags &^= claudeSide
			}
		}
	}
	answers := map[uint64]bool{}
	for i := leaf; i >= 0; i = int(t.nodes[i].parent) {
		t.nodes[i].flags |= claudeKept
		if m := t.nodes[i].message; m != 0 {
			answers[m] = true
		}
	}
	for i := range t.nodes {
		n := &t.nodes[i]
		if n.flags&claudeSide != 0 || n.parent < 0 || t.nodes[n.parent].flags&claudeKept == 0 {
			continue
		}
		if n.message != 0 && answers[n.message] || n.flags&claudeResult != 0 && t.nodes[n.parent].message != 0 {
			n.flags |= claudeKept
		}
	}
	if t.holes > 0 {
		r.note("lines whose parent is not in the file follow the line before them: %d, the first is line %d", t.holes, t.hole)
	}
}

// leaf is the last node that says something; of the conversation alone where main is true. -1 for none.
func (t *claudeTree) leaf(main bool) int {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		if f := t.nodes[i].flags; f&claudeSpeaks != 0 && (!main || f&claudeSide == 0) {
			return i
		}
	}
	return -1
}
