package seal

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
	"golang.org/x/mod/sumdb/tlog"
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
	d.walk(e)
	if p := e.end(path); p != nil {
		return nil, p
	}
	return d, d.check(path)
}

// Encode returns the bytes of seal.json.
func (d *Document) Encode() []byte { return written(d.walk) }

func (d *Document) walk(e *exact) {
	e.lit(`{"checkpoint":`)
	e.str(&d.Checkpoint)
	e.lit(`,"files":`)
	list(e, &d.Files, func(f *File) { f.walk(e) })
	e.lit(`,"format":`)
	e.format()
	e.lit(`,"id":`)
	e.str(&d.ID)
	e.lit(`,"key":`)
	e.key(&d.Key)
	e.lit(`,"streams":`)
	list(e, &d.Streams, func(s *Stream) { s.walk(e) })
	e.lit("}")
}

// leaf is what the stream of files has of a file.
func (f *File) leaf() []byte { return written(f.walk) }

func (f *File) walk(e *exact) {
	e.lit(`{"blake3":`)
	e.digest(&f.BLAKE3)
	e.lit(`,"path":`)
	e.str(&f.Path)
	e.lit(`,"size":`)
	e.num(&f.Size)
	e.lit("}")
}

// leaf is what the root tree has of a stream.
func (s *Stream) leaf() []byte { return written(s.walk) }

// MarshalJSON writes a stream as it stands in seal.json.
func (s *Stream) MarshalJSON() ([]byte, error) { return s.leaf(), nil }

func (s *Stream) walk(e *exact) {
	e.lit(`{"bytes":`)
	e.num(&s.Bytes)
	e.lit(`,"kind":`)
	e.str((*string)(&s.Kind))
	e.lit(`,"leaves":`)
	e.num(&s.Leaves)
	e.lit(`,"path":`)
	e.str(&s.Path)
	e.lit(`,"root":`)
	e.hash(&s.Root)
	e.lit("}")
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
	tree := d.rootTree()
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
	var bytes int64
	hashes := make([]tlog.Hash, len(d.Files))
	for i := range d.Files {
		hashes[i] = recordHash(d.Files[i].leaf())
		bytes += d.Files[i].Size
	}
	s := d.stream(filesPath)
	if s == nil && len(d.Files) == 0 {
		return nil
	}
	if s == nil || s.Kind != Files || s.Leaves != int64(len(d.Files)) || s.Bytes != bytes || s.Root != merkle.Root(hashes) {
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

// ProofName is what a proof is called in problems.
const ProofName = "proof.json"

// ParseProof reads a proof.json. It takes the one canonical form and nothing else. The error is a *Problem. Nothing is verified
// but the form.
func ParseProof(b []byte) (*Proof, error) {
	p, bad := parseProof(b)
	if bad != nil {
		return nil, bad
	}
	return p, nil
}

func parseProof(b []byte) (*Proof, *Problem) {
	if len(b) > MaxProof {
		return nil, problem(CodeTooLarge, ProofName, "it is larger than %d bytes", MaxProof)
	}
	e, p := &exact{b: b}, &Proof{}
	p.walk(e)
	if bad := e.end(ProofName); bad != nil {
		return nil, bad
	}
	return p, nil
}

// Encode returns the bytes of proof.json.
func (p *Proof) Encode() []byte { return written(p.walk) }

func (p *Proof) walk(e *exact) {
	e.lit(`{"checkpoint":`)
	e.str(&p.Checkpoint)
	e.lit(`,"format":`)
	e.format()
	e.lit(`,"id":`)
	e.str(&p.ID)
	e.lit(`,"key":`)
	e.key(&p.Key)
	e.lit(`,"leaf":{"at":`)
	e.num(&p.Leaf)
	e.lit(",")
	e.data(&p.Data, func() {
		e.lit(`"path":`)
		e.hashes(&p.LeafPath)
	})
	e.lit(`},"payloads":`)
	list(e, &p.Payloads, func(one *Payload) {
		e.lit("{")
		e.data(&one.Bytes, func() {
			e.lit(`"blake3":`)
			e.digest(&one.Digest)
		})
		e.lit("}")
	})
	e.lit(`,"stream":`)
	p.Stream.walk(e)
	e.lit(`,"streamAt":`)
	e.num(&p.StreamAt)
	e.lit(`,"streamPath":`)
	e.hashes(&p.StreamPath)
	e.lit("}")
}

// VerifyProof checks a proof with nothing but public keys. The error is a *Problem. Without keys it shows only that the proof is
// whole: Proven.SignerKnown is then false.
func VerifyProof(b []byte, o *ProofOptions) (*Proven, error) {
	if o == nil {
		o = &ProofOptions{}
	}
	p, bad := parseProof(b)
	if bad != nil {
		return nil, bad
	}
	out, bad := p.verify(o, ProofName)
	if bad != nil {
		return nil, bad
	}
	return out, nil
}

func (p *Proof) verify(o *ProofOptions, name string) (*Proven, *Problem) {
	c, err := parseCheckpoint(p.Checkpoint)
	if err != nil {
		return nil, problem(CodeCheckpoint, name, "%v", err)
	}
	if want := origin(p.Key.Name(), p.ID); c.origin != want || !validID(p.ID) {
		return nil, problem(CodeCheckpoint, name, "the checkpoint is of %.200q, the proof says %q", c.origin, want)
	}
	j := c.judge(name, p.Key, o.Keys, o.Witnesses)
	if len(j.problems) > 0 {
		return nil, &j.problems[0]
	}
	if bad := p.Stream.check(name); bad != nil {
		return nil, bad
	}
	if err := tlog.CheckRecord(p.StreamPath, c.tree.N, c.tree.Hash, p.StreamAt, recordHash(p.Stream.leaf())); err != nil {
		return nil, problem(CodeProof, name, "stream %s is not in the signed tree of %d streams: %v", p.Stream.Path, c.tree.N, err)
	}
	if err := tlog.CheckRecord(p.LeafPath, p.Stream.Leaves, p.Stream.Root, p.Leaf, recordHash(p.Data)); err != nil {
		bad := problem(CodeProof, name, "the leaf is not number %d of the %d of stream %s: %v", p.Leaf, p.Stream.Leaves, p.Stream.Path, err)
		bad.Leaf = p.Leaf
		return nil, bad
	}
	for i := range p.Payloads {
		if bad := p.Payloads[i].check(p, name); bad != nil {
			return nil, bad
		}
	}
	return &Proven{Proof: p, Signer: j.signer, SignerKnown: j.known, Cosignatures: j.cosigned, Unknown: j.unknown}, nil
}

// check holds a payload against its digest and the leaf.
func (p *Payload) check(of *Proof, name string) *Problem {
	if got := cas.Sum(p.Bytes); got != p.Digest {
		return problem(CodePayload, name, "the payload %s is damaged: its bytes hash to %s", p.Digest, got)
	}
	if !of.names(p) {
		return problem(CodePayload, name, "the leaf does not name the payload %s", p.Digest)
	}
	return nil
}

// names reports whether the leaf names a payload.
func (p *Proof) names(payload *Payload) bool {
	hex := payload.Digest.String()
	switch p.Stream.Kind {
	case Lines: // no byte of JSON text but the ends of a string can stand on both sides of it
		return bytes.Contains(p.Data, []byte(`"`+hex+`"`))
	case Blobs:
		b := blob{payload.Digest, int64(len(payload.Bytes))}
		return bytes.Equal(p.Data, b.leaf())
	case Files:
		return bytes.HasPrefix(p.Data, []byte(`{"blake3":"`+hex+`",`))
	}
	return false
}
