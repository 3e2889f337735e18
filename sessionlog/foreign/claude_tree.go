package foreign

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// claudeNode is a line of the tree.
type claudeNode struct {
	parent  int32  // the index of the node it hangs on; -1 for none
	line    int32  // from 1
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
	index map[[16]byte]int32
	seed  maphash.Seed
	holes int // lines that hang on one that is not there
	hole  int // the first of them
}

func newClaudeTree() *claudeTree {
	return &claudeTree{index: map[[16]byte]int32{}, seed: maphash.MakeSeed()}
}

// line notes a line that has a uuid.
func (t *claudeTree) line(s *jsonscan.Scanner, n int) error {
	var id, parent, logical [16]byte
	var has, parents, logicals, result bool
	node := claudeNode{parent: -1, line: int32(min(n, 1<<31-1))}
	kind, subtype := "", ""
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "uuid":
			id, has = claudeUUID(s)
		case "parentUuid":
			parent, parents = claudeUUID(s)
		case "logicalParentUuid":
			logical, logicals = claudeUUID(s)
		case "isSidechain":
			if s.Peek() == 't' {
				node.flags |= claudeSide
			}
			s.Skip()
		case "type":
			kind = text(s)
		case "subtype":
			subtype = text(s)
		case "message":
			node.message, result = t.message(s)
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return broken{err}
	}
	if !has {
		return nil
	}
	switch {
	case kind == "user" && result:
		node.flags |= claudeSpeaks | claudeResult
	case kind == "user" || kind == "assistant":
		node.flags |= claudeSpeaks
	}
	if kind != "assistant" {
		node.message = 0
	}
	if !parents && (logicals || subtype == "compact_boundary") {
		parent, parents = logical, true
	}
	if parents {
		node.parent = t.parent(parent, n)
	}
	if _, twice := t.index[id]; !twice {
		t.index[id] = int32(len(t.nodes))
	}
	t.nodes = append(t.nodes, node)
	return nil
}

// parent finds the node of a uuid. Where it is not there (a line was lost, or stands in another file) it is the one before.
func (t *claudeTree) parent(id [16]byte, n int) int32 {
	if i, ok := t.index[id]; ok {
		return i
	}
	if len(t.nodes) > 0 {
		if t.holes++; t.holes == 1 {
			t.hole = n
		}
	}
	return int32(len(t.nodes)) - 1
}

// message reads the id of a message, as a number, and whether it is what a tool gave.
func (t *claudeTree) message(s *jsonscan.Scanner) (id uint64, result bool) {
	if s.Peek() != '{' {
		s.Skip()
		return 0, false
	}
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "id":
			if s.Peek() == '"' {
				id = maphash.Bytes(t.seed, s.TextBytes())
				continue
			}
			s.Skip()
		case "content":
			result = hasResult(s.Raw())
		default:
			s.Skip()
		}
	}
	return id, result
}

// claudeUUID reads a uuid as 16 bytes; of a string in any other form it is a digest.
func claudeUUID(s *jsonscan.Scanner) (id [16]byte, ok bool) {
	if s.Peek() != '"' {
		s.Skip()
		return id, false
	}
	b := s.TextBytes()
	var digits [32]byte
	n := 0
	for _, c := range b {
		if c != '-' && n < len(digits) {
			digits[n] = c
			n++
		}
	}
	if len(b) == 36 && n == 32 {
		if _, err := hex.Decode(id[:], digits[:]); err == nil {
			return id, true
		}
	}
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16]), true
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
