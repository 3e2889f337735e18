package packed

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/klauspost/compress/zstd"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// frames reads what frames hold, one behind the other, and makes the table that must follow them.
type frames struct {
	z     *zstd.Decoder
	r     io.ReaderAt
	size  int64
	min   int64               // minFrame, but for tests
	begin func() (node, bool) // what the next frame begins with, where one may begin

	at    int64 // behind the frame that is being read
	nodes []node
	body  io.Reader // of that frame; nil where none is being read
	hash  *cas.Hasher
	head  []byte // of what it holds, still to be given
	fresh bool   // a header comes next
	last  byte   // that was given
}

// Read implements io.Reader. At the end of a frame in a place where none may end it returns io.EOF, or ErrDamaged where something follows.
func (f *frames) Read(b []byte) (int, error) {
	for {
		if f.body == nil {
			if err := f.next(); err != nil {
				return 0, err
			}
		}
		if n := copy(b, f.head); n > 0 {
			f.head = f.head[n:]
			return f.given(b[:n]), nil
		}
		n, err := f.z.Read(b)
		f.nodes[len(f.nodes)-1].Raw += int64(n)
		if errors.Is(err, io.EOF) {
			err = f.close()
		}
		if n > 0 || err != nil || len(b) == 0 {
			return f.given(b[:n]), err
		}
	}
}

func (f *frames) given(b []byte) int {
	if len(b) > 0 {
		f.fresh, f.last = false, b[len(b)-1]
	}
	return len(b)
}

// next begins the next frame.
func (f *frames) next() error {
	n, may := f.begin()
	if f.at == f.size {
		return io.EOF
	}
	end, err := endOfFrame(f.r, f.at, f.size)
	switch {
	case errors.Is(err, errSkippable):
		return io.EOF
	case err == nil && (!may || int64(len(f.nodes)) > fewFrames+f.at/f.min):
		err = fmt.Errorf("%w: no frame may begin at byte %d", ErrDamaged, f.at)
	}
	if err != nil {
		return err
	}
	n.At, n.Size = f.at, end-f.at
	f.hash = cas.NewHasher()
	f.body = io.TeeReader(io.NewSectionReader(f.r, f.at, n.Size), f.hash)
	f.at = end
	f.nodes = append(f.nodes, n)
	if err := f.z.Reset(f.body); err != nil || n.Name != tapeEntry {
		return err
	}
	f.head = make([]byte, maxSeqHead)
	got, err := io.ReadFull(f.z, f.head)
	f.head = f.head[:got]
	last := &f.nodes[len(f.nodes)-1]
	last.Raw = int64(got)
	last.Seq, may = seqOf(f.head)
	if err == nil && (!may || f.last != '\n') {
		err = fmt.Errorf("%w: the frame at byte %d begins with no record", ErrDamaged, n.At)
	}
	if before := f.nodes[len(f.nodes)-2]; err == nil && last.Seq <= before.Seq { // the first frame has the index: there is one before
		err = fmt.Errorf("%w: record %d begins a frame behind that of record %d", ErrDamaged, last.Seq, before.Seq)
	}
	return err
}

// named says which entry has begun.
func (f *frames) named(name string, size int64) error {
	n := &f.nodes[len(f.nodes)-1]
	if n.Name == "" && len(f.nodes) > 1 {
		n.Name, n.Of = name, size
	}
	if n.inTape() {
		return fmt.Errorf("%w: %q stands in a frame of the tape", ErrDamaged, name)
	}
	return nil
}

func (f *frames) close() error {
	_, err := io.Copy(io.Discard, f.body) // which the decoder has read, but perhaps to its end
	n := &f.nodes[len(f.nodes)-1]
	n.Digest, f.body = f.hash.Sum(), nil
	if err == nil && n.Raw == 0 {
		err = fmt.Errorf("%w: the frame at byte %d is empty", ErrDamaged, n.At)
	}
	return err
}

// end returns io.EOF where the table is the one that a Writer makes for these frames.
func (f *frames) end() error {
	if n := &f.nodes[len(f.nodes)-1]; n.Name == "" && len(f.nodes) > 1 {
		return fmt.Errorf("%w: the frame at byte %d has nothing but the end", ErrDamaged, n.At)
	}
	at := f.at
	_, err := table(f.nodes, f.at, func(want []byte) error {
		if int64(len(want)) > f.size-at {
			return fmt.Errorf("%w: its table is cut short", ErrDamaged)
		}
		have := make([]byte, len(want))
		if _, err := f.r.ReadAt(have, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if !bytes.Equal(have, want) {
			return fmt.Errorf("%w: its table is another one", ErrDamaged)
		}
		at += int64(len(want))
		return nil
	})
	if err != nil {
		return err
	}
	if at != f.size {
		return fmt.Errorf("%w: %d bytes follow its end", ErrDamaged, f.size-at)
	}
	return io.EOF
}

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
