package foreign

import (
	"bytes"
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

// A claudeLink is what a line says of its place.
type claudeLink struct {
	ID      claudeUUID `json:"uuid"`
	Parent  claudeUUID `json:"parentUuid"`
	Logical claudeUUID `json:"logicalParentUuid"`
	Side    bool       `json:"isSidechain"`
	Kind    string     `json:"type"`
	Subtype string     `json:"subtype"`
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
	node := claudeNode{parent: -1, line: int32(min(n, 1<<31-1))}
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
		node.parent = t.parent(l.Parent.id, n)
	} else if l.Logical.some || l.Subtype == "compact_boundary" {
		node.parent = t.parent(l.Logical.id, n)
	}
	if _, twice := t.index[l.ID.id]; !twice {
		t.index[l.ID.id] = int32(len(t.nodes))
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

// A claudeUUID is a uuid as 16 bytes; of a string in any other form it is a digest.
type claudeUUID struct {
	id   [16]byte
	some bool
}

// ReadJSON implements jsonscan.Value.
func (u *claudeUUID) ReadJSON(s *jsonscan.Scanner) {
	if s.Peek() != '"' {
		s.Skip()
		return
	}
	u.some = true
	b := s.TextBytes()
	if digits := bytes.ReplaceAll(b, []byte("-"), nil); len(b) == 36 && len(digits) == 32 {
		if _, err := hex.Decode(u.id[:], digits); err == nil {
			return
		}
	}
	sum := sha256.Sum256(b)
	copy(u.id[:], sum[:])
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
