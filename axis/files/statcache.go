package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// A statCache remembers the digests of a snapshot's files under their stamps, and the store that holds the contents, so
// that the next snapshot reads only what changed. It is a file of
//
//	magic, store, scrubID, began, count, count × (path, stamp, digest, size, secret, bare), BLAKE3 of all before
//
// where strings are counted and numbers are varints. A file that is damaged, cut or of another version is ignored.
//
// A file written within racyWindow before the snapshot began, or while it ran, may have changed again without a change
// of its stamp. Such entries are not kept, as Git does not trust racily clean entries of its index.
type statCache struct {
	store   string // the directory of the store; "" for none
	scrubID string // what the scrubber looked for: under another a clean file may hold a secret
	began   int64  // when the snapshot began, Unix epoch ns
	entries map[string]cached
}

// A cached is what is known about one regular file.
type cached struct {
	stamp  stamp
	digest cas.Digest // of the stored bytes
	size   int64      // of the stored bytes
	secret string
	// bare says that it has no extended attributes. What they are is not kept: a value may turn out to be a secret.
	bare bool
}

const (
	cacheMagic  = "tapedeck stat cache 2\n"
	maxCacheLen = 1 << 30 // bytes; about five million files

	maxCachedLen = 8*binary.MaxVarintLen64 + cas.Size + 1 // bytes of a file, without what its strings hold
)

var errCache = errors.New("files: damaged stat cache")

// get returns what is known about path where its stamp is the same.
func (c *statCache) get(path string, s stamp) (cached, bool) {
	got, ok := c.entries[path]
	return got, ok && got.stamp == s
}

// loadCache reads the cache at path. One that is missing, damaged or made for another scrubber gives an empty one: a
// cache saves time and decides nothing. The error says that what stands at path is no file that a cache could be read from,
// and should not be written to either; the cache is empty then, too.
func loadCache(path, scrubID string) (*statCache, error) {
	empty := &statCache{}
	if path == "" {
		return empty, nil
	}
	b, err := readCache(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("files: stat cache: %w", err)
	}
	c, err := decodeCache(b)
	if err != nil || c.scrubID != scrubID {
		return empty, nil //nolint:nilerr // the next snapshot replaces it
	}
	return c, nil
}

// readCache reads the file at path, and waits for nobody: whatever holds the library may have put a FIFO there, or a link. One that
// is too long is as damaged.
func readCache(path string) ([]byte, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	b, err := ReadRegular(dir, filepath.Base(path), maxCacheLen)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, nil
	case errors.Is(err, errNotRegular):
		return nil, fmt.Errorf("%s is no regular file: remove it", path)
	}
	return b, err
}

// save replaces the cache at path.
func (c *statCache) save(path string) error {
	return durable.WriteFile(path, c.encode(), nil)
}

// settled reports whether a time lies so long before the snapshot that what has it would have another after a change.
func (c *statCache) settled(t int64) bool { return t < c.began-int64(racyWindow) }

func (c *statCache) encode() []byte {
	b := []byte(cacheMagic)
	b = appendString(b, c.store)
	b = appendString(b, c.scrubID)
	b = binary.AppendVarint(b, c.began)
	paths, size := make([]string, 0, len(c.entries)), 0
	for p, e := range c.entries {
		if c.settled(e.stamp.mtime) {
			paths = append(paths, p)
			size += len(p) + len(e.secret) + maxCachedLen
		}
	}
	slices.Sort(paths)
	b = slices.Grow(b, size)
	b = binary.AppendUvarint(b, uint64(len(paths)))
	for _, p := range paths {
		e := c.entries[p]
		e.bare = e.bare && c.settled(e.stamp.ctime) // attributes change that time alone
		b = e.appendTo(appendString(b, p))
	}
	sum := cas.Sum(b)
	return append(b, sum[:]...)
}

func (e cached) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.stamp.mode))
	b = binary.AppendVarint(b, e.stamp.size)
	b = binary.AppendVarint(b, e.stamp.mtime)
	b = binary.AppendVarint(b, e.stamp.ctime)
	b = binary.AppendUvarint(b, e.stamp.ino)
	b = append(b, e.digest[:]...)
	b = binary.AppendVarint(b, e.size)
	b = appendString(b, e.secret)
	if e.bare {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func decodeCache(b []byte) (*statCache, error) {
	body := len(b) - cas.Size
	if body < len(cacheMagic) || string(b[:len(cacheMagic)]) != cacheMagic {
		return nil, errCache
	}
	if sum := cas.Sum(b[:body]); !bytes.Equal(sum[:], b[body:]) {
		return nil, errCache
	}
	d := &cacheReader{b: b[len(cacheMagic):body]}
	c := &statCache{store: d.str(), scrubID: d.str(), began: d.varint()}
	n := d.uvarint()
	c.entries = make(map[string]cached, min(n, uint64(len(d.b))))
	for range n {
		p := d.str()
		e := d.entry()
		if d.bad {
			return nil, errCache
		}
		c.entries[p] = e
	}
	if d.bad || len(d.b) > 0 {
		return nil, errCache
	}
	return c, nil
}

// A cacheReader takes values off the front of b; bad says that one did not fit.
type cacheReader struct {
	b   []byte
	bad bool
}

func (d *cacheReader) entry() cached {
	var e cached
	e.stamp = stamp{mode: Mode(d.uvarint()), size: d.varint(), mtime: d.varint(), ctime: d.varint(), ino: d.uvarint()}
	copy(e.digest[:], d.take(cas.Size))
	e.size = d.varint()
	e.secret, e.bare = d.str(), d.uvarint() == 1
	return e
}

func (d *cacheReader) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *cacheReader) str() string { return string(d.take(d.uvarint())) }

func (d *cacheReader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	d.skip(n)
	return v
}

func (d *cacheReader) varint() int64 {
	v, n := binary.Varint(d.b)
	d.skip(n)
	return v
}

func (d *cacheReader) skip(n int) {
	if n <= 0 {
		d.bad = true
		return
	}
	d.take(uint64(n))
}
