package seal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// Verify reads every byte of the recording in dir and holds it against its seal. The error is that of what could not be looked at,
// and ErrNoSeal where there is no seal.json; what does not hold is in the result, the seal's own problems first.
func Verify(ctx context.Context, dir string, o *VerifyOptions) (*Result, error) {
	if o == nil {
		o = &VerifyOptions{}
	}
	v := &verifier{o: o, r: &Result{Problems: []Problem{}}}
	b, p, err := readOwn(dir)
	if err != nil {
		return nil, err
	}
	if p == nil {
		v.doc, p = parseDocument(b, FileName)
	}
	if p != nil {
		v.add(p)
		return v.r, nil
	}
	v.r.Document = v.doc
	if err := v.signatures(); err != nil {
		return nil, err
	}
	if v.inv, err = take(ctx, dir); err != nil {
		return nil, err
	}
	return v.r, v.recording(ctx)
}

// readOwn reads seal.json. The problem is that of one that nobody should read.
func readOwn(dir string) ([]byte, *Problem, error) {
	name := filepath.Join(dir, FileName)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(dir); err != nil {
			return nil, nil, err
		}
		return nil, nil, fmt.Errorf("%s: %w", dir, ErrNoSeal)
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, problem(CodeNotRegular, FileName, "it is %s, expected a regular file", regular.Kind(info.Mode())), nil
	case info.Size() > MaxSeal:
		return nil, problem(CodeTooLarge, FileName, "it has %d bytes, expected %d at most", info.Size(), MaxSeal), nil
	}
	f, err := openNoFollow(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	b, err := readAtMost(f, MaxSeal+1)
	return b, nil, err
}

// ReadDocument reads the seal of the recording in dir, without verifying more than its form. The error is ErrNoSeal, a
// *Problem, or the file system's.
func ReadDocument(dir string) (*Document, error) {
	b, p, err := readOwn(dir)
	switch {
	case err != nil:
		return nil, err
	case p != nil:
		return nil, p
	}
	return ParseDocument(b)
}

// A verifier holds one recording against its seal.
type verifier struct {
	o     *VerifyOptions
	r     *Result
	doc   *Document
	inv   *inventory
	read  *reading
	blobs map[string]bool // paths of blobs that a problem was told of
}

// maxProblems is how many problems are told of: who changed everything need not be told of each.
const maxProblems = 1000

func (v *verifier) add(p *Problem) {
	if len(v.r.Problems) == maxProblems {
		v.r.Omitted++
		return
	}
	v.r.Problems = append(v.r.Problems, *p)
}

func (v *verifier) addAll(ps []Problem) {
	for i := range ps {
		v.add(&ps[i])
	}
}

// signatures checks who signed.
func (v *verifier) signatures() error {
	c, err := parseCheckpoint(v.doc.Checkpoint)
	if err != nil {
		return err // check has read it
	}
	j := c.judge(FileName, v.doc.Key, v.o.Keys, v.o.Witnesses)
	v.r.Signer, v.r.SignerKnown, v.r.Cosignatures, v.r.Unknown = j.signer, j.known, j.cosigned, j.unknown
	v.addAll(j.problems)
	if v.o.ID != "" && v.o.ID != v.doc.ID {
		v.add(problem(CodeID, FileName, "it seals recording %q, expected %q", v.doc.ID, v.o.ID))
	}
	return nil
}

// recording checks every file.
func (v *verifier) recording(ctx context.Context) error {
	if id, err := v.inv.manifestID(); err == nil && id != v.doc.ID {
		v.add(problem(CodeID, manifest, "it is of recording %q, the seal of %q", id, v.doc.ID))
	}
	v.addAll(v.inv.odd)
	v.blobs = map[string]bool{}
	v.read = &reading{inv: v.inv, progress: v.o.Progress, holds: v.o.Blob}
	v.read.found = func(p *Problem) error {
		v.blobs[p.Path] = true
		v.add(p)
		return nil
	}
	v.missing()
	for _, s := range v.inv.sources {
		if err := v.source(ctx, s); err != nil {
			return err
		}
	}
	v.tileNames()
	v.read.finish()
	return ctx.Err()
}

// missing names the streams and files that are not there.
func (v *verifier) missing() {
	for i := range v.doc.Streams {
		s := &v.doc.Streams[i]
		if s.Path == filesPath || v.has(s.Path) {
			continue
		}
		v.absent(s.Path)
	}
	for i := range v.doc.Files {
		if !v.has(v.doc.Files[i].Path) {
			v.absent(v.doc.Files[i].Path)
		}
	}
}

// has reports whether something lies at a path: a file, a directory with blobs, or what cannot be sealed (which is told).
func (v *verifier) has(p string) bool {
	return v.inv.source(p) != nil || v.inv.file(p) || v.odd(p)
}

// odd reports whether something that is no file lies at a path, which was told.
func (v *verifier) odd(p string) bool {
	return slices.ContainsFunc(v.inv.odd, func(o Problem) bool { return o.Path == p })
}

// file reports whether a file of the stream of files lies there.
func (inv *inventory) file(p string) bool {
	s := inv.source(filesPath)
	if s == nil {
		return false
	}
	_, ok := slices.BinarySearchFunc(s.files, p, func(f File, p string) int { return strings.Compare(f.Path, p) })
	return ok
}

// absent tells of a path that was sealed and is not there.
func (v *verifier) absent(p string) {
	for _, s := range v.inv.sources {
		other := ""
		if strings.EqualFold(s.path, p) {
			other = s.path
		}
		for i := range s.files {
			if strings.EqualFold(s.files[i].Path, p) {
				other = s.files[i].Path
			}
		}
		if other != "" {
			v.add(problem(CodeName, p, "it was sealed under this name, and is there as %q", other))
			return
		}
	}
	v.add(problem(CodeMissing, p, "it was sealed, and is not there"))
}

// source checks one stream of what lies there.
func (v *verifier) source(ctx context.Context, s *source) error {
	if s.kind == Files {
		return v.files(ctx, s)
	}
	sealed := v.doc.stream(s.path)
	if sealed == nil && v.doc.file(s.path) != nil {
		v.add(problem(CodeChanged, s.path, "it was sealed as a whole file; its index %s cuts it into chunks now", indexOf(s.path)))
		return nil
	}
	if sealed == nil {
		v.unlisted(s)
		return nil
	}
	if sealed.Kind != s.kind {
		v.add(problem(CodeChanged, s.path, "it was sealed as %s, and is %s", sealed.Kind, s.kind))
		return nil
	}
	got, err := v.compute(ctx, s, sealed)
	if err != nil || got == nil || *got == *sealed {
		return err
	}
	return v.differs(ctx, s, sealed, got)
}

// compute returns what a stream is now, and tells what its tiles have else where that is what was sealed; nil where it cannot be read.
func (v *verifier) compute(ctx context.Context, s *source, sealed *Stream) (*Stream, error) {
	c := &tileChecker{inv: v.inv, stream: s.path}
	defer c.close()
	g := newGather(s, c.check)
	if err := v.read.stream(ctx, s, g.leaf); err != nil {
		return nil, v.unread(s, err)
	}
	got, err := g.finish()
	if err != nil {
		return nil, err
	}
	v.r.Leaves += got.Leaves
	v.r.Bytes += got.Bytes
	if sealed != nil && got == *sealed {
		c.finish(sealed)
		v.addAll(c.problems)
	}
	return &got, nil
}

// unread tells of a stream that could not be read to its end.
func (v *verifier) unread(s *source, err error) error {
	var p *Problem
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &p):
		v.add(p)
	default:
		v.add(problem(CodeUnreadable, s.path, "%v", err))
	}
	return nil
}

// unlisted tells of a stream that was not sealed.
func (v *verifier) unlisted(s *source) {
	if s.kind != Blobs {
		v.add(problem(CodeUnlisted, s.path, "it was not sealed"))
		return
	}
	for i := range s.blobs {
		v.add(problem(CodeUnlisted, s.path+"/"+s.blobs[i].digest.String(), "it was not sealed"))
	}
}

// file returns what was sealed as a file, nil where nothing was.
func (d *Document) file(p string) *File {
	i, ok := slices.BinarySearchFunc(d.Files, p, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return nil
	}
	return &d.Files[i]
}

// files checks the files that are no stream of their own.
func (v *verifier) files(ctx context.Context, s *source) error {
	if got, err := v.compute(ctx, s, v.doc.stream(filesPath)); err != nil || got == nil {
		return err
	}
	for i := range s.files {
		v.file(&s.files[i])
	}
	return nil
}

// file checks one file.
func (v *verifier) file(f *File) {
	sealed := v.doc.file(f.Path)
	switch {
	case v.blobs[f.Path]: // it could not be read
	case sealed == nil && v.doc.stream(f.Path) != nil:
		v.add(problem(CodeChanged, f.Path, "it was sealed in chunks, and its index %s does not cut it any more", indexOf(f.Path)))
	case sealed == nil && strings.HasPrefix(path.Base(f.Path), ".tmp-"):
		v.add(problem(CodeUnlisted, f.Path, "it was not sealed: a temporary file of a writer that runs or was killed, by its name"))
	case sealed == nil:
		v.add(problem(CodeUnlisted, f.Path, "it was not sealed"))
	case *sealed != *f:
		p := problem(CodeChanged, f.Path, "its bytes are not those that were sealed: %d bytes with BLAKE3 %s, expected %d with %s",
			f.Size, f.BLAKE3.Short(), sealed.Size, sealed.BLAKE3.Short())
		p.Leaf = int64(slices.IndexFunc(v.doc.Files, func(g File) bool { return g.Path == f.Path }))
		v.add(p)
	}
}

// tileNames holds the names in seal.tiles against those that must be there.
func (v *verifier) tileNames() {
	want := map[string]bool{}
	for i := range v.doc.Streams {
		s := &v.doc.Streams[i]
		for _, name := range s.sections() {
			want[tilesPath(s.Path, name)] = true
		}
	}
	for _, name := range v.inv.tiles {
		if !want[name] {
			v.add(problem(CodeUnlisted, name, "no tiles of this seal have that name"))
		}
		delete(want, name)
	}
	for i := range v.doc.Streams {
		s := &v.doc.Streams[i]
		for _, name := range s.sections() {
			if p := tilesPath(s.Path, name); want[p] && !v.odd(p) {
				v.add(problem(CodeTiles, p, "it is not there"))
			}
		}
	}
}
