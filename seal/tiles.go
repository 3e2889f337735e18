package seal

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"
)

// The shape of tiles, C2SP tlog-tiles: 256 hashes wide.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
	tileBytes  = tileWidth * tlog.HashSize
)

// A tree takes leaves one by one and keeps of its hashes the right edge alone: of each level of tiles the last one, while it
// is partial. Its zero value is empty and works.
type tree struct {
	n     int64
	edge  [][]byte                           // by level
	store func(level int, tile []byte) error // is given each tile when it is full, and the partial ones at the end; may be nil
}

// recordHash is the hash of a leaf.
func recordHash(b []byte) tlog.Hash {
	if len(b) < 512 {
		var buf [513]byte
		return sha256.Sum256(append(buf[:1], b...))
	}
	return tlog.RecordHash(b)
}

// add appends a leaf.
func (t *tree) add(h tlog.Hash) error {
	t.n++
	for level := 0; ; level++ {
		if level == len(t.edge) {
			t.edge = append(t.edge, make([]byte, 0, tileBytes))
		}
		t.edge[level] = append(t.edge[level], h[:]...)
		tile := t.edge[level]
		if len(tile) < tileBytes {
			return nil
		}
		if t.store != nil {
			if err := t.store(level, tile); err != nil {
				return err
			}
		}
		h = tileRoot(tile)
		t.edge[level] = tile[:0]
	}
}

// tileRoot is the hash over a full tile, which is overwritten.
func tileRoot(tile []byte) tlog.Hash {
	var node [1 + 2*tlog.HashSize]byte
	node[0] = 1
	for n := len(tile); n > tlog.HashSize; n /= 2 {
		for i := 0; i < n; i += 2 * tlog.HashSize {
			copy(node[1:], tile[i:i+2*tlog.HashSize])
			h := sha256.Sum256(node[:])
			copy(tile[i/2:], h[:])
		}
	}
	return tlog.Hash(tile[:tlog.HashSize])
}

// root returns the root over all leaves so far.
func (t *tree) root() (tlog.Hash, error) { return tlog.TreeHash(t.n, tlog.HashReaderFunc(t.read)) }

// read gives the hashes of the right edge.
func (t *tree) read(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		tile := tlog.TileForIndex(tileHeight, x)
		if tile.L >= len(t.edge) || tile.N != t.n>>(tileHeight*(tile.L+1)) {
			return nil, fmt.Errorf("hash %d is not at the edge of a tree of %d leaves", x, t.n)
		}
		tile.W = len(t.edge[tile.L]) / tlog.HashSize
		h, err := tlog.HashFromTile(tile, t.edge[tile.L], x)
		if err != nil {
			return nil, err
		}
		out[i] = h
	}
	return out, nil
}

// finish stores the partial tiles and returns the root.
func (t *tree) finish() (tlog.Hash, error) {
	for level, tile := range t.edge {
		if len(tile) == 0 || t.store == nil {
			continue
		}
		if err := t.store(level, tile); err != nil {
			return tlog.Hash{}, err
		}
	}
	return t.root()
}

// rootTree is the tree over the streams.
func (d *Document) rootTree() (tlog.Tree, error) {
	var t tree
	for i := range d.Streams {
		if err := t.add(recordHash(d.Streams[i].leaf())); err != nil {
			return tlog.Tree{}, err
		}
	}
	root, err := t.root()
	return tlog.Tree{N: t.n, Hash: root}, err
}

// The sections of seal.tiles that are no level.
const (
	offsetsSection = "offsets"
	namesSection   = "names"
)

// tilesPath is where a section of a stream lies, relative to the recording. It ends in no name that packed forms or stores
// know, such as one below a directory of blobs would.
func tilesPath(stream, section string) string {
	if stream == filesPath {
		stream = "files"
	}
	return TilesName + "/" + stream + "." + section
}

// sections are those that a stream must have.
func (s *Stream) sections() []string {
	var all []string
	for level, n := 0, s.Leaves; n > 0; level, n = level+1, n>>tileHeight {
		all = append(all, strconv.Itoa(level))
	}
	switch {
	case s.Leaves == 0:
	case s.Kind == Lines, s.Kind == Chunks:
		all = append(all, offsetsSection)
	case s.Kind == Blobs:
		all = append(all, namesSection)
	}
	return all
}

// A section takes bytes for one file of seal.tiles, in order.
type section func(name string, b []byte) error

// gather takes the leaves of a stream, and gives what belongs into seal.tiles to out.
type gather struct {
	stream Stream
	tree   tree
	out    section
	offset [8]byte
}

func newGather(s *source, out section) *gather {
	g := &gather{stream: Stream{Path: s.path, Kind: s.kind}, out: out}
	g.tree.store = func(level int, tile []byte) error { return out(strconv.Itoa(level), tile) }
	return g
}

func (g *gather) leaf(l leaf) error {
	switch g.stream.Kind {
	case Lines, Chunks:
		if g.tree.n%tileWidth == 0 {
			binary.BigEndian.PutUint64(g.offset[:], uint64(g.stream.Bytes))
			if err := g.out(offsetsSection, g.offset[:]); err != nil {
				return err
			}
		}
	case Blobs:
		if err := g.out(namesSection, l.text); err != nil {
			return err
		}
	}
	g.stream.Bytes += l.size
	return g.tree.add(l.hash)
}

// finish returns the stream.
func (g *gather) finish() (Stream, error) {
	root, err := g.tree.finish()
	g.stream.Leaves, g.stream.Root = g.tree.n, root
	return g.stream, err
}

// A tileWriter writes the sections of one stream into dir.
type tileWriter struct {
	dir    string // that stands for the recording's
	stream string
	sync   bool
	open   map[string]*tileFile
}

type tileFile struct {
	f *os.File
	w *bufio.Writer
}

func (t *tileWriter) write(name string, b []byte) error {
	f := t.open[name]
	if f == nil {
		path := filepath.Join(t.dir, filepath.FromSlash(tilesPath(t.stream, name)))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		f = &tileFile{file, bufio.NewWriterSize(file, 2*tileBytes)}
		t.open[name] = f
	}
	_, err := f.w.Write(b)
	return err
}

// close brings everything to its file.
func (t *tileWriter) close() error {
	var errs []error
	for _, f := range t.open {
		errs = append(errs, f.w.Flush())
		if t.sync {
			errs = append(errs, f.f.Sync())
		}
		errs = append(errs, f.f.Close())
	}
	return errors.Join(errs...)
}

// A tileChecker holds the sections of one stream, as they are computed, against what lies in seal.tiles.
type tileChecker struct {
	inv      *inventory
	stream   string
	open     map[string]*checked
	problems []Problem
	buf      []byte
}

type checked struct {
	f  *os.File
	r  *bufio.Reader
	at int64 // bytes compared
	ok bool  // so far
}

// check compares the next bytes of a section.
func (c *tileChecker) check(name string, b []byte) error {
	s := c.section(name)
	if !s.ok {
		return nil
	}
	c.buf = append(c.buf[:0], b...) // as large as it must be
	n, err := io.ReadFull(s.r, c.buf)
	if i := firstDifference(c.buf[:n], b); i < len(b) {
		s.ok = false
		what := "differs from what the recording gives"
		if i == n && err != nil {
			what = "ends too early: " + err.Error()
		}
		c.problems = append(c.problems, *problem(CodeTiles, tilesPath(c.stream, name), "byte %d: it %s", s.at+int64(i), what))
	}
	s.at += int64(len(b))
	return nil
}

func (c *tileChecker) section(name string) *checked {
	if s := c.open[name]; s != nil {
		return s
	}
	if c.open == nil {
		c.open = map[string]*checked{}
	}
	s := &checked{}
	c.open[name] = s
	rel := tilesPath(c.stream, name)
	f, err := c.inv.open(rel)
	var p *Problem
	switch {
	case err == nil:
		s.f, s.r, s.ok = f, bufio.NewReaderSize(f, tileBytes), true
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &p): // tileNames and the inventory tell
	default:
		c.problems = append(c.problems, *problem(CodeTiles, rel, "it cannot be read: %v", err))
	}
	return s
}

// finish looks for what stands behind the end.
func (c *tileChecker) finish(stream *Stream) {
	for _, name := range stream.sections() {
		s := c.open[name]
		if s == nil || !s.ok {
			continue
		}
		if rest, err := s.r.Peek(1); err == nil && len(rest) > 0 {
			c.problems = append(c.problems, *problem(CodeTiles, tilesPath(c.stream, name), "byte %d: something stands behind its end", s.at))
		}
	}
}

func (c *tileChecker) close() {
	for _, s := range c.open {
		if s.f != nil {
			s.f.Close()
		}
	}
}

// readAtMost reads what r gives, up to limit bytes.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit))
}
