package recordlog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The index tells where the entries of an id stand: records of 16 bytes, 8 of the id's SHA-256 and the entry's number, big-endian,
// in the file that the first 12 bits of the SHA-256 name. It is written before the checkpoint and is believed nothing: an entry that
// it leads to is read, and one that it does not know is looked for in all of the log.

const (
	indexName   = "index"
	indexRecord = 16
	maxIndex    = 1 << 28 // bytes of one file of it
)

func indexSlot(id string) (file string, key [8]byte) {
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%s/%03x", indexName, uint16(sum[0])<<4|uint16(sum[1])>>4), [8]byte(sum[2:10])
}

// noteIndex adds that entry n is of id.
func noteIndex(dir, id string, n int64) error {
	name, key := indexSlot(id)
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := makeDirs(dir, filepath.Dir(path), false); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	at := st.Size() / indexRecord * indexRecord // over a torn record, which a kill leaves
	_, err = f.WriteAt(binary.BigEndian.AppendUint64(key[:], uint64(n)), at)
	return err
}

// indexed lists the numbers that the index has for id, oldest first, in a tree of size entries.
func (l *Log) indexed(id string) ([]int64, error) {
	name, key := indexSlot(id)
	b, err := readBounded(l.path(name), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []int64
	for ; len(b) >= indexRecord; b = b[indexRecord:] {
		if n := int64(binary.BigEndian.Uint64(b[8:])); [8]byte(b) == key && n >= 0 && n < l.Head.Tree.N {
			out = append(out, n)
		}
	}
	return out, err
}

// reindex makes the index of a log that has none.
func (l *Log) reindex() error {
	if _, err := os.Stat(l.path(indexName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n := int64(0)
	for b, err := range l.all() {
		if err != nil {
			return err
		}
		e, err := ParseEntry(b)
		if err == nil {
			err = noteIndex(l.Dir, e.ID, n)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", n, err)
		}
		n++
	}
	return nil
}
