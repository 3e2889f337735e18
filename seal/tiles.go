package seal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

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
