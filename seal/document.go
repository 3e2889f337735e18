package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
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
	d := &Document{}
	if p := decode(b, d, path); p != nil {
		return nil, p
	}
	return d, d.check(path)
}

// Encode returns the bytes of seal.json.
func (d *Document) Encode() []byte { return encode(d) }

// A documentJSON is how a Document stands in seal.json.
type documentJSON struct {
	Checkpoint string    `json:"checkpoint"`
	Files      []File    `json:"files"`
	Format     int       `json:"format"`
	ID         string    `json:"id"`
	Key        PublicKey `json:"key"`
	Streams    []Stream  `json:"streams"`
}

// MarshalJSON writes what Encode does.
func (d *Document) MarshalJSON() ([]byte, error) {
	return jsonscan.Marshal(documentJSON{d.Checkpoint, some(d.Files), Version, d.ID, d.Key, some(d.Streams)})
}

// UnmarshalJSON reads what ParseDocument does, in any form.
func (d *Document) UnmarshalJSON(b []byte) error {
	var j documentJSON
	err := json.Unmarshal(b, &j)
	d.Checkpoint, d.Files, d.ID, d.Key, d.Streams = j.Checkpoint, j.Files, j.ID, j.Key, j.Streams
	return err
}

// some is a list that is there, if without elements.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// leaf is what the stream of files has of a file.
func (f *File) leaf() []byte { return encode(f) }

// leaf is what the root tree has of a stream.
func (s *Stream) leaf() []byte { return encode(s) }

// A streamJSON is how a Stream stands in seal.json.
type streamJSON struct {
	Bytes  int64      `json:"bytes"`
	Kind   Kind       `json:"kind"`
	Leaves int64      `json:"leaves"`
	Path   string     `json:"path"`
	Root   cas.Digest `json:"root"` // in hex, as digests are
}

// MarshalJSON writes a stream as it stands in seal.json.
func (s *Stream) MarshalJSON() ([]byte, error) {
	return jsonscan.Marshal(streamJSON{s.Bytes, s.Kind, s.Leaves, s.Path, cas.Digest(s.Root)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Stream) UnmarshalJSON(b []byte) error {
	var j streamJSON
	err := json.Unmarshal(b, &j)
	*s = Stream{Path: j.Path, Kind: j.Kind, Leaves: j.Leaves, Bytes: j.Bytes, Root: tlog.Hash(j.Root)}
	return err
}

// encode is v in the one form that it has (RFC 8785).
func encode(v any) []byte {
	b, err := canonical(v)
	if err != nil {
		panic("seal: " + err.Error()) // whatever stands in these types has a form
	}
	return b
}

func canonical(v any) ([]byte, error) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return nil, err
	}
	return canonjson.Canonical(b)
}

// decode reads the one form of v: the bytes that encode writes of it, and no others.
func decode(b []byte, v any, path string) *Problem {
	err := json.Unmarshal(b, v)
	if err == nil {
		if again, errAgain := canonical(v); errAgain == nil && bytes.Equal(again, b) {
			return nil
		}
		err = errors.New("expected the keys of the format, each once, and no others")
	}
	if wrong := jsonscan.Valid(b); wrong != nil {
		return problem(CodeNotJSON, path, "it is no JSON: %v", wrong)
	}
	if key, at, found := jsonscan.Duplicate(b); found {
		return problem(CodeDuplicateKey, path, "byte %d: the key %.80q stands twice in one object", at, key)
	}
	if c, wrong := canonjson.Canonical(b); wrong == nil && !bytes.Equal(c, b) {
		return problem(CodeNotCanonical, path, "byte %d: it is not in the form of RFC 8785, which alone is taken", firstDifference(c, b))
	}
	var format struct{ Format *int }
	if json.Unmarshal(b, &format) == nil && format.Format != nil && *format.Format != Version {
		return problem(CodeVersion, path, "format %d; this version reads %d and no other", *format.Format, Version)
	}
	return problem(CodeMalformed, path, "%v", err)
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// check holds the parts of a seal against one another, as far as they need no recording.
func (d *Document) check(path string) *Problem {
	if !validID(d.ID) {
		return problem(CodeMalformed, path, "its id %.80q cannot stand in a checkpoint", d.ID)
	}
	if d.Key.Witness() {
		return problem(CodeMalformed, path, "expected the text of a sealing key")
	}
	for i := range d.Files {
		if f := &d.Files[i]; f.Size < 0 || !validPath(f.Path) || i > 0 && d.Files[i-1].Path >= f.Path {
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
	switch counts := s.Leaves >= 0 && s.Bytes >= 0; s.Kind {
	case Files:
		if counts && s.Path == filesPath {
			return nil
		}
	case Lines, Chunks, Blobs:
		if counts && validPath(s.Path) {
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
	p := &Proof{}
	if bad := decode(b, p, ProofName); bad != nil {
		return nil, bad
	}
	if p.Key.Witness() || p.Leaf < 0 || p.StreamAt < 0 {
		return nil, problem(CodeMalformed, ProofName, "expected the text of a sealing key, and places from 0")
	}
	return p, nil
}

// Encode returns the bytes of proof.json.
func (p *Proof) Encode() []byte { return encode(p) }

// A proofJSON is how a Proof stands in proof.json.
type proofJSON struct {
	Checkpoint string    `json:"checkpoint"`
	Format     int       `json:"format"`
	ID         string    `json:"id"`
	Key        PublicKey `json:"key"`
	Leaf       struct {
		At   int64        `json:"at"`
		Path []cas.Digest `json:"path"`
		data
	} `json:"leaf"`
	Payloads   []Payload    `json:"payloads"`
	Stream     Stream       `json:"stream"`
	StreamAt   int64        `json:"streamAt"`
	StreamPath []cas.Digest `json:"streamPath"`
}

// MarshalJSON writes what Encode does.
func (p *Proof) MarshalJSON() ([]byte, error) {
	j := proofJSON{Checkpoint: p.Checkpoint, Format: Version, ID: p.ID, Key: p.Key, Payloads: some(p.Payloads),
		Stream: p.Stream, StreamAt: p.StreamAt, StreamPath: digests(p.StreamPath)}
	j.Leaf.At, j.Leaf.Path, j.Leaf.data = p.Leaf, digests(p.LeafPath), dataOf(p.Data)
	return jsonscan.Marshal(&j)
}

// UnmarshalJSON reads what ParseProof does, in any form.
func (p *Proof) UnmarshalJSON(b []byte) error {
	var j proofJSON
	err := json.Unmarshal(b, &j)
	*p = Proof{ID: j.ID, Key: j.Key, Checkpoint: j.Checkpoint, Stream: j.Stream, StreamAt: j.StreamAt, StreamPath: hashes(j.StreamPath),
		Leaf: j.Leaf.At, Data: j.Leaf.bytes(), LeafPath: hashes(j.Leaf.Path), Payloads: j.Payloads}
	return err
}

func digests(path tlog.RecordProof) []cas.Digest {
	out := make([]cas.Digest, len(path))
	for i, h := range path {
		out[i] = cas.Digest(h)
	}
	return out
}

func hashes(path []cas.Digest) tlog.RecordProof {
	out := make(tlog.RecordProof, len(path))
	for i, d := range path {
		out[i] = tlog.Hash(d)
	}
	return out
}

// data is bytes: a text where they are UTF-8.
type data struct {
	Text   *string `json:"text,omitempty"`
	Base64 []byte  `json:"base64,omitempty"`
}

func dataOf(b []byte) data {
	if !utf8.Valid(b) {
		return data{Base64: b}
	}
	text := string(b)
	return data{Text: &text}
}

func (d *data) bytes() []byte {
	if d.Text != nil {
		return []byte(*d.Text)
	}
	return d.Base64
}

// A payloadJSON is how a Payload stands in proof.json.
type payloadJSON struct {
	BLAKE3 cas.Digest `json:"blake3"`
	data
}

// MarshalJSON writes a payload as it stands in proof.json.
func (p Payload) MarshalJSON() ([]byte, error) {
	return jsonscan.Marshal(payloadJSON{p.Digest, dataOf(p.Bytes)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Payload) UnmarshalJSON(b []byte) error {
	var j payloadJSON
	err := json.Unmarshal(b, &j)
	*p = Payload{j.BLAKE3, j.bytes()}
	return err
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
