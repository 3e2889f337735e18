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
// Behind the last block all is zero up to the end of the file: space is taken from the file system ahead of its use, so that
// a sync has no new size to write down. Where the file system cannot do that, or is nearly full, the log goes without.
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
// Linux has fdatasync and fallocate. macOS syncs by F_FULLFSYNC, for its fsync stops at the drive's cache, and has no space
// taken ahead. Windows syncs by FlushFileBuffers, which needs no sync of a directory, and has no space taken ahead.
package seglog
