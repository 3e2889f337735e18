package seal

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// origin is the first line of a checkpoint.
func origin(key, id string) string { return key + "/recording/" + id }

// validID reports whether an id may stand in an origin.
func validID(id string) bool { return validName(id) }

// checkpointText is what is signed.
func checkpointText(key PublicKey, id string, tree tlog.Tree) string {
	return merkle.Head(origin(key.Name(), id), tree)
}

// sign makes the checkpoint of a tree.
func sign(k *Key, id string, tree tlog.Tree) (string, error) {
	b, err := note.Sign(&note.Note{Text: checkpointText(k.Public(), id, tree)}, k)
	return string(b), err
}

// A signature is one line of a checkpoint's.
type signature struct {
	name string
	id   uint32
	sig  []byte
}

func (s *signature) String() string { return fmt.Sprintf("%s+%08x", s.name, s.id) }

// of reports whether the line says that it is of key.
func (s *signature) of(key PublicKey) bool { return s.name == key.Name() && s.id == key.KeyHash() }

// A checkpoint is a signed note, taken apart. Only one text gives it.
type checkpoint struct {
	origin string
	tree   tlog.Tree
	text   string // what is signed
	sigs   []signature
}

// parseCheckpoint reads a checkpoint in the one form that C2SP gives it: no extension lines, base64 with padding and without
// spare bits, no key twice.
func parseCheckpoint(s string) (*checkpoint, error) {
	_, err := note.Open([]byte(s), note.VerifierList()) // nobody's: whose signatures hold, judge tells
	var open *note.UnverifiedNoteError
	if !errors.As(err, &open) {
		return nil, fmt.Errorf("a checkpoint is a signed note: %w", err)
	}
	c := &checkpoint{text: open.Note.Text}
	if c.origin, c.tree, err = merkle.ParseHead(c.text); err != nil {
		return nil, err
	}
	for _, n := range open.Note.UnverifiedSigs {
		b, err := base64.StdEncoding.Strict().DecodeString(n.Base64)
		if err != nil || !validName(n.Name) || base64.StdEncoding.EncodeToString(b) != n.Base64 {
			return nil, fmt.Errorf("a signature is \"— NAME BASE64\"; it is %.120q", n.Name+" "+n.Base64)
		}
		s := signature{name: n.Name, id: n.Hash, sig: b[4:]}
		if slices.ContainsFunc(c.sigs, func(o signature) bool { return o.name == s.name && o.id == s.id }) {
			return nil, fmt.Errorf("two signatures by %s", &s)
		}
		c.sigs = append(c.sigs, s)
	}
	if lines := strings.Count(s[len(c.text)+1:], "\n"); lines != len(c.sigs) {
		return nil, fmt.Errorf("one signature stands twice")
	}
	return c, nil
}

// signedBy returns a problem unless key has signed.
func (c *checkpoint) signedBy(key PublicKey, path string) *Problem {
	for i := range c.sigs {
		if s := &c.sigs[i]; s.of(key) {
			if key.Verify([]byte(c.text), s.sig) {
				return nil
			}
			return problem(CodeSignature, path, "the signature of %s+%08x does not hold: the checkpoint was changed, or another key of that "+
				"name and id made it", key.Name(), key.KeyHash())
		}
	}
	return problem(CodeSignature, path, "it is not signed by the key that it names, %s+%08x", key.Name(), key.KeyHash())
}

// A verdict is what the signatures of a checkpoint are worth to who asks.
type verdict struct {
	signer   PublicKey
	known    bool
	cosigned []Cosignature
	unknown  []string
	problems []Problem
}

// judge checks every signature that somebody's key is known of.
func (c *checkpoint) judge(path string, key PublicKey, keys, witnesses []PublicKey) *verdict {
	v := &verdict{}
	if p := c.signedBy(key, path); p != nil {
		v.problems = append(v.problems, *p)
	} else {
		v.signer = key
	}
	for _, k := range keys {
		v.known = v.known || k == key && !v.signer.IsZero()
	}
	if len(keys) > 0 && !v.known && !v.signer.IsZero() {
		v.problems = append(v.problems, *problem(CodeSigner, path, "it is signed by %s, expected %s: it was sealed by somebody else, or with "+
			"another key", key, names(keys)))
	}
	for _, w := range witnesses {
		v.witness(c, path, w)
	}
	for i := range c.sigs {
		if s := &c.sigs[i]; !s.of(key) && !slices.ContainsFunc(witnesses, s.of) {
			v.unknown = append(v.unknown, s.String())
		}
	}
	return v
}

// witness checks that w has cosigned.
func (v *verdict) witness(c *checkpoint, path string, w PublicKey) {
	for i := range c.sigs {
		s := &c.sigs[i]
		if !s.of(w) {
			continue
		}
		at, ok := w.cosigned([]byte(c.text), s.sig)
		if !ok || !w.Witness() {
			v.problems = append(v.problems, *problem(CodeWitness, path, "the cosignature of %s does not hold", s))
			return
		}
		v.cosigned = append(v.cosigned, Cosignature{Witness: w, Time: time.Unix(at, 0).UTC()})
		return
	}
	v.problems = append(v.problems, *problem(CodeWitness, path, "%s+%08x has not cosigned it", w.Name(), w.KeyHash()))
}

func names(keys []PublicKey) string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.String()
	}
	return strings.Join(all, " or ")
}

// A Code says what does not hold, for programs. Codes stay what they are once released.
type Code string

// The codes of a Problem.
const (
	// Of seal.json and of a proof.
	CodeTooLarge     Code = "too-large"     // larger than a reader takes
	CodeNotJSON      Code = "not-json"      // no JSON, or nested deeper than a reader follows
	CodeDuplicateKey Code = "duplicate-key" // a key stands twice in one object
	CodeMalformed    Code = "malformed"     // JSON, and not the form that it must have
	CodeNotCanonical Code = "not-canonical" // the right members in another form than RFC 8785's
	CodeVersion      Code = "version"       // of a later format

	// Of the checkpoint.
	CodeCheckpoint Code = "checkpoint" // no checkpoint, or one of other streams or another id
	CodeSignature  Code = "signature"  // not signed by the key that the seal names
	CodeSigner     Code = "signer"     // signed by none of the keys asked for
	CodeWitness    Code = "witness"    // a witness that was asked for has not cosigned, or its signature does not hold
	CodeID         Code = "id"         // the seal of another recording

	// Of the files.
	CodeMissing    Code = "missing"     // a sealed file or blob is not there
	CodeUnlisted   Code = "unlisted"    // a file or blob that was not sealed
	CodeNotRegular Code = "not-regular" // a symlink, FIFO, device or socket, or a directory in a file's place
	CodeName       Code = "name"        // a sealed file is there under a name that differs in case or form alone
	CodeChanged    Code = "changed"     // other bytes than those that were sealed
	CodeBlob       Code = "blob"        // a blob's bytes do not hash to its name
	CodeReordered  Code = "reordered"   // the leaves are those that were sealed, in another order
	CodeRemoved    Code = "removed"     // leaves were taken out
	CodeAdded      Code = "added"       // leaves were put in
	CodeCut        Code = "cut"         // the end of a stream is missing
	CodeUnreadable Code = "unreadable"  // it is there and cannot be read
	CodeTiles      Code = "tiles"       // seal.tiles/ does not hold what it must

	// Of a proof.
	CodeProof   Code = "proof"   // a path does not lead to the root that is signed
	CodePayload Code = "payload" // bytes that the leaf does not name
)

// A Problem is one thing that does not hold, with where.
type Problem struct {
	Code    Code   `json:"code"`
	Path    string `json:"path"`           // relative to the recording's directory, with '/'
	Line    int64  `json:"line,omitempty"` // from 1, where a line is meant
	Leaf    int64  `json:"leaf"`           // of the stream's tree, from 0; -1 where none is meant
	Message string `json:"message"`
}

func (p *Problem) Error() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
	}
	return p.Path + ": " + p.Message
}

// problem makes one that is about no leaf.
func problem(code Code, path, format string, args ...any) *Problem {
	return &Problem{Code: code, Path: path, Leaf: -1, Message: fmt.Sprintf(format, args...)}
}

// recordHash is the hash of a leaf.
func recordHash(b []byte) tlog.Hash {
	if len(b) < 512 {
		var buf [513]byte
		return sha256.Sum256(append(buf[:1], b...))
	}
	return tlog.RecordHash(b)
}

// rootTree is the tree over the streams.
func (d *Document) rootTree() tlog.Tree {
	return tlog.Tree{N: int64(len(d.Streams)), Hash: merkle.Root(d.streamHashes())}
}

// streamHashes are its leaves.
func (d *Document) streamHashes() []tlog.Hash {
	out := make([]tlog.Hash, len(d.Streams))
	for i := range d.Streams {
		out[i] = recordHash(d.Streams[i].leaf())
	}
	return out
}

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
	for level, n := 0, s.Leaves; n > 0; level, n = level+1, n>>merkle.Height {
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
	tree   merkle.Tree
	out    section
	offset [8]byte
}

func newGather(s *source, out section) *gather {
	g := &gather{stream: Stream{Path: s.path, Kind: s.kind}, out: out}
	g.tree.Full = func(level int, _ int64, tile []tlog.Hash) error { return out(strconv.Itoa(level), merkle.Join(tile)) }
	return g
}

func (g *gather) leaf(l leaf) error {
	switch g.stream.Kind {
	case Lines, Chunks:
		if g.tree.N%merkle.Width == 0 {
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
	return g.tree.Add(l.hash)
}

// finish gives out the partial tiles, and returns the stream.
func (g *gather) finish() (Stream, error) {
	g.stream.Leaves, g.stream.Root = g.tree.N, g.tree.Root()
	for level, tile := range g.tree.Levels {
		if len(tile) == 0 {
			continue
		}
		if err := g.tree.Full(level, 0, tile); err != nil {
			return g.stream, err
		}
	}
	return g.stream, nil
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
		f = &tileFile{file, bufio.NewWriterSize(file, 2*merkle.TileBytes)}
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

// A tileChecker holds the sections of one stream, as they are computed, against what lies in seal.tiles.
type tileChecker struct {
	inv      *inventory
	stream   string
	open     map[string]*checked
	problems []Problem
	buf      []byte
}

type checked struct {
	f  *os.File
	r  *bufio.Reader
	at int64 // bytes compared
	ok bool  // so far
}

// check compares the next bytes of a section.
func (c *tileChecker) check(name string, b []byte) error {
	s := c.section(name)
	if !s.ok {
		return nil
	}
	c.buf = append(c.buf[:0], b...) // as large as it must be
	n, err := io.ReadFull(s.r, c.buf)
	if i := firstDifference(c.buf[:n], b); i < len(b) {
		s.ok = false
		what := "differs from what the recording gives"
		if i == n && err != nil {
			what = "ends too early: " + err.Error()
		}
		c.problems = append(c.problems, *problem(CodeTiles, tilesPath(c.stream, name), "byte %d: it %s", s.at+int64(i), what))
	}
	s.at += int64(len(b))
	return nil
}

func (c *tileChecker) section(name string) *checked {
	if s := c.open[name]; s != nil {
		return s
	}
	if c.open == nil {
		c.open = map[string]*checked{}
	}
	s := &checked{}
	c.open[name] = s
	rel := tilesPath(c.stream, name)
	f, err := c.inv.open(rel)
	var p *Problem
	switch {
	case err == nil:
		s.f, s.r, s.ok = f, bufio.NewReaderSize(f, merkle.TileBytes), true
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &p): // tileNames and the inventory tell
	default:
		c.problems = append(c.problems, *problem(CodeTiles, rel, "it cannot be read: %v", err))
	}
	return s
}

// finish looks for what stands behind the end.
func (c *tileChecker) finish(stream *Stream) {
	for _, name := range stream.sections() {
		s := c.open[name]
		if s == nil || !s.ok {
			continue
		}
		if rest, err := s.r.Peek(1); err == nil && len(rest) > 0 {
			c.problems = append(c.problems, *problem(CodeTiles, tilesPath(c.stream, name), "byte %d: something stands behind its end", s.at))
		}
	}
}

func (c *tileChecker) close() {
	for _, s := range c.open {
		if s.f != nil {
			s.f.Close()
		}
	}
}

// readAtMost reads what r gives, up to limit bytes.
func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit))
}
