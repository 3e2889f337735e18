package fidelity

import "github.com/tapedeck-dev/tapedeck/tape"

// fileCategories are the codes of one of the three kinds that hold a file.
type fileCategories struct {
	path, hash, length, content, before, digest, mode, attrs, spawn Category
}

const (
	attrsKey = "xattrs" // of the extended attributes of a file
	wholeKey = "whole"  // of a state that a call ended, or of the one behind it
)

var (
	fileRead = fileCategories{FileReadPath, FileReadHash, FileReadLen, FileReadContent, FileReadBefore, FileReadDigest,
		FileReadMode, ExtraKeys, FileReadSpawn}
	fileWrite = fileCategories{FileWritePath, FileWriteHash, FileWriteLen, FileWriteContent, FileWriteBefore,
		FileWriteDigest, FileWriteMode, FileWriteAttrs, FileWriteSpawn}
	fileDelete = fileCategories{FileDeletePath, FileDeleteHash, FileDeleteLen, FileDeleteContent, FileDeleteBefore,
		FileDeleteDigest, FileDeleteMode, ExtraKeys, FileDeleteSpawn}
)

// file compares two files. In lane mode the digest after masking stands for the bytes where both records have one, and
// what the file held before, which follows from the rest, does not count.
func (d *differ) file(c *fileCategories, a, b *tape.File) {
	d.text(c.path, a.Path, b.Path)
	same(d, c.mode, a.Mode, b.Mode)
	sameExact(d, c.length, a.LenBytes, b.LenBytes)
	d.extra(a.Extra, b.Extra)
	if !d.lanes {
		if same(d, c.hash, a.ContentHash, b.ContentHash); a.ContentHash == b.ContentHash { // else the others say it again
			d.payload(c.content, a.Content, b.Content)
			same(d, c.digest, a.ContentDigest, b.ContentDigest)
		}
		d.payload(c.before, a.Before, b.Before)
		same(d, c.spawn, a.SpawnID, b.SpawnID)
		return
	}
	same(d, c.attrs, string(tape.FieldValue(a.Extra, attrsKey)), string(tape.FieldValue(b.Extra, attrsKey)))
	was, now := a.ContentHash, b.ContentHash
	if !a.ContentDigest.IsZero() && !b.ContentDigest.IsZero() {
		was, now = a.ContentDigest, b.ContentDigest
	}
	if was != now {
		d.hashed(finding{category: c.hash, was: a.Content, now: b.Content}, was, now)
	}
}
