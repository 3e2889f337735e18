package seglog

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

const (
	segmentHeader = 64
	blockHeader   = 32
	trailer       = 0xf6
	sector        = 512 // what a disk writes whole or not at all
	maxVarint     = binary.MaxVarintLen32
)

var (
	segmentMagic = [8]byte{0xf5, 't', 'd', 's', 'e', 'g', 1, 0}
	blockMagic   = [4]byte{0xf5, 'b', 'l', 'k'}
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
	le           = binary.LittleEndian
)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// A segmentInfo is what the header of a segment says.
type segmentInfo struct {
	salt      [8]byte
	first     Pos
	prevFirst Pos // 0: there is none before
	prevSize  int64
	crc       uint32 // of the header; set by encode and decode
}

func newSegmentInfo(first, prevFirst Pos, prevSize int64) segmentInfo {
	s := segmentInfo{first: first, prevFirst: prevFirst, prevSize: prevSize}
	rand.Read(s.salt[:]) // never fails
	return s
}

func (s *segmentInfo) encode() []byte {
	b := make([]byte, segmentHeader)
	copy(b, segmentMagic[:])
	copy(b[8:], s.salt[:])
	le.PutUint64(b[16:], uint64(s.first))
	le.PutUint64(b[24:], uint64(s.prevFirst))
	le.PutUint64(b[32:], uint64(s.prevSize))
	s.crc = checksum(b[:60])
	le.PutUint32(b[60:], s.crc)
	return b
}

func decodeSegment(b []byte) (segmentInfo, error) {
	var s segmentInfo
	if len(b) < segmentHeader {
		return s, fmt.Errorf("a header of %d bytes expected, %d are there", segmentHeader, len(b))
	}
	if !bytes.Equal(b[:6], segmentMagic[:6]) {
		return s, errors.New("no segment begins like this")
	}
	s.crc = le.Uint32(b[60:])
	if got := checksum(b[:60]); got != s.crc {
		return s, fmt.Errorf("the header's crc is %08x, its bytes have %08x", s.crc, got)
	}
	if !bytes.Equal(b[:8], segmentMagic[:]) {
		return s, fmt.Errorf("version %d, this program reads version 1", le.Uint16(b[6:]))
	}
	copy(s.salt[:], b[8:])
	s.first, s.prevFirst = Pos(le.Uint64(b[16:])), Pos(le.Uint64(b[24:]))
	s.prevSize = int64(le.Uint64(b[32:]))
	return s, nil
}

func segmentName(first Pos) string { return fmt.Sprintf("%020d.seg", first) }

// parseSegmentName returns 0 where name is not that of a segment.
func parseSegmentName(name string) Pos {
	digits, ok := strings.CutSuffix(name, ".seg")
	var n uint64
	if _, err := fmt.Sscanf(digits, "%d", &n); !ok || err != nil || segmentName(Pos(n)) != name {
		return 0
	}
	return Pos(n)
}

// A blockInfo is what the header of a block says.
type blockInfo struct {
	body  int // bytes
	count int
	first Pos
	crc   uint32 // of the body
	prev  uint32 // crc of the header before
	self  uint32 // crc of this header
}

// size is the length of the whole block in bytes.
func (h *blockInfo) size() int64 { return blockHeader + int64(h.body) + 1 }

// end is the position behind the last record.
func (h *blockInfo) end() Pos { return h.first + Pos(h.count) }

// putBlockHeader fills in the first blockHeader bytes of b, whose body and trailer are there already. It returns its crc.
func putBlockHeader(b []byte, salt *[8]byte, first Pos, count int, prev uint32) uint32 {
	body := b[blockHeader : len(b)-1]
	copy(b, blockMagic[:])
	le.PutUint32(b[4:], uint32(len(body)))
	le.PutUint32(b[8:], uint32(count))
	le.PutUint32(b[12:], checksum(body))
	le.PutUint64(b[16:], uint64(first))
	le.PutUint32(b[24:], prev)
	self := headerChecksum(salt, b)
	le.PutUint32(b[28:], self)
	return self
}

func headerChecksum(salt *[8]byte, b []byte) uint32 {
	return crc32.Update(checksum(salt[:]), castagnoli, b[:28])
}

// decodeBlock reads a block's header, at least blockHeader bytes.
func decodeBlock(b []byte, salt *[8]byte) (blockInfo, error) {
	if !bytes.Equal(b[:4], blockMagic[:]) {
		return blockInfo{}, errors.New("no block begins like this")
	}
	h := blockInfo{
		body: int(le.Uint32(b[4:])), count: int(le.Uint32(b[8:])), crc: le.Uint32(b[12:]),
		first: Pos(le.Uint64(b[16:])), prev: le.Uint32(b[24:]), self: le.Uint32(b[28:]),
	}
	if got := headerChecksum(salt, b); got != h.self {
		return h, fmt.Errorf("the block header's crc is %08x, its bytes have %08x", h.self, got)
	}
	if h.count < 1 || h.count > h.body { // each record takes a byte at least
		return h, fmt.Errorf("%d records in %d bytes", h.count, h.body)
	}
	return h, nil
}

// checkBlock checks a whole block, as long as h says, up to the shape of its records.
func checkBlock(b []byte, h *blockInfo) error {
	body := b[blockHeader : len(b)-1]
	if b[len(b)-1] != trailer {
		return fmt.Errorf("the block ends with %02x, not %02x", b[len(b)-1], trailer)
	}
	if got := checksum(body); got != h.crc {
		return fmt.Errorf("the crc of the block's body is %08x, its bytes have %08x", h.crc, got)
	}
	for i := range h.count {
		_, rest, err := cutRecord(body)
		if err != nil {
			return fmt.Errorf("record %d of %d in the block: %w", i+1, h.count, err)
		}
		body = rest
	}
	if len(body) != 0 {
		return fmt.Errorf("%d bytes behind the block's last record", len(body))
	}
	return nil
}

// cutRecord takes the first record off a body.
func cutRecord(body []byte) (record, rest []byte, err error) {
	n, size := binary.Uvarint(body)
	if size <= 0 || n > uint64(len(body)-size) {
		return nil, nil, errors.New("its length leads out of the block")
	}
	if size > 1 && body[size-1] == 0 {
		return nil, nil, errors.New("its length is written longer than need be")
	}
	body = body[size:]
	return body[:n:n], body[n:], nil
}
