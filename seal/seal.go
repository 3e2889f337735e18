package seal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"golang.org/x/mod/sumdb/tlog"
)

// TempPrefix begins the name of the directory that a seal is made in.
const TempPrefix = durable.TempPrefix + "seal-"

// Seal seals the recording in dir. It errs with what wraps ErrSealed where there is a seal and Replace was not asked for, and with
// ErrCannotSeal where something lies there that a seal cannot cover: a *Problem in it says what.
func Seal(ctx context.Context, dir string, o *Options) (*Document, error) {
	if o == nil || o.Key == nil {
		return nil, errors.New("seal: no key to sign with: LoadKey gives one")
	}
	if _, err := os.Lstat(filepath.Join(dir, FileName)); err == nil && !o.Replace {
		return nil, fmt.Errorf("%s: %w", dir, ErrSealed)
	}
	if err := removeTemporary(dir); err != nil {
		return nil, err
	}
	inv, err := take(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := inv.sealable(); err != nil {
		return nil, err
	}
	inv.manifest = o.Manifest
	id, err := inv.id(o.ID)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(dir, TempPrefix+"*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp) // nothing is in it where all went well
	d, err := inv.seal(ctx, temp, id, o)
	if err != nil {
		return nil, err
	}
	return d, place(dir, temp, d, o)
}

// removeTemporary takes away what a Seal that was killed left.
func removeTemporary(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), TempPrefix) && e.IsDir() {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// sealable errs for what a seal cannot cover.
func (inv *inventory) sealable() error {
	if len(inv.odd) > 0 {
		return fmt.Errorf("%s %w: %w", inv.dir, ErrCannotSeal, &inv.odd[0])
	}
	for _, s := range inv.sources {
		for _, f := range s.files {
			if base := f.Path[strings.LastIndexByte(f.Path, '/')+1:]; strings.HasPrefix(base, durable.TempPrefix) {
				p := problem(CodeUnlisted, f.Path, "a temporary file of a writer that runs or was killed: wait for it, or remove the file")
				return fmt.Errorf("%s %w: %w", inv.dir, ErrCannotSeal, p)
			}
		}
	}
	return nil
}

// maxManifest is how large a recording.json may be for its id to be read, in bytes.
const maxManifest = 64 << 20

// id returns the recording's id.
func (inv *inventory) id(given string) (string, error) {
	id, err := inv.manifestID()
	switch {
	case err != nil && (given == "" || !errors.Is(err, fs.ErrNotExist)):
		return "", fmt.Errorf("%s %w: no id: %w", inv.dir, ErrCannotSeal, err)
	case given != "" && id != "" && given != id:
		return "", fmt.Errorf("%s %w: it is recording %q, asked for was %q", inv.dir, ErrCannotSeal, id, given)
	case given != "":
		id = given
	}
	if !validID(id) {
		return "", fmt.Errorf("%s %w: the id %.80q: expected 1 to 200 bytes of UTF-8 without spaces and '+'", inv.dir, ErrCannotSeal, id)
	}
	return id, nil
}

// manifestID returns the id that recording.json says. The error wraps fs.ErrNotExist where there is none.
func (inv *inventory) manifestID() (string, error) {
	f, err := inv.open(manifest)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var m struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(&m); err != nil {
		return "", fmt.Errorf("%s: %w", manifest, err)
	}
	return m.ID, nil
}

// seal makes the seal in the directory temp.
func (inv *inventory) seal(ctx context.Context, temp, id string, o *Options) (*Document, error) {
	r := &reading{inv: inv, trustBlobs: o.TrustBlobs, progress: o.Progress}
	r.found = func(p *Problem) error { return fmt.Errorf("%s %w: %w", inv.dir, ErrCannotSeal, p) }
	d := &Document{ID: id, Key: o.Key.Public()}
	for _, s := range inv.sources {
		stream, err := r.write(ctx, s, temp, o.Sync)
		if err != nil {
			return nil, err
		}
		d.Streams = append(d.Streams, stream)
		d.Files = append(d.Files, s.files...)
	}
	r.finish()
	tree := d.rootTree()
	d.Root = tree.Hash
	var err error
	d.Checkpoint, err = sign(o.Key, id, tree)
	return d, err
}

// write makes the tiles of a stream.
func (r *reading) write(ctx context.Context, s *source, temp string, sync bool) (Stream, error) {
	w := &tileWriter{dir: temp, stream: s.path, sync: sync, open: map[string]*tileFile{}}
	g := newGather(s, w.write)
	err := r.stream(ctx, s, g.leaf)
	stream, errFinish := g.finish()
	return stream, errors.Join(err, errFinish, w.close())
}

// place brings a seal from temp to where it belongs, seal.json last, and then the recording.json that it seals. An old one goes first.
func place(dir, temp string, d *Document, o *Options) error {
	if err := prepare(temp, d, o); err != nil {
		return err
	}
	final, tiles := filepath.Join(dir, FileName), filepath.Join(dir, TilesName)
	if err := os.Remove(final); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(tiles); err != nil {
		return err
	}
	err := os.Rename(filepath.Join(temp, TilesName), tiles)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // there are no leaves
	} else if err == nil && o.Sync {
		err = errors.Join(syncTree(tiles), durable.SyncDir(dir))
	}
	if err != nil {
		return err
	}
	names := []string{FileName}
	if o.Manifest != nil {
		names = append(names, manifest)
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(temp, name), filepath.Join(dir, name)); err != nil {
			return err
		}
		if !o.Sync {
			continue
		}
		if err := durable.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// prepare writes what is put in place last.
func prepare(temp string, d *Document, o *Options) error {
	opts := &durable.Options{Sync: o.Sync, Mode: 0o644}
	if o.Manifest != nil {
		if err := durable.WriteFile(filepath.Join(temp, manifest), o.Manifest, opts); err != nil {
			return err
		}
	}
	return durable.WriteFile(filepath.Join(temp, FileName), d.Encode(), opts)
}

// syncTree brings the names of all directories in path to the disk.
func syncTree(path string) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return durable.SyncDir(p)
	})
}

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
