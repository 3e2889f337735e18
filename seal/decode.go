package seal

import (
	"strings"
	"unicode/utf8"
)

// How large, in bytes, what others wrote may be. A proof carries payloads.
const (
	MaxSeal  = 64 << 20
	MaxProof = 256 << 20
)

// ParseDocument reads a seal.json. It takes the one canonical form and nothing else, so Encode of the result gives b again.
// The error is a *Problem. Nothing is verified but the form; Verify does the rest.
func ParseDocument(b []byte) (*Document, error) {
	d, p := parseDocument(b, FileName)
	if p != nil {
		return nil, p
	}
	return d, nil
}

func parseDocument(b []byte, path string) (*Document, *Problem) {
	if len(b) > MaxSeal {
		return nil, problem(CodeTooLarge, path, "it is larger than %d bytes", MaxSeal)
	}
	e, d := &exact{b: b}, &Document{}
	e.lit(`{"checkpoint":`)
	d.Checkpoint = e.str()
	e.lit(`,"files":`)
	e.list(func() { d.Files = append(d.Files, e.file()) })
	e.lit(`,"format":`)
	e.format()
	e.lit(`,"id":`)
	d.ID = e.str()
	e.lit(`,"key":`)
	d.Key = e.key()
	e.lit(`,"streams":`)
	e.list(func() { d.Streams = append(d.Streams, e.stream()) })
	e.lit("}")
	if p := e.end(path); p != nil {
		return nil, p
	}
	return d, d.check(path)
}

func (e *exact) file() (f File) {
	e.lit(`{"blake3":`)
	f.BLAKE3 = e.digest()
	e.lit(`,"path":`)
	f.Path = e.str()
	e.lit(`,"size":`)
	f.Size = e.num()
	e.lit("}")
	return f
}

func (e *exact) stream() (s Stream) {
	e.lit(`{"bytes":`)
	s.Bytes = e.num()
	e.lit(`,"kind":`)
	s.Kind = Kind(e.str())
	e.lit(`,"leaves":`)
	s.Leaves = e.num()
	e.lit(`,"path":`)
	s.Path = e.str()
	e.lit(`,"root":`)
	s.Root = e.hash()
	e.lit("}")
	return s
}

// check holds the parts of a seal against one another, as far as they need no recording.
func (d *Document) check(path string) *Problem {
	if !validID(d.ID) {
		return problem(CodeMalformed, path, "its id %.80q cannot stand in a checkpoint", d.ID)
	}
	for i := range d.Files {
		if f := &d.Files[i]; !validPath(f.Path) || i > 0 && d.Files[i-1].Path >= f.Path {
			return problem(CodeMalformed, path, "file %d, %.80q: expected a path below the recording, in order of path, each once", i, f.Path)
		}
	}
	for i := range d.Streams {
		if p := d.Streams[i].check(path); p != nil {
			return p
		}
		if i > 0 && d.Streams[i-1].Path >= d.Streams[i].Path {
			return problem(CodeMalformed, path, "stream %.80q: expected them in order of path, each once", d.Streams[i].Path)
		}
	}
	cp, err := parseCheckpoint(d.Checkpoint)
	if err != nil {
		return problem(CodeCheckpoint, path, "%v", err)
	}
	tree, err := d.rootTree()
	if err != nil {
		return problem(CodeCheckpoint, path, "%v", err)
	}
	if want := origin(d.Key.Name(), d.ID); cp.origin != want {
		return problem(CodeCheckpoint, path, "the checkpoint is of %.200q, the seal says %q", cp.origin, want)
	}
	if cp.tree != tree {
		return problem(CodeCheckpoint, path, "the checkpoint is of %d streams with root %s, the seal lists %d with root %s",
			cp.tree.N, cp.tree.Hash, tree.N, tree.Hash)
	}
	d.Root = tree.Hash
	return d.checkFiles(path)
}

// checkFiles holds the list of files against their stream's root.
func (d *Document) checkFiles(path string) *Problem {
	var t tree
	var bytes int64
	for i := range d.Files {
		if err := t.add(recordHash(d.Files[i].leaf())); err != nil {
			return problem(CodeCheckpoint, path, "%v", err)
		}
		bytes += d.Files[i].Size
	}
	s := d.stream(filesPath)
	if s == nil && len(d.Files) == 0 {
		return nil
	}
	root, err := t.root()
	if err != nil || s == nil || s.Kind != Files || s.Leaves != int64(len(d.Files)) || s.Bytes != bytes || s.Root != root {
		return problem(CodeCheckpoint, path, "the files that it lists are not those of its stream %q", filesPath)
	}
	return nil
}

func (s *Stream) check(path string) *Problem {
	switch s.Kind {
	case Files:
		if s.Path == filesPath {
			return nil
		}
	case Lines, Chunks, Blobs:
		if validPath(s.Path) {
			return nil
		}
	}
	return problem(CodeMalformed, path, "stream %.80q: expected a path below the recording and the kind lines, chunks, blobs or files (of \".\"), it has %.20q",
		s.Path, s.Kind)
}

// stream returns the stream of a path, nil where there is none.
func (d *Document) stream(path string) *Stream {
	for i := range d.Streams {
		if d.Streams[i].Path == path {
			return &d.Streams[i]
		}
	}
	return nil
}

// validPath reports whether a path may be that of a sealed file: relative, without ".", ".." and empty parts, in UTF-8.
func validPath(p string) bool {
	if !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}
