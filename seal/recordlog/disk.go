package recordlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const (
	checkpointName = "checkpoint"
	lockName       = ".lock"
	maxCheckpoint  = 1 << 20 // bytes: a head and as many signatures as anybody may want
	maxBundle      = merkle.Width * (2 + maxEntry)
)

// ErrNoLog is returned for a directory that holds no log.
var ErrNoLog = errors.New("no log of recordings")

// A Log is a log as one of its checkpoints says it. What is added later is not in it.
type Log struct {
	Dir  string
	Head *Checkpoint
}

// Open reads the log in dir, which one of keys signed. The error wraps ErrNoLog or ErrCheckpoint.
func Open(dir string, keys ...note.Verifier) (*Log, error) {
	b, err := readBounded(filepath.Join(dir, checkpointName), maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoLog)
	}
	if err != nil {
		return nil, err
	}
	head, err := ParseCheckpoint(b, keys...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, checkpointName), err)
	}
	return &Log{Dir: dir, Head: head}, nil
}

// readBounded reads a file of at most limit bytes, and nothing else than a file.
func readBounded(path string, limit int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > limit {
		return nil, fmt.Errorf("%s: want a file of at most %d bytes", path, limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s: want a file of at most %d bytes", path, limit)
	}
	return b, err
}

func (l *Log) path(name string) string { return filepath.Join(l.Dir, filepath.FromSlash(name)) }

// read reads tile n of a level, of which w hashes or entries are asked for: the partial tile, or else the full one, which may
// have taken its place.
func (l *Log) read(level string, n int64, w int, limit int64) ([]byte, error) {
	b, err := readBounded(l.path(tilePath(level, n, w)), limit)
	if errors.Is(err, fs.ErrNotExist) && w < merkle.Width {
		if whole, errWhole := readBounded(l.path(tilePath(level, n, merkle.Width)), limit); errWhole == nil {
			return whole, nil
		}
	}
	return b, err
}

// hashes reads the first w hashes of a tile.
func (l *Log) hashes(level int, n int64, w int) ([]tlog.Hash, error) {
	b, err := l.read(strconv.Itoa(level), n, w, merkle.Width*tlog.HashSize)
	if err != nil {
		return nil, err
	}
	if len(b)%tlog.HashSize != 0 || len(b) < w*tlog.HashSize {
		return nil, fmt.Errorf("%s: %d bytes where %d hashes are due", l.path(levelPath(level, n, w)), len(b), w)
	}
	out := make([]tlog.Hash, w)
	for i := range out {
		out[i] = tlog.Hash(b[i*tlog.HashSize:])
	}
	return out, nil
}

// bundle reads the first w entries of a bundle.
func (l *Log) bundle(n int64, w int) ([][]byte, error) {
	b, err := l.read(entriesLevel, n, w, maxBundle)
	if err != nil {
		return nil, err
	}
	out, err := splitBundle(b)
	if err == nil && len(out) < w {
		err = fmt.Errorf("%d entries where %d are due", len(out), w)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.path(tilePath(entriesLevel, n, w)), err)
	}
	return out[:w], nil
}

func splitBundle(b []byte) (out [][]byte, err error) {
	for len(b) > 0 {
		if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
			return out, errors.New("it ends within an entry")
		}
		n := 2 + int(binary.BigEndian.Uint16(b))
		out, b = append(out, b[2:n]), b[n:]
	}
	if len(out) > merkle.Width {
		return out, fmt.Errorf("%d entries, want %d at most", len(out), merkle.Width)
	}
	return out, nil
}

func appendEntry(bundle, e []byte) []byte {
	return append(binary.BigEndian.AppendUint16(bundle, uint16(len(e))), e...)
}

// put writes a file of the log whole, and the directories above it.
func put(dir, name string, b []byte, sync bool) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := makeDirs(dir, filepath.Dir(path), sync); err != nil {
		return err
	}
	return durable.WriteFile(path, b, &durable.Options{Mode: 0o644, Sync: sync})
}

// makeDirs makes path, which lies in dir, and with sync brings the name of each new directory to the disk.
func makeDirs(dir, path string, sync bool) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil
	}
	if path != dir && len(path) > len(dir) {
		if err := makeDirs(dir, filepath.Dir(path), sync); err != nil {
			return err
		}
	} else if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !sync {
		return nil
	}
	return durable.SyncDir(filepath.Dir(path))
}

// tiles reads tiles for package tlog, which holds what it gets against the checkpoint.
type tiles struct{ l *Log }

func (t tiles) Height() int                     { return merkle.Height }
func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}
func (t tiles) ReadTiles(list []tlog.Tile) ([][]byte, error) {
	out := make([][]byte, len(list))
	for i, tile := range list {
		h, err := t.l.hashes(tile.L, tile.N, tile.W)
		if err != nil {
			return nil, err
		}
		out[i] = merkle.Join(h)
	}
	return out, nil
}

// reader reads hashes of the tree, each held against the checkpoint.
func (l *Log) reader() tlog.HashReader { return tlog.TileHashReader(l.Head.Tree, tiles{l}) }

// Entry reads entry n. Whether it is what the checkpoint stands for, Prove and Verify tell.
func (l *Log) Entry(n int64) (*Entry, error) {
	b, err := l.raw(n)
	if err != nil {
		return nil, err
	}
	return ParseEntry(b)
}

func (l *Log) raw(n int64) ([]byte, error) {
	if n < 0 || n >= l.Head.Tree.N {
		return nil, fmt.Errorf("entry %d: the log has %d", n, l.Head.Tree.N)
	}
	list, err := l.bundle(n/merkle.Width, l.bundleWidth(n/merkle.Width))
	if err != nil {
		return nil, err
	}
	return list[n%merkle.Width], nil
}

// bundleWidth is how many entries bundle n has.
func (l *Log) bundleWidth(n int64) int { return int(min(merkle.Width, l.Head.Tree.N-n*merkle.Width)) }

// all reads the bytes of every entry, in order. The error ends it.
func (l *Log) all() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for n := int64(0); n*merkle.Width < l.Head.Tree.N; n++ {
			list, err := l.bundle(n, l.bundleWidth(n))
			if err != nil {
				yield(nil, err)
				return
			}
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Find returns the newest entry of the recording id, and its number; e is nil where the log has none.
func (l *Log) Find(id string) (n int64, e *Entry, err error) {
	if n, e, err = l.newest(id); e != nil || err != nil {
		return n, e, err
	}
	return l.search(id)
}

// newest is Find by the index alone.
func (l *Log) newest(id string) (n int64, e *Entry, err error) {
	known, err := l.indexed(id)
	for _, n := range slices.Backward(known) {
		if e, err := l.Entry(n); err == nil && e.ID == id {
			return n, e, nil
		}
	}
	return -1, nil, err
}

// search is Find without the index.
func (l *Log) search(id string) (at int64, e *Entry, err error) {
	quoted := canonjson.AppendString(nil, id)
	n, at := int64(-1), int64(-1)
	for b, err := range l.all() {
		if err != nil {
			return -1, nil, err
		}
		n++
		if !bytes.Contains(b, quoted) {
			continue
		}
		if f, err := ParseEntry(b); err == nil && f.ID == id {
			at, e = n, f
		}
	}
	return at, e, nil
}

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
