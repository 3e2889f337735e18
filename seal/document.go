package seal

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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
	var t documentText
	if p := exactly(b, &t, &t.Format, path); p != nil {
		return nil, p
	}
	d := &Document{ID: t.ID, Key: t.Key, Streams: t.Streams, Files: t.Files, Checkpoint: t.Checkpoint}
	if d.Key.Witness() {
		return nil, problem(CodeMalformed, path, "its key is that of a witness")
	}
	return d, d.check(path)
}

// A documentText is a Document as seal.json has it.
type documentText struct {
	Checkpoint string    `json:"checkpoint"`
	Files      []File    `json:"files"`
	Format     int64     `json:"format"`
	ID         string    `json:"id"`
	Key        PublicKey `json:"key"`
	Streams    []Stream  `json:"streams"`
}

// Encode returns the bytes of seal.json.
func (d *Document) Encode() []byte {
	return written(&documentText{d.Checkpoint, append([]File{}, d.Files...), Version, d.ID, d.Key, append([]Stream{}, d.Streams...)})
}

// leaf is what the stream of files has of a file.
func (f *File) leaf() []byte { return written(f) }

// leaf is what the root tree has of a stream.
func (s *Stream) leaf() []byte { return written(s) }

// A streamText is a Stream as seal.json has it.
type streamText struct {
	Bytes  int64      `json:"bytes"`
	Kind   Kind       `json:"kind"`
	Leaves int64      `json:"leaves"`
	Path   string     `json:"path"`
	Root   cas.Digest `json:"root"` // of its digits alone
}

// MarshalJSON writes a stream as it stands in seal.json.
func (s Stream) MarshalJSON() ([]byte, error) {
	return jsonscan.Marshal(&streamText{s.Bytes, s.Kind, s.Leaves, s.Path, cas.Digest(s.Root)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Stream) UnmarshalJSON(b []byte) error {
	var t streamText
	err := json.Unmarshal(b, &t)
	*s = Stream{Path: t.Path, Kind: t.Kind, Leaves: t.Leaves, Bytes: t.Bytes, Root: tlog.Hash(t.Root)}
	return err
}

// check holds the parts of a seal against one another, as far as they need no recording.
func (d *Document) check(path string) *Problem {
	if !validID(d.ID) {
		return problem(CodeMalformed, path, "its id %.80q cannot stand in a checkpoint", d.ID)
	}
	for i := range d.Files {
		if f := &d.Files[i]; !validPath(f.Path) || !isCount(f.Size) || i > 0 && d.Files[i-1].Path >= f.Path {
			return problem(CodeMalformed, path, "file %d, %.80q: expected a path below the recording and a size, in order of path, each once", i, f.Path)
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
	if !isCount(s.Bytes, s.Leaves) {
		return problem(CodeMalformed, path, "stream %.80q: expected numbers from 0 to 9007199254740991", s.Path)
	}
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
	var t proofText
	if bad := exactly(b, &t, &t.Format, ProofName); bad != nil {
		return nil, bad
	}
	return t.proof()
}

// A proofText is a Proof as proof.json has it.
type proofText struct {
	Checkpoint string        `json:"checkpoint"`
	Format     int64         `json:"format"`
	ID         string        `json:"id"`
	Key        PublicKey     `json:"key"`
	Leaf       leafText      `json:"leaf"`
	Payloads   []payloadText `json:"payloads"`
	Stream     Stream        `json:"stream"`
	StreamAt   int64         `json:"streamAt"`
	StreamPath []cas.Digest  `json:"streamPath"`
}

type leafText struct {
	At int64 `json:"at"`
	bytesText
	Path []cas.Digest `json:"path"`
}

type payloadText struct {
	BLAKE3 cas.Digest `json:"blake3"`
	bytesText
}

// Encode returns the bytes of proof.json.
func (p *Proof) Encode() []byte {
	t := &proofText{
		p.Checkpoint, Version, p.ID, p.Key, leafText{p.Leaf, textOf(p.Data), hexes(p.LeafPath)}, []payloadText{}, p.Stream, p.StreamAt,
		hexes(p.StreamPath),
	}
	for i := range p.Payloads {
		t.Payloads = append(t.Payloads, payloadText{p.Payloads[i].Digest, textOf(p.Payloads[i].Bytes)})
	}
	return written(t)
}

// proof is what a text says.
func (t *proofText) proof() (*Proof, *Problem) {
	if t.Key.Witness() || !isCount(t.Leaf.At, t.StreamAt) || max(len(t.Leaf.Path), len(t.StreamPath)) > maxPath {
		return nil, problem(CodeMalformed, ProofName, "expected a sealing key, numbers from 0 to 9007199254740991, and %d hashes at most",
			maxPath)
	}
	p := &Proof{
		ID: t.ID, Key: t.Key, Checkpoint: t.Checkpoint, Stream: t.Stream, StreamAt: t.StreamAt, StreamPath: hashes(t.StreamPath),
		Leaf: t.Leaf.At, LeafPath: hashes(t.Leaf.Path),
	}
	var bad *Problem
	if p.Data, bad = t.Leaf.bytes(ProofName); bad != nil {
		return nil, bad
	}
	for i := range t.Payloads {
		b, bad := t.Payloads[i].bytes(ProofName)
		if bad != nil {
			return nil, bad
		}
		p.Payloads = append(p.Payloads, Payload{t.Payloads[i].BLAKE3, b})
	}
	return p, nil
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
