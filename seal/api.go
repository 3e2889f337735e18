package seal

import (
	"errors"
	"io/fs"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"golang.org/x/mod/sumdb/tlog"
)

// The names of a seal in a recording's directory.
const (
	FileName    = "seal.json"
	TilesName   = "seal.tiles"
	Annotations = "run.tape.annotations.jsonl" // outside the seal
	Seed        = "run.seed"                   // the same
	manifest    = "recording.json"             // its "id" is the recording's
)

// Version is the format of seal.json and proof.json that is written here, and the highest that is read.
const Version = 1

// A Kind says what the leaves of a stream are.
type Kind string

// The kinds of streams.
const (
	Lines  Kind = "lines"
	Chunks Kind = "chunks"
	Blobs  Kind = "blobs"
	Files  Kind = "files"
)

// A Stream is one tree.
type Stream struct {
	Path   string    `json:"path"`
	Kind   Kind      `json:"kind"`
	Leaves int64     `json:"leaves"`
	Bytes  int64     `json:"bytes"` // of the files that it covers
	Root   tlog.Hash `json:"-"`
}

// A File is one file of the stream of files.
type File struct {
	Path   string     `json:"path"`
	Size   int64      `json:"size"` // bytes
	BLAKE3 cas.Digest `json:"blake3"`
}

// A Document is what seal.json says.
type Document struct {
	ID         string
	Key        PublicKey
	Streams    []Stream
	Files      []File
	Checkpoint string // the signed note
	Root       tlog.Hash
}

var (
	// ErrNoSeal is wrapped by the errors for a directory that has no seal.json. It wraps fs.ErrNotExist.
	ErrNoSeal error = &noSeal{}
	// ErrSealed is wrapped by the error of Seal for a directory that has a seal.json.
	ErrSealed = errors.New("sealed already")
	// ErrCannotSeal is wrapped by the errors of Seal for what a seal cannot cover.
	ErrCannotSeal = errors.New("cannot be sealed")
	// ErrNoLeaf is wrapped by the error of Prove for what is not in the seal.
	ErrNoLeaf = errors.New("not in the seal")
)

type noSeal struct{}

func (*noSeal) Error() string { return "no seal: there is no " + FileName }
func (*noSeal) Unwrap() error { return fs.ErrNotExist }

// Options say how Seal works.
type Options struct {
	// Key signs. It must be there.
	Key *Key
	// ID is the recording's; "" takes the one that recording.json says.
	ID string
	// TrustBlobs takes the names of blobs for what their bytes hash to, without reading them: right for who just wrote them.
	TrustBlobs bool
	// Manifest, where not nil, is sealed in the place of what recording.json holds, and put there once seal.json is: for a
	// recording that says of itself whether it is sealed. Whoever is killed before that leaves one that says it is not.
	Manifest []byte
	// Replace makes a new seal where there is one. Without it the error wraps ErrSealed.
	Replace bool
	// Sync brings seal and tiles to the disk before Seal returns.
	Sync bool
	// Progress is told how many of total bytes have been read. It is called by one goroutine at a time.
	Progress func(done, total int64)
}

// VerifyOptions say what Verify asks for. Nil and zero work.
type VerifyOptions struct {
	// Keys are those that may have sealed. Where there are none the key that the seal names is taken, which shows that the seal
	// fits the recording, and not whose it is: Result.SignerKnown is then false.
	Keys []PublicKey
	// Witnesses must all have cosigned.
	Witnesses []PublicKey
	// ID is the recording's; "" asks for none.
	ID string
	// Blob is told of each blob of the store that was read and hashes to its name, by the caller's goroutine; nil is not.
	Blob func(store string, d cas.Digest)
	// Progress is told how many of total bytes have been read.
	Progress func(done, total int64)
}

// A Cosignature is that of a witness that was asked for.
type Cosignature struct {
	Witness PublicKey `json:"witness"`
	Time    time.Time `json:"time"`
}

// A Result is what Verify found. The recording is as it was sealed where Problems is empty.
type Result struct {
	Document     *Document // nil where seal.json is none
	Signer       PublicKey // who signed; zero where the signature does not hold
	SignerKnown  bool      // it is one of VerifyOptions.Keys
	Cosignatures []Cosignature
	Unknown      []string // "NAME+ID" of signatures by other keys, which were not checked
	Leaves       int64    // that were hashed
	Bytes        int64    // that were read
	Problems     []Problem
	Omitted      int // how many further problems were found: Problems holds the first 1,000
}

// OK reports whether nothing was found that does not hold. SignerKnown says whether that means anything.
func (r *Result) OK() bool { return len(r.Problems) == 0 }

// ProveOptions say which leaf. Nil proves record 0 of the tape.
type ProveOptions struct {
	// Path is the stream ("run.tape", which "" stands for, "session.jsonl", "terminal/output.raw"), or a file or blob
	// ("recording.json", "run.tape.cas/<hex>").
	Path string
	// Seq is the "seq" of the line that is meant.
	Seq uint64
	// Leaf, where not nil, is the leaf from 0, in place of Seq: of a tape, 0 is its header.
	Leaf *int64
	// Payloads takes the blobs along that the line names, and the bytes of a file or blob.
	Payloads bool
}

// A Payload is bytes that a leaf names.
type Payload struct {
	Digest cas.Digest
	Bytes  []byte
}

// A Proof is what proof.json says.
type Proof struct {
	ID         string
	Key        PublicKey
	Checkpoint string
	Stream     Stream
	StreamAt   int64            // its place among the streams
	StreamPath tlog.RecordProof // from the stream to the root
	Leaf       int64
	Data       []byte           // the leaf itself
	LeafPath   tlog.RecordProof // from the leaf to the stream's root
	Payloads   []Payload
}

// Proven is what a proof that holds shows.
type Proven struct {
	*Proof
	Signer       PublicKey
	SignerKnown  bool // it is one of the keys asked for
	Cosignatures []Cosignature
	Unknown      []string
}

// ProofOptions say what VerifyProof asks for. Nil and zero work, as those of VerifyOptions do.
type ProofOptions struct {
	Keys      []PublicKey
	Witnesses []PublicKey
}
