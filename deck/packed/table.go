package packed

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// frameLimits say from which length on a frame ends at the next place where it may, in bytes, compressed: one that a reader of one record needs is
// to be short. Of blobs frames are longer, as the requests of a conversation repeat each other: a frame that is packed to a twelfth goes on.
type frameLimits struct{ first, tape, blobs, redundant int64 }

var usualFrames = frameLimits{first: 128 << 10, tape: 384 << 10, blobs: 1 << 20, redundant: 16 << 20}

// The other lengths, in bytes.
const (
	redundantBy = 12
	frameRaw    = 256 << 20 // of what a frame holds, from which on it ends too
	chunk       = 128 << 10 // within a long entry a frame may end after each of these
	minFrame    = 8 << 10   // of the frames of a file on the average, compressed, but for fewFrames: a bound on how many a Reader counts
	fewFrames   = 16
	maxTable    = 4 << 20  // of one part of the table
	minNode     = 100      // of a node in JSON; its digest has 64
	maxFrame    = 32 << 20 // of frames that a View fetches at once, compressed
)

// pageLen is how many nodes a part of the table has, but for its root.
const pageLen = 256

// A node says where a frame, or a part of the table, lies and what it begins with.
type node struct {
	At     int64      `json:"at"`     // in the file, in bytes
	Size   int64      `json:"size"`   // in the file, in bytes
	Raw    int64      `json:"raw"`    // of what the frame holds, in bytes; of a part the sum of its frames
	Digest cas.Digest `json:"digest"` // of the bytes in the file; of a part those behind its first eight
	Name   string     `json:"name"`   // the entry that it begins with, or in; "" for the first, which begins with the index
	From   int64      `json:"from"`   // bytes of the entry's content before it; 0 for its header
	Of     int64      `json:"of"`     // bytes of the entry's content
	Seq    uint64     `json:"seq"`    // of the first record, where it begins in run.tape
}

// before reports whether the node begins at or before the header of an entry.
func (n *node) before(name string) bool { return n.Name < name || n.Name == name && n.From == 0 }

// inTape reports whether the frame begins within the tape: then it holds nothing else.
func (n *node) inTape() bool { return n.Name == tapeEntry && n.From > 0 }

// A part is what a skippable frame of the table holds.
type part struct {
	Pages bool   `json:"pages"` // its nodes are parts
	Nodes []node `json:"nodes"`
}

const (
	skippable = "\x50\x2a\x4d\x18" // the first of sixteen magic numbers (RFC 8878, 3.1.2)
	tailMagic = "tapedeck"         // the last bytes of a file that has a table
	tailSize  = 4 + len(tailMagic) // its root's length, and that
	skipHead  = 8                  // bytes before what a skippable frame holds
)

// table gives put the bytes that follow the frames, which end at at, part by part: all of them at once would be a multiple of what the nodes are. It
// returns the digest of its root. There are none where there is only one frame.
func table(nodes []node, at int64, put func(b []byte) error) (root cas.Digest, err error) {
	if len(nodes) < 2 {
		return root, nil
	}
	top := part{Nodes: nodes}
	if len(nodes) > pageLen {
		top = part{Pages: true}
		for page := range slices.Chunk(nodes, pageLen) {
			text, err := json.Marshal(&part{Nodes: page})
			if err != nil {
				return root, err
			}
			n := page[0]
			n.At, n.Size, n.Digest, n.Raw = at, int64(skipHead+len(text)), cas.Sum(text), 0
			for _, f := range page {
				n.Raw += f.Raw
			}
			top.Nodes = append(top.Nodes, n)
			if err := put(appendSkippable(nil, text)); err != nil {
				return root, err
			}
			at += n.Size
		}
	}
	text, err := json.Marshal(&top)
	if err != nil {
		return root, err
	}
	text = rootText(text)
	return cas.Sum(text), put(appendSkippable(nil, text))
}

// rootText is what the skippable frame of a root holds, whose length can be told from its end.
func rootText(text []byte) []byte {
	text = binary.LittleEndian.AppendUint32(text, uint32(len(text)))
	return append(text, tailMagic...)
}

func appendSkippable(b, text []byte) []byte {
	b = append(b, skippable...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// rootLen is how many bytes the root of the table has that a file ends with.
func rootLen(tail []byte) (int64, error) {
	if len(tail) < tailSize || !bytes.HasSuffix(tail, []byte(tailMagic)) {
		return 0, ErrNoRanges
	}
	return int64(binary.LittleEndian.Uint32(tail[len(tail)-tailSize:])) + int64(tailSize), nil
}

// decodePart reads a part of the table whose digest was checked. Its nodes lie in a file of size bytes, one behind the other, in order.
func decodePart(b []byte, size int64) (*part, error) {
	p := new(part)
	if bytes.Count(b, []byte("{")) > 1+len(b)/minNode { // which would be a multiple of b in memory
		return nil, fmt.Errorf("%w: its table has nodes that cannot be", ErrDamaged)
	}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("%w: its table: %w", ErrDamaged, err)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		ok := len(n.Name) <= maxName && n.At >= 0 && n.Size > skipHead && n.At <= size-n.Size && n.Raw > 0 && n.Raw <= DefaultMaxBytes && n.From >= 0 && n.From <= n.Of && n.Of <= DefaultMaxBytes
		if i > 0 {
			last := &p.Nodes[i-1]
			ok = ok && n.At == last.At+last.Size && (n.Name > last.Name || n.Name == last.Name && n.From > last.From)
		}
		if !ok {
			return nil, fmt.Errorf("%w: its table has a node that cannot be", ErrDamaged)
		}
	}
	if len(p.Nodes) == 0 {
		return nil, fmt.Errorf("%w: its table has an empty part", ErrDamaged)
	}
	return p, nil
}

// tapeEntry is the entry whose frames begin with lines.
const tapeEntry = "run.tape"

// recordHead is what a record's line begins with, before its number.
const recordHead = `{"type":"record","seq":`

// maxSeqHead is how many bytes of a line seqOf looks at.
const maxSeqHead = len(recordHead) + 21

// seqOf is the number of the record whose line b begins with, as far as it is written in the usual order.
func seqOf(b []byte) (uint64, bool) {
	rest, ok := bytes.CutPrefix(b, []byte(recordHead))
	end := bytes.IndexByte(rest[:min(len(rest), 21)], ',')
	if !ok || end <= 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(rest[:end]), 10, 64)
	return n, err == nil
}
