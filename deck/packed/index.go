// Package packed reads and writes the packed form of a recording: one compressed file that any machine can hold, send
// and list.
//
// Goals: the same recording gives the same bytes, whoever packs it, where and when; a reader trusts nothing that a file
// says; tar and zstd of any system can list and take out what is inside; who has it elsewhere reads an entry, or a record of its tape, without
// the rest. Not goals: packing several recordings, adding to a packed file.
//
// Grammar:
//
//	file    = 1*frame [table], the frames' contents together being stream
//	frame   = a zstd frame (RFC 8878) with a checksum, no dictionary and a window of at most 8 MiB
//	stream  = index *entry end
//	index   = the entry "pack.json": {"format":1,"id":S,"state":S,"files":N,"bytes":N} and a newline
//	entry   = header content padding
//	header  = 512 bytes of ustar (POSIX.1-1988): name, mode 0644, ids 0, size, time 0, checksum, type 0, device 0, no other field
//	content = size bytes
//	padding = zero bytes up to a multiple of 512
//	end     = 1024 zero bytes
//	table   = *part root
//	part    = a skippable frame (RFC 8878) of {"pages":false,"nodes":[…]}
//	root    = a skippable frame of {"pages":B,"nodes":[…]}, its length in four bytes, the last first, and "tapedeck"
//
// A file of one frame has no table, and neither have those of older versions. A node is one frame: where it lies, its BLAKE3, and which entry
// it begins with; the nodes of a root that has pages are parts of 256 frames each. A frame begins with a header, or within the content of an
// entry: in run.tape with a record, whose number the node has; such a frame holds nothing
// else. Who has the BLAKE3 of what root holds can check all that a View fetches.
//
// files is the number of entries behind the index, bytes the sum of their sizes. A size of 8 GiB or more stands in the
// binary form that GNU tar, libarchive and Go read. The index is no part of the recording: taking the file apart with tar
// leaves it beside the rest.
//
// A name is one to eight components of a-z, 0-9, '.', '_' and '-' with '/' between them, at most 100 bytes; a component
// begins and ends with a letter or a digit. So no name is absolute, climbs, hides, or is another's in other case. A file
// in a directory whose name ends in ".cas" is a blob: its name is the BLAKE3 of its content.
//
// Ordering: entries stand in ascending order of their names, byte by byte, none twice.
//
// Compatibility: there is one stream for one recording: a header that differs in a single byte from the one that a Writer
// makes for the same name and size is refused, and so is anything behind the end, and a table that a Writer does not make for these frames. The frames depend on the version of tapedeck
// and of its zstd encoder: two versions may compress the same stream to different bytes. A higher format is refused; versions before the table
// refuse a file that has one.
//
// Errors: ErrNotPacked for a file of another kind, a *LimitError for one that declares more than the caller takes,
// ErrDamaged for everything else that does not hold, a file cut short too.
//
// Memory: both directions hold one zstd window and one buffer, never an entry; and of each frame its node. A View holds a few frames, compressed.
package packed

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// Format is the format number that this package writes, and the highest that it reads.
const Format = 1

const (
	indexName = "pack.json"
	maxIndex  = 4 << 10 // bytes
)

// An Index is the first entry: what follows, so that a reader knows before it writes anything.
type Index struct {
	Format int    `json:"format"`
	ID     string `json:"id"`    // of the recording
	State  string `json:"state"` // of the recording
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"` // of all files together
}

func (ix *Index) encode() ([]byte, error) {
	b, err := json.Marshal(ix)
	if err == nil && len(b) >= maxIndex {
		err = fmt.Errorf("the index of a packed recording has more than %d bytes", maxIndex)
	}
	return append(b, '\n'), err
}

// decodeIndex reads what encode wrote, and nothing else.
func decodeIndex(b []byte) (*Index, error) {
	ix := new(Index)
	if err := json.Unmarshal(b, ix); err != nil {
		return nil, fmt.Errorf("%w: its index: %w", ErrDamaged, err)
	}
	if ix.Format > Format {
		return nil, fmt.Errorf("%w: format %d, and this one reads up to %d", ErrFormat, ix.Format, Format)
	}
	again, err := ix.encode()
	if err != nil || !bytes.Equal(again, b) || ix.Format < 1 || ix.Files < 0 || ix.Bytes < 0 {
		return nil, fmt.Errorf("%w: its index is not one that pack writes", ErrDamaged)
	}
	return ix, nil
}

var (
	// ErrNotPacked is returned for a file that is no packed recording.
	ErrNotPacked = errors.New("not a packed recording")
	// ErrDamaged is wrapped by every refusal of a packed recording that no Writer made, or that was changed or cut since.
	ErrDamaged = errors.New("damaged packed recording")
	// ErrName is wrapped by the refusal of a name that no entry may have.
	ErrName = errors.New("no name of a file of a recording")
	// ErrFormat is wrapped by the refusal of a format that is newer than this package.
	ErrFormat = errors.New("packed by a newer tapedeck")
)

// A LimitError says that a file declares more than the caller takes.
type LimitError struct {
	What        string // "bytes" or "files"
	Have, Limit int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the packed recording declares %d %s, and the limit is %d", e.Have, e.What, e.Limit)
}

const (
	maxName  = 100 // bytes: the name field of a header
	maxDepth = 8   // components: a seal of later versions keeps tiles some seven deep
)

// blobSuffix is what the name of a directory of blobs ends in.
const blobSuffix = ".cas"

// CheckName returns an error that wraps ErrName for what may not be the name of an entry.
func CheckName(name string) error {
	parts := strings.Split(name, "/")
	if len(name) > maxName || len(parts) > maxDepth || name == indexName {
		return fmt.Errorf("%w: %.120q", ErrName, name)
	}
	for _, p := range parts {
		if !component(p) {
			return fmt.Errorf("%w: %.120q", ErrName, name)
		}
	}
	if _, err := BlobOf(name); err != nil {
		return fmt.Errorf("%w: %.120q stands among blobs", ErrName, name)
	}
	return nil
}

// component reports whether s may stand between two slashes. What no letter or digit ends would lose its end on Windows;
// what none begins is hidden, an option of some command, or leads up.
func component(s string) bool {
	if s == "" || !alnum(s[0]) || !alnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alnum(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func alnum(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// BlobOf returns the digest that the content of the entry name must have, the zero Digest where it is no blob. The error
// is that of a name among blobs that is no digest.
func BlobOf(name string) (cas.Digest, error) {
	dir, base := path.Split(name)
	if !strings.HasSuffix(dir, blobSuffix+"/") {
		return cas.Digest{}, nil
	}
	return cas.Parse(base)
}

// block is the unit of tar, in bytes.
const block = 512

// maxOctal is the largest size that eleven octal digits hold.
const maxOctal = 1<<33 - 1

// The fields of a header: where they begin.
const (
	atMode, atUID, atGID, atSize, atTime, atSum, atType, atMagic, atDevice = 100, 108, 116, 124, 136, 148, 156, 257, 329
)

// header returns the one header that an entry of this name and size has.
func header(name string, size int64) (h [block]byte) {
	copy(h[:maxName], name)
	copy(h[atMode:], "0000644\x00")
	copy(h[atUID:], "0000000\x00")
	copy(h[atGID:], "0000000\x00")
	putSize(h[atSize:atTime], size)
	copy(h[atTime:], "00000000000\x00")
	copy(h[atSum:], "        ")
	h[atType] = '0'
	copy(h[atMagic:], "ustar\x0000")
	copy(h[atDevice:], "0000000\x000000000\x00")
	var sum int
	for _, b := range h {
		sum += int(b)
	}
	copy(h[atSum:], fmt.Sprintf("%06o\x00 ", sum))
	return h
}

// putSize writes a size as tar does: in octal, or with the first bit set in binary.
func putSize(field []byte, size int64) {
	if size <= maxOctal {
		copy(field, fmt.Sprintf("%011o\x00", size))
		return
	}
	field[0] = 0x80
	binary.BigEndian.PutUint64(field[4:], uint64(size))
}

// parseHeader returns the name and the size in h, where h is the header of such an entry to the last byte.
func parseHeader(h *[block]byte) (name string, size int64, err error) {
	name = string(h[:maxName])
	if i := bytes.IndexByte(h[:maxName], 0); i >= 0 {
		name = name[:i]
	}
	size = parseSize(h[atSize:atTime])
	if size < 0 || *h != header(name, size) {
		return "", 0, fmt.Errorf("%w: the header of %.120q is not one that pack writes", ErrDamaged, name)
	}
	return name, size, nil
}

// parseSize reads what putSize wrote; anything else gives a number that putSize writes otherwise, or a negative one.
func parseSize(field []byte) int64 {
	if field[0]&0x80 != 0 {
		return int64(binary.BigEndian.Uint64(field[4:]))
	}
	var n int64
	for _, c := range field[:11] {
		n = n<<3 | int64(c&7)
	}
	return n
}

// padding is how many zero bytes follow a content of size bytes.
func padding(size int64) int64 { return -size & (block - 1) }
