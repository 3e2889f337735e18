package seal

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
	"golang.org/x/mod/sumdb/tlog"
)

// recordHash is the hash of a leaf.
func recordHash(b []byte) tlog.Hash {
	if len(b) < 512 {
		var buf [513]byte
		return sha256.Sum256(append(buf[:1], b...))
	}
	return tlog.RecordHash(b)
}

// rootTree is the tree over the streams.
func (d *Document) rootTree() tlog.Tree {
	return tlog.Tree{N: int64(len(d.Streams)), Hash: merkle.Root(d.streamHashes())}
}

// streamHashes are its leaves.
func (d *Document) streamHashes() []tlog.Hash {
	out := make([]tlog.Hash, len(d.Streams))
	for i := range d.Streams {
		out[i] = recordHash(d.Streams[i].leaf())
	}
	return out
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
	for level, n := 0, s.Leaves; n > 0; level, n = level+1, n>>merkle.Height {
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
	tree   merkle.Tree
	out    section
	offset [8]byte
}

func newGather(s *source, out section) *gather {
	g := &gather{stream: Stream{Path: s.path, Kind: s.kind}, out: out}
	g.tree.Full = func(level int, _ int64, tile []tlog.Hash) error { return out(strconv.Itoa(level), merkle.Join(tile)) }
	return g
}

func (g *gather) leaf(l leaf) error {
	switch g.stream.Kind {
	case Lines, Chunks:
		if g.tree.N%merkle.Width == 0 {
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
	return g.tree.Add(l.hash)
}

// finish gives out the partial tiles, and returns the stream.
func (g *gather) finish() (Stream, error) {
	g.stream.Leaves, g.stream.Root = g.tree.N, g.tree.Root()
	for level, tile := range g.tree.Levels {
		if len(tile) == 0 {
			continue
		}
		if err := g.tree.Full(level, 0, tile); err != nil {
			return g.stream, err
		}
	}
	return g.stream, nil
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
		f = &tileFile{file, bufio.NewWriterSize(file, 2*merkle.TileBytes)}
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
		s.f, s.r, s.ok = f, bufio.NewReaderSize(f, merkle.TileBytes), true
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
