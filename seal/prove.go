package seal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
	"golang.org/x/mod/sumdb/tlog"
)

// MaxLeaf is how large, in bytes, a leaf may be that is proved.
const MaxLeaf = 128 << 20

// Prove makes a proof of one leaf of the sealed recording in dir, and checks it. It reads the leaf, its payloads and the tiles
// that it needs, not the recording. Where these do not fit the seal it errs with a *Problem; where there is no such leaf, with
// what wraps ErrNoLeaf. Whose seal it is, nobody is asked: VerifyProof does that.
func Prove(ctx context.Context, dir string, o *ProveOptions) (*Proof, error) {
	if o == nil {
		o = &ProveOptions{}
	}
	d, err := ReadDocument(dir)
	if err != nil {
		return nil, err
	}
	p := &prover{inv: &inventory{dir: dir}, doc: d, o: o}
	if err := p.find(ctx); err != nil {
		return nil, err
	}
	out, err := p.proof()
	if err != nil {
		return nil, err
	}
	if o.Payloads {
		if err := p.payloads(out); err != nil {
			return nil, err
		}
	}
	if _, bad := out.verify(&ProofOptions{}, FileName); bad != nil {
		return nil, bad
	}
	if err := out.fits(); err != nil {
		return nil, err
	}
	return out, nil
}

// fits errs for a proof that nobody would read: text grows where it is quoted.
func (p *Proof) fits() error {
	size := len(p.Data)
	for i := range p.Payloads {
		size += len(p.Payloads[i].Bytes)
	}
	const growth = 6 // of a control character
	if size > MaxProof/(2*growth) && len(p.Encode()) > MaxProof {
		return fmt.Errorf("the proof would be larger than %d bytes: prove it without payloads, or payloads one by one", MaxProof)
	}
	return nil
}

// A prover looks for one leaf.
type prover struct {
	inv *inventory
	doc *Document
	o   *ProveOptions

	stream *Stream
	at     int64
	data   []byte
	whole  string // the file or blob that the leaf stands for, "" where it is the bytes themselves
}

func (p *prover) noLeaf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNoLeaf)
}

// find sets stream, at and data.
func (p *prover) find(ctx context.Context) error {
	name := p.o.Path
	if name == "" {
		name = "run" + tapeSuffix
	}
	if p.stream = p.doc.stream(name); p.stream != nil {
		return p.inStream(ctx)
	}
	for i := range p.doc.Files {
		if p.doc.Files[i].Path == name {
			p.stream, p.at, p.whole = p.doc.stream(filesPath), int64(i), name
			p.data = p.doc.Files[i].leaf()
			return nil
		}
	}
	if s := p.doc.stream(path.Dir(name)); s != nil && s.Kind == Blobs {
		p.stream, p.whole = s, name
		return p.blob(ctx, path.Base(name))
	}
	return p.noLeaf("%q: no stream, file or blob of that name", name)
}

// inStream finds a leaf of a stream by number or seq.
func (p *prover) inStream(ctx context.Context) error {
	if p.o.Leaf != nil && (*p.o.Leaf < 0 || *p.o.Leaf >= p.stream.Leaves) {
		return p.noLeaf("leaf %d of %s: it has %d, from 0", *p.o.Leaf, p.stream.Path, p.stream.Leaves)
	}
	switch {
	case p.stream.Kind == Files && p.o.Leaf != nil:
		f := &p.doc.Files[*p.o.Leaf]
		p.at, p.data, p.whole = *p.o.Leaf, f.leaf(), f.Path
		return nil
	case p.stream.Kind == Blobs && p.o.Leaf != nil:
		return p.nthBlob(ctx, *p.o.Leaf)
	case p.o.Leaf == nil && p.stream.Kind != Lines:
		return p.noLeaf("%s: a stream of %s has no seq, name the leaf by its number or the file by its path", p.stream.Path, p.stream.Kind)
	}
	f, err := p.inv.open(p.stream.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	l := &finder{f: f, stream: p.stream, offsets: p.offsets()}
	defer l.offsets.Close()
	if p.stream.Kind == Chunks {
		p.at = *p.o.Leaf
		p.data, err = p.chunk(ctx, f)
		return err
	}
	if p.o.Leaf != nil {
		p.at = *p.o.Leaf
		p.data, err = l.leaf(ctx, p.at)
		return err
	}
	p.at, p.data, err = l.seq(ctx, p.o.Seq)
	return err
}

// offsets opens the section that says where leaves begin; nil where there is none.
func (p *prover) offsets() *os.File {
	f, err := p.inv.open(tilesPath(p.stream.Path, offsetsSection))
	if err != nil {
		return nil
	}
	return f
}

// chunk reads the chunk that is asked for.
func (p *prover) chunk(ctx context.Context, f *os.File) (data []byte, err error) {
	n, at := int64(0), int64(0)
	errFound := errors.New("found")
	_, err = cuts(ctx, p.inv.at(indexOf(p.stream.Path)), func(size int64) error {
		if n++; n <= p.at {
			at += size
			return nil
		}
		if size > MaxLeaf {
			return fmt.Errorf("chunk %d has %d bytes; at most %d are proved", p.at, size, MaxLeaf)
		}
		if data, err = readAtMost(io.NewSectionReader(f, at, size), size); err != nil {
			return err
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		return data, nil
	}
	if err == nil {
		err = problem(CodeChanged, p.stream.Path, "its index %s does not cut it into %d chunks", indexOf(p.stream.Path), p.stream.Leaves)
	}
	return nil, err
}

// names opens the section with the leaves of a stream of blobs.
func (p *prover) names() (*os.File, error) {
	rel := tilesPath(p.stream.Path, namesSection)
	f, err := p.inv.open(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem(CodeTiles, rel, "it is not there")
	}
	return f, err
}

// blob finds the leaf of a blob.
func (p *prover) blob(ctx context.Context, name string) error {
	d, err := cas.Parse(name)
	if err != nil {
		return p.noLeaf("%v", err)
	}
	f, err := p.names()
	if err != nil {
		return err
	}
	defer f.Close()
	want := []byte(d.String() + " ")
	n := int64(0)
	err = eachLine(ctx, f, func(line []byte) (bool, error) {
		if strings.HasPrefix(string(line), string(want)) {
			p.at, p.data = n, bytes.Clone(line)
			return false, nil
		}
		n++
		return true, nil
	})
	if err == nil && p.data == nil {
		err = p.noLeaf("%s: no blob of that name", p.whole)
	}
	return err
}

// nthBlob finds the leaf of the blob at a place.
func (p *prover) nthBlob(ctx context.Context, at int64) error {
	f, err := p.names()
	if err != nil {
		return err
	}
	defer f.Close()
	l := &finder{f: f, stream: p.stream}
	p.at = at
	if p.data, err = l.leaf(ctx, at); err != nil {
		return err
	}
	name, _, _ := strings.Cut(string(p.data), " ")
	if _, err := cas.Parse(name); err != nil {
		return problem(CodeTiles, tilesPath(p.stream.Path, namesSection), "line %d: %v", at+1, err)
	}
	p.whole = p.stream.Path + "/" + name
	return nil
}

// proof puts the paths together.
func (p *prover) proof() (*Proof, error) {
	out := &Proof{ID: p.doc.ID, Key: p.doc.Key, Checkpoint: p.doc.Checkpoint, Stream: *p.stream, Leaf: p.at, Data: p.data}
	tree := tlog.Tree{N: p.stream.Leaves, Hash: p.stream.Root}
	tiles := &tileReader{inv: p.inv, stream: p.stream.Path}
	var err error
	out.LeafPath, err = tlog.ProveRecord(tree.N, p.at, tlog.TileHashReader(tree, tiles))
	var bad *Problem
	if errors.As(err, &bad) {
		return nil, bad
	}
	if err != nil {
		return nil, problem(CodeTiles, tilesPath(p.stream.Path, "0"), "the stored tiles do not lead to the sealed root: %v", err)
	}
	out.StreamAt = int64(slices.IndexFunc(p.doc.Streams, func(s Stream) bool { return s.Path == p.stream.Path }))
	out.StreamPath = merkle.Path(p.doc.streamHashes(), int(out.StreamAt))
	return out, nil
}

// A tileReader reads stored tiles.
type tileReader struct {
	inv    *inventory
	stream string
}

// Height implements tlog.TileReader.
func (*tileReader) Height() int { return merkle.Height }

// SaveTiles implements tlog.TileReader.
func (*tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles implements tlog.TileReader.
func (t *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	out := make([][]byte, len(tiles))
	for i, tile := range tiles {
		rel := tilesPath(t.stream, strconv.Itoa(tile.L))
		f, err := t.inv.open(rel)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, problem(CodeTiles, rel, "it is not there")
		}
		if err != nil {
			return nil, err
		}
		out[i] = make([]byte, tile.W*tlog.HashSize)
		_, err = f.ReadAt(out[i], tile.N*merkle.TileBytes)
		f.Close()
		if err != nil {
			return nil, problem(CodeTiles, rel, "tile %d, from byte %d, cannot be read: %v", tile.N, tile.N*merkle.TileBytes, err)
		}
	}
	return out, nil
}

// payloads reads what the leaf names.
func (p *prover) payloads(out *Proof) error {
	if p.whole != "" {
		return p.payload(out, p.whole)
	}
	if p.stream.Kind != Lines {
		return nil
	}
	store := p.stream.Path + storeSuffix
	if p.doc.stream(store) == nil {
		store = "run" + tapeSuffix + storeSuffix
	}
	for _, d := range digestsIn(out.Data) {
		err := p.payload(out, store+"/"+d.String())
		if errors.Is(err, fs.ErrNotExist) {
			continue // a digest of something else; VerifyProof's caller sees what is there
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *prover) payload(out *Proof, rel string) error {
	f, err := p.inv.open(rel)
	if err != nil {
		return err
	}
	defer f.Close()
	room := int64(MaxProof/2) - int64(len(out.Data))
	for i := range out.Payloads {
		room -= int64(len(out.Payloads[i].Bytes))
	}
	b, err := readAtMost(f, max(room, 0)+1)
	if err != nil {
		return err
	}
	if int64(len(b)) > room {
		return fmt.Errorf("%s: with it the proof would be larger than %d bytes: prove it without payloads", filepath.Join(p.inv.dir, rel), MaxProof)
	}
	out.Payloads = append(out.Payloads, Payload{Digest: cas.Sum(b), Bytes: b})
	return nil
}

// digestsIn lists the digests that stand as the whole of a string in a line, each once, in order.
func digestsIn(line []byte) []cas.Digest {
	var all []cas.Digest
	seen := map[cas.Digest]bool{}
	const n = 2 * cas.Size
	for i := 0; i+n+1 < len(line); i++ {
		if line[i] != '"' || line[i+n+1] != '"' {
			continue
		}
		if d, err := cas.Parse(string(line[i+1 : i+1+n])); err == nil && !seen[d] {
			seen[d] = true
			all = append(all, d)
		}
	}
	return all
}

// seqOf returns the "seq" of a line.
func seqOf(s *jsonscan.Scanner, line []byte) (uint64, bool) {
	s.Reset(line)
	for s.Begin('{'); s.More('}'); s.Skip() {
		if string(s.Key()) == "seq" {
			return s.Uint(), s.Err() == nil
		}
	}
	return 0, false
}

// A finder finds a line of a file, by the places of every 256th that seal.tiles holds where there are such, else from the
// beginning. What it finds is believed by nobody: the paths of the proof show whether it is the leaf.
type finder struct {
	f       *os.File
	stream  *Stream
	offsets *os.File // nil where there is none
	json    jsonscan.Scanner
}

// begin returns where the leaf at 256·n begins, -1 where that is not known.
func (l *finder) begin(n int64) int64 {
	var b [8]byte
	if n == 0 {
		return 0
	}
	if l.offsets == nil {
		return -1
	}
	if _, err := l.offsets.ReadAt(b[:], 8*n); err != nil {
		return -1
	}
	at := int64(binary.BigEndian.Uint64(b[:]))
	if at < 0 || at > l.stream.Bytes {
		return -1
	}
	return at
}

// leaf returns the line at a place.
func (l *finder) leaf(ctx context.Context, at int64) ([]byte, error) {
	from := at / merkle.Width
	begin := l.begin(from)
	if begin < 0 {
		from, begin = 0, 0
	}
	n := from * merkle.Width
	var out []byte
	err := eachLine(ctx, io.NewSectionReader(l.f, begin, 1<<62), func(line []byte) (bool, error) {
		if n == at {
			out = bytes.Clone(line)
			return false, nil
		}
		n++
		return true, nil
	})
	if err == nil && out == nil {
		err = problem(CodeCut, l.stream.Path, "it has %d lines, expected %d", n, l.stream.Leaves)
	}
	return out, err
}

// seq returns the first line with a seq. It is looked for where it stands in a tape, whose header is leaf 0, and in a log of events
// that begins with 0; else all lines are read.
func (l *finder) seq(ctx context.Context, seq uint64) (at int64, line []byte, err error) {
	for at := int64(min(seq, 1<<62)) + 1; at >= int64(min(seq, 1<<62)); at-- {
		if at >= l.stream.Leaves {
			continue
		}
		line, err := l.leaf(ctx, at)
		if err != nil {
			return 0, nil, err
		}
		if got, ok := seqOf(&l.json, line); ok && got == seq {
			return at, line, nil
		}
	}
	err = eachLine(ctx, io.NewSectionReader(l.f, 0, 1<<62), func(b []byte) (bool, error) {
		if got, ok := seqOf(&l.json, b); ok && got == seq {
			line = bytes.Clone(b)
			return false, nil
		}
		at++
		return true, nil
	})
	if err == nil && line == nil {
		err = fmt.Errorf("seq %d of %s: %w", seq, l.stream.Path, ErrNoLeaf)
	}
	return at, line, err
}

// eachLine gives the lines of r, each with its end, until more is false. A line over MaxLeaf is an error.
func eachLine(ctx context.Context, r io.Reader, line func(b []byte) (more bool, err error)) error {
	br := bufio.NewReaderSize(r, 16<<10)
	var buf []byte
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		b, err := br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			buf = append(buf[:0], b...)
			for errors.Is(err, bufio.ErrBufferFull) && len(buf) <= MaxLeaf {
				b, err = br.ReadSlice('\n')
				buf = append(buf, b...)
			}
			b = buf
		}
		if len(b) > MaxLeaf {
			return fmt.Errorf("a line is longer than %d bytes, which is the most that is proved", MaxLeaf)
		}
		if len(b) > 0 {
			if more, err := line(b); err != nil || !more {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
