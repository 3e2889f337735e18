// Package seglog is an append-only log of records in segment files, with group commit: whatever is queued at a moment is one
// block, one write and one fdatasync, and only then are its appends acknowledged. While one block is on its way the next one
// fills. There is no timer: an append that finds the committer idle is written at once, alone.
//
// It promises that an acknowledged record is there when the log is opened again, once, in the order of positions, whatever
// killed the process or the machine in between; that nothing acknowledged is ever cut off; and that a log which is not what
// was acknowledged says where it is damaged instead of going on. An append that was neither acknowledged nor failed when the
// process died may be there or not.
//
// It knows nothing of what records mean, drops no old segments, and leaves it to the caller that one process alone opens a
// directory.
//
// # Files
//
//	00000000000000000001.seg    a segment, named by the position of its first record (20 digits)
//	00000000000000183744.seg
//	next.tmp                    a segment that is being made; removed by Open
//	ahead.tmp                   the next segment's zeros, with Options.Prepare; removed by Open and Close
//	mark                        how far records were acknowledged, at least
//
// A segment is a header of 64 bytes, then blocks without a gap. All numbers are little-endian; crc is CRC-32C (Castagnoli).
//
//	 0  8  magic F5 't' 'd' 's' 'e' 'g', version 1 (2 bytes)
//	 8  8  salt, random
//	16  8  position of the first record
//	24  8  position of the first record of the segment before, 0 in the first one
//	32  8  bytes of the segment before
//	40 20  zero
//	60  4  crc of bytes 0 to 60
//
// A block:
//
//	 0  4  magic F5 'b' 'l' 'k' (F5 stands in no UTF-8 text)
//	 4  4  length of the body
//	 8  4  count of records, at least 1
//	12  4  crc of the body
//	16  8  position of the first record
//	24  4  the header crc of the block before, in the first block that of the segment
//	28  4  crc of the salt and bytes 0 to 28
//	32     body: each record as its length (unsigned varint) and its bytes
//	       one byte F6
//
// Behind the last block all is zero up to the end of the file.
//
// # Writing
//
// A block is written behind the last one by one pwrite, then fdatasync, then the mark (a pwrite, not synced), then its
// appends are acknowledged. A new segment is next.tmp, its header, fdatasync, rename, fsync of the directory; the segment
// before is cut to its last block. With Options.Prepare the next segment is ahead.tmp, full of zeros that are on the disk: a
// file system then has no more to write down with a block than the block, and its sync waits for nobody else's journal.
//
// A write that fails or is short fails all that is queued; the file is cut back to the last acknowledged block and that is
// synced, so that what was told to have failed does not come back; then the log takes appends again (see Log.Append on
// epochs). A failed sync, of a file or the directory, ends it: the kernel may have dropped the bytes that it could not
// write, a second sync would succeed and mean nothing. So would one after Open: Open writes everything behind the mark once
// more, from what it read, before it syncs.
//
// # Opening
//
// The last segment is read whole. At the first place behind its blocks that is no block:
//
//   - All is zero from there: the log ends there.
//   - A whole block stands somewhere behind, or the mark says that records were acknowledged there: the log is damaged, a
//     *DamageError names file and offset, and nothing is changed.
//   - It is a torn block, one that was being written: the file ends within it, or its end is missing, or one of the 512-byte
//     sectors that it touches, or a part of one, is zero where it should be. That is what a process or a machine that dies
//     in the middle of a write leaves, for what was not written reads as zero. It is cut off: a block is acknowledged when all
//     of it is on the disk, so nothing in it was. The log says so.
//   - Anything else is damage too: a block that was whole once and has changed.
//
// After the death of the process the mark is exact. After the loss of power it may be old: then a last block that lost a
// whole sector after it was acknowledged looks torn, and that alone cannot be told apart.
//
// Of earlier segments the headers are read, which hold the chain together: a missing segment, or one that is shorter than
// its successor says, is damage. Their blocks are checked whenever Records reads them.
//
// # Systems
//
// Linux has fdatasync. macOS syncs by F_FULLFSYNC, for its fsync stops at the drive's cache. Windows syncs by FlushFileBuffers, which needs no
// sync of a directory.
package seglog

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
)

// A Pos is the place of a record in a log: the first record is 1, and the next one is always one more. 0 is before the first.
type Pos uint64

// A Record is one record of a log, as it was appended.
type Record struct {
	Pos  Pos
	Data []byte // valid until the iterator goes on
}

// An Epoch counts how often appends failed while the log went on. See Log.Append.
type Epoch uint64

// Options say how a log is kept. Nil and zero work.
type Options struct {
	SegmentSize int64 // bytes after which a new file begins; 0 means 64 MiB. A block that is longer has a file of its own
	// MaxBlock bounds the bytes of one block, and so those that wait for the disk; 0 means 4 MiB. A record that is longer is
	// a block of its own. The log holds two blocks in memory: the one being written and the one that fills.
	MaxBlock int
	// Prepare has the next segment written with zeros while one is filled: twice the bytes go to the disk, and a sync waits for
	// no journal, which matters where others write to the same file system. A segment that was not prepared (the first one, that
	// of an earlier process) is left at an eighth of SegmentSize. When a write fails the space taken for it is given back.
	Prepare bool
	FS      faultfs.FS   // nil: the machine's
	Logger  *slog.Logger // nil: silent
	// Committed is called by the committer after each block is on the disk and before its done callbacks; it must be quick.
	Committed func(Batch)
	// Rotated is called by the committer when a new segment begins: every record before first is in files that are not
	// written again. It must be quick, and must not call the log.
	Rotated func(first Pos)
}

// A Batch is what one write and one sync brought to the disk.
type Batch struct {
	First   Pos
	Records int
	Bytes   int // the whole block
	Write   time.Duration
	Sync    time.Duration
}

// Stats are totals since Open.
type Stats struct {
	Blocks, Records, Bytes uint64
	Write, Sync            time.Duration
	Failed                 uint64 // appends whose done got an error
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.SegmentSize <= 0 {
		d.SegmentSize = 64 << 20
	}
	if d.MaxBlock <= 0 {
		d.MaxBlock = 4 << 20
	}
	d.MaxBlock = min(d.MaxBlock, 1<<30) // a block's length has 32 bits
	if d.FS == nil {
		d.FS = faultfs.OS
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

// MaxRecord is the longest record, in bytes.
const MaxRecord = 64 << 20

var (
	// ErrFailed is the error of every append after a sync failed, or after a failed write could not be undone. What had not
	// been acknowledged may be on the disk or not; the log must be closed and opened again.
	ErrFailed = errors.New("the log failed and takes nothing more: open it again")
	// ErrClosed is the error of every append after Close.
	ErrClosed = errors.New("the log is closed")
	// ErrEpoch is the error of an append that was built on appends which have failed.
	ErrEpoch = errors.New("earlier appends failed: begin again from what was acknowledged")
	// ErrTooLarge is the error of a record longer than MaxRecord.
	ErrTooLarge = fmt.Errorf("a record holds at most %d bytes", MaxRecord)
)

// A DamageError says where a log is not what was acknowledged.
type DamageError struct {
	File   string
	Offset int64 // bytes from the begin of the file
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("log damaged: %s at byte %d: %s", e.File, e.Offset, e.Reason)
}

// A Log is open for appends and reading. Its methods may be called at the same time. One goroutine, the committer, writes;
// Close ends it and waits for it.
type Log struct {
	dir    string
	o      Options
	fs     faultfs.FS
	writer writer        // the committer's alone
	ended  chan struct{} // closed when the committer has ended

	mu       sync.Mutex // guards what follows
	arrived  sync.Cond  // filling is no longer empty, or the log is closing
	filling  *block
	spare    *block // empty, or nil while the committer has it
	waiting  []*waiter
	next     Pos // of the next append
	epoch    Epoch
	failed   error // what Append returns: ErrFailed with its cause
	closing  bool
	closeErr error
	segments []segmentInfo // all of them, the last one is being written
	durable  place         // what is acknowledged, or about to be
	stats    Stats
}

// A place is the end of what is on the disk.
type place struct {
	next Pos
	at   int64 // in the last segment
}

// Epoch is the epoch of appends now. It begins at 1.
func (l *Log) Epoch() Epoch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// End is the position that the next acknowledged record gets: every record before it is on the disk.
func (l *Log) End() Pos {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable.next
}

// Stats are the totals up to now.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// Close takes no more appends, brings to the disk what is queued, and closes the files. When ctx ends first it returns its
// error, and the committer goes on in the background. After a failed sync it returns that; a second Close returns what the
// first did.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closing = true
	l.arrived.Signal()
	l.mu.Unlock()
	select {
	case <-l.ended:
		return l.closeErr
	case <-ctx.Done():
		return fmt.Errorf("close the log: %w", context.Cause(ctx))
	}
}

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
