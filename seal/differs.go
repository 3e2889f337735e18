package seal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
	"golang.org/x/mod/sumdb/tlog"
)

// How much is told and held of one stream that differs.
const (
	maxTold   = 10      // leaves
	maxWindow = 1 << 16 // hashes behind the first leaf that differs
)

// differs says where a stream is not what was sealed, by the stored hashes of its leaves: they are believed where they lead to
// the root that was signed.
func (v *verifier) differs(ctx context.Context, s *source, sealed, got *Stream) error {
	d := &difference{v: v, s: s, sealed: sealed, got: got}
	defer d.close()
	if p := d.authenticate(); p != nil {
		v.add(d.problem(CodeChanged, -1, "it is not what was sealed: %s of %d bytes, expected %s of %d; where, only %s could tell: %s",
			count(got.Leaves, s.kind), got.Bytes, count(sealed.Leaves, s.kind), sealed.Bytes, p.Path, p.Message))
		return nil
	}
	if s.kind == Blobs {
		return d.blobs(ctx)
	}
	if err := d.read(ctx); err != nil {
		return v.unread(s, err)
	}
	d.tell()
	return nil
}

// A difference looks for where a stream and its seal part.
type difference struct {
	v           *verifier
	s           *source
	sealed, got *Stream

	stored *os.File // the sealed hashes of leaves
	at     int64    // the first leaf that differs; the smaller number of leaves where none does
	differ bool
	more   []int64     // leaves that differ from that of the same number, from at on
	window []tlog.Hash // of what lies there, from at on
}

func (d *difference) close() {
	if d.stored != nil {
		d.stored.Close()
	}
}

// problem makes one about a leaf, which -1 stands for none of.
func (d *difference) problem(code Code, at int64, format string, args ...any) *Problem {
	p := problem(code, d.s.path, format, args...)
	p.Leaf = at
	if at >= 0 && d.s.kind == Lines {
		p.Line = at + 1
	}
	return p
}

// authenticate opens the stored hashes and holds them against the sealed root.
func (d *difference) authenticate() *Problem {
	rel := tilesPath(d.s.path, "0")
	if d.sealed.Leaves == 0 {
		return nil
	}
	f, err := d.v.inv.open(rel)
	if err != nil {
		return problem(CodeTiles, rel, "%v", err)
	}
	d.stored = f
	var t merkle.Tree
	for h, err := range hashesFrom(f, 0, d.sealed.Leaves) {
		if err != nil {
			return problem(CodeTiles, rel, "%v", err)
		}
		if err := t.Add(h); err != nil {
			return problem(CodeTiles, rel, "%v", err)
		}
	}
	if t.Root() != d.sealed.Root {
		return problem(CodeTiles, rel, "its hashes do not lead to the sealed root")
	}
	return nil
}

// hashesFrom gives the hashes that are stored from one on up to another.
func hashesFrom(f io.ReaderAt, from, to int64) func(func(tlog.Hash, error) bool) {
	return func(yield func(tlog.Hash, error) bool) {
		r := bufio.NewReaderSize(io.NewSectionReader(f, from*tlog.HashSize, (to-from)*tlog.HashSize), 64<<10)
		for n := from; n < to; n++ {
			var h tlog.Hash
			_, err := io.ReadFull(r, h[:])
			if !yield(h, err) || err != nil {
				return
			}
		}
	}
}

// read goes through the stream once more, beside the stored hashes.
func (d *difference) read(ctx context.Context) error {
	var stored io.Reader = strings.NewReader("")
	if d.stored != nil {
		stored = bufio.NewReaderSize(io.NewSectionReader(d.stored, 0, d.sealed.Leaves*tlog.HashSize), 64<<10)
	}
	r := &reading{inv: d.v.inv, found: func(*Problem) error { return nil }}
	n := int64(0)
	err := r.stream(ctx, d.s, func(l leaf) error {
		var h tlog.Hash
		if n < d.sealed.Leaves {
			if _, err := io.ReadFull(stored, h[:]); err != nil {
				return err
			}
			if h != l.hash && len(d.more) < maxTold {
				d.more = append(d.more, n)
			}
			if h != l.hash && !d.differ {
				d.differ, d.at = true, n
			}
		}
		if d.differ && len(d.window) < maxWindow {
			d.window = append(d.window, l.hash)
		}
		n++
		return nil
	})
	if !d.differ {
		d.at = min(n, d.sealed.Leaves)
	}
	return err
}

// tell says what happened to the leaves.
func (d *difference) tell() {
	have, want := d.got.Leaves, d.sealed.Leaves
	switch {
	case !d.differ && have < want:
		d.v.add(d.problem(CodeCut, have, "it ends here, %s short of %d", count(want-have, d.s.kind), want))
		return
	case !d.differ && have > want:
		d.v.add(d.problem(CodeAdded, want, "behind the %d that were sealed: %s more", want, count(have-want, d.s.kind)))
		return
	case !d.differ:
		d.v.add(d.problem(CodeChanged, -1, "it changed while it was read"))
		return
	}
	there, here := d.sealedAt(d.window[0]), d.windowAt()
	switch {
	case there >= 0 && here >= 0:
		d.v.add(d.problem(CodeReordered, d.at, "here stands the %s that was sealed as number %d, and number %d stands as number %d now", one(d.s.kind),
			there+1, d.at+1, here+1))
	case there >= 0:
		d.v.add(d.problem(CodeRemoved, d.at, "missing here: %s, sealed as %s", count(there-d.at, d.s.kind), numbers(d.at+1, there)))
	case here >= 0:
		d.v.add(d.problem(CodeAdded, d.at, "put in here: %s", count(here-d.at, d.s.kind)))
	case have < want && d.at == have-1:
		d.v.add(d.problem(CodeCut, d.at, "it is not what was sealed, and it ends here, %s short of %d", count(want-have, d.s.kind), want))
	default:
		d.changed()
	}
}

// changed names the leaves that are others than those that were sealed.
func (d *difference) changed() {
	if d.got.Leaves != d.sealed.Leaves {
		d.v.add(d.problem(CodeChanged, d.at, "from here on it is not what was sealed; it has %s, expected %d", count(d.got.Leaves, d.s.kind), d.sealed.Leaves))
		return
	}
	for i, n := range d.more {
		if i == maxTold-1 {
			d.v.add(d.problem(CodeChanged, n, "it is not what was sealed; others behind it may not be, either"))
			return
		}
		d.v.add(d.problem(CodeChanged, n, "it is not what was sealed"))
	}
}

// sealedAt returns where behind the first difference a hash was sealed, -1 where nowhere.
func (d *difference) sealedAt(h tlog.Hash) int64 {
	n := d.at + 1
	for stored, err := range hashesFrom(d.stored, n, d.sealed.Leaves) {
		if err != nil {
			return -1
		}
		if stored == h {
			return n
		}
		n++
	}
	return -1
}

// windowAt returns where behind the first difference the leaf stands that was sealed there, -1 where it is not near.
func (d *difference) windowAt() int64 {
	sealed, ok := d.hash(d.at)
	if !ok {
		return -1
	}
	if i := slices.Index(d.window[1:], sealed); i >= 0 {
		return d.at + 1 + int64(i)
	}
	return -1
}

// blobs names the blobs that came and went. The list of names in seal.tiles is believed where it gives the stored hashes.
func (d *difference) blobs(ctx context.Context) error {
	rel := tilesPath(d.s.path, namesSection)
	names, err := d.v.inv.open(rel)
	if err != nil && d.sealed.Leaves > 0 {
		d.v.add(d.problem(CodeChanged, -1, "it has %s, expected %d; which, only %s could tell: %v", count(d.got.Leaves, Blobs), d.sealed.Leaves, rel, err))
		return nil
	}
	rest := d.s.blobs
	if err == nil {
		defer names.Close()
		n := int64(0)
		err = eachLine(ctx, names, func(line []byte) (bool, error) {
			b, ok := parseBlob(line)
			if !ok || n >= d.sealed.Leaves || !d.is(n, recordHash(line)) {
				return false, problem(CodeTiles, rel, "line %d: it is not what was sealed, so that nothing tells which blobs changed", n+1)
			}
			rest = d.blob(n, &b, rest)
			n++
			return true, nil
		})
		if err == nil && n < d.sealed.Leaves {
			err = problem(CodeTiles, rel, "it ends after %d lines, expected %d", n, d.sealed.Leaves)
		}
	}
	var p *Problem
	if errors.As(err, &p) {
		d.v.add(d.problem(CodeChanged, -1, "it has %s, expected %d", count(d.got.Leaves, Blobs), d.sealed.Leaves))
		d.v.add(p)
		return nil
	}
	for i := range rest {
		d.unlisted(&rest[i])
	}
	return err
}

// is reports whether a leaf was sealed at a place.
func (d *difference) is(n int64, h tlog.Hash) bool {
	stored, ok := d.hash(n)
	return ok && stored == h
}

// hash returns the hash that was sealed at a place.
func (d *difference) hash(n int64) (h tlog.Hash, ok bool) {
	if n >= d.sealed.Leaves {
		return h, false
	}
	_, err := d.stored.ReadAt(h[:], n*tlog.HashSize)
	return h, err == nil
}

// blob holds what lies there, from the place of one sealed blob on, against it, and returns what lies behind it.
func (d *difference) blob(n int64, sealed *blob, rest []blob) []blob {
	for len(rest) > 0 && bytes.Compare(rest[0].digest[:], sealed.digest[:]) < 0 {
		d.unlisted(&rest[0])
		rest = rest[1:]
	}
	path := d.s.path + "/" + sealed.digest.String()
	if len(rest) == 0 || rest[0].digest != sealed.digest {
		if d.v.odd(path) {
			return rest
		}
		p := problem(CodeMissing, path, "it was sealed, and is not there")
		p.Leaf = n
		d.v.add(p)
		return rest
	}
	if rest[0].size != sealed.size && !d.v.blobs[path] {
		p := problem(CodeChanged, path, "it has %d bytes, expected %d", rest[0].size, sealed.size)
		p.Leaf = n
		d.v.add(p)
	}
	return rest[1:]
}

func (d *difference) unlisted(b *blob) {
	d.v.add(problem(CodeUnlisted, d.s.path+"/"+b.digest.String(), "it was not sealed"))
}

// parseBlob reads a leaf of a stream of blobs.
func parseBlob(line []byte) (blob, bool) {
	name, size, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
	digest, err := cas.Parse(name)
	n, errSize := strconv.ParseInt(size, 10, 64)
	b := blob{digest, n}
	return b, err == nil && errSize == nil && n >= 0 && bytes.Equal(b.leaf(), line)
}

// one and count name leaves for people.
func one(k Kind) string {
	switch k {
	case Lines:
		return "line"
	case Chunks:
		return "chunk"
	case Blobs:
		return "blob"
	}
	return "file"
}

// numbers names what stands from place a to b, both from 1.
func numbers(a, b int64) string {
	if a == b {
		return fmt.Sprintf("number %d", a)
	}
	return fmt.Sprintf("numbers %d to %d", a, b)
}

func count(n int64, k Kind) string {
	if n == 1 {
		return "1 " + one(k)
	}
	return fmt.Sprintf("%d %ss", n, one(k))
}
