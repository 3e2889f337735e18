// Package verify reads every line and every blob of a recording, a packed one or a bare tape, holds what stands in it twice against
// each other, and its seal against all of it.
//
// Goals: what does not hold is named with its path and line; nothing is changed. Not goals: a proof that nobody changed an unsealed
// recording.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// StateUnsealed is the state of a finished recording that carries no seal; StateTape that of a bare tape; StateDamaged that of
// what cannot be read as the recording that it was.
const (
	StateUnsealed = "unsealed"
	StateTape     = "tape"
	StateDamaged  = "damaged"
)

// A Problem is one thing that does not hold.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	Code    string `json:"code,omitempty"` // of what a seal found: see package seal
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
	}
	return p.Path + ": " + p.Message
}

// A Verification is what Verify found. A recording whose Problems are empty holds, finished or not.
type Verification struct {
	Path     string    `json:"path"`
	State    string    `json:"state"` // "recording" (unfinished), "unsealed", "sealed", "tape", "damaged"
	Live     bool      `json:"live"`  // it is being recorded
	Records  int       `json:"records"`
	Blobs    int       `json:"blobs"` // distinct blobs that were read and hash to their names
	Problems []Problem `json:"problems"`
	Notes    []string  `json:"notes"`

	Signer      string     `json:"signer"`             // the key whose seal holds, NAME+ID+BASE64
	SignerKnown bool       `json:"signer_known"`       // it is this machine's, or one that was asked for
	Cosigned    []Cosigned `json:"cosigned"`           // by witnesses that were asked for
	Unknown     []string   `json:"unknown_signatures"` // of keys that nobody asked for: NAME+ID
}

// A Cosigned is a witness's signature that holds.
type Cosigned struct {
	Witness string    `json:"witness"`
	Time    time.Time `json:"time"`
}

// Options say how Verify works. Nil and zero work.
type Options struct {
	// Progress is told how many records and how many bytes of blobs have been read.
	Progress func(records int, bytes int64)
	// Keys are those that may have sealed; this machine's (seal.pub) when empty. Where there is none either, whose seal it is is
	// not known.
	Keys []seal.PublicKey
	// Witnesses must all have cosigned.
	Witnesses []seal.PublicKey
	// ConfigDir is where the keys lie; the user's configuration directory when empty.
	ConfigDir string
	// Unpacking is told how much of a packed recording has been unpacked, before that.
	Unpacking func(done, total int64)
}

// verifier checks one recording or tape.
type verifier struct {
	ctx   context.Context
	v     *Verification
	o     Options
	bytes int64 // of blobs, read so far
	store cas.Store
	seen  map[cas.Digest]bool

	finished bool // a recording whose recorder came to its end
	head     *tape.Header
	last     tape.Kind // of the tape
	blobs    []sealedBlob
	keyed    int         // files that are known by a keyed digest
	mcp      mcp.Checker // of the tape that is read
}

// Verify reads every line and every blob of the recording, packed recording or bare tape at path. An error means that nothing
// could be looked at; what does not hold is in the result. o may be nil. The end of ctx ends the unpacking of a packed recording.
func Verify(ctx context.Context, path string, o *Options) (*Verification, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	c := &verifier{ctx: ctx, seen: map[cas.Digest]bool{}, v: &Verification{
		Path: path, State: StateTape, Problems: []Problem{}, Notes: []string{}, Cosigned: []Cosigned{}, Unknown: []string{},
	}}
	if o != nil {
		c.o = *o
	}
	switch {
	case st.IsDir():
		err = c.directory(path)
	case library.LooksPacked(path):
		err = c.packed(ctx, path)
	case !st.Mode().IsRegular():
		err = fmt.Errorf("%s is no regular file", path)
	default:
		err = c.tape(path)
	}
	if err != nil {
		return nil, err
	}
	return c.v, nil
}

func (c *verifier) directory(dir string) error {
	rec, err := recording.Open(dir)
	if errors.Is(err, recording.ErrManifest) {
		c.v.State = StateDamaged
		c.v.Problems = append(c.v.Problems, Problem{Path: filepath.Join(dir, recording.ManifestName), Message: err.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	return c.recording(rec)
}

// packed checks what is packed in file. What a problem is in is named as if it lay in file.
func (c *verifier) packed(ctx context.Context, file string) error {
	rec, clean, err := library.UnpackTemp(ctx, file, c.o.Unpacking)
	if errors.Is(err, packed.ErrDamaged) || errors.Is(err, packed.ErrNotPacked) || errors.Is(err, recording.ErrNotRecording) {
		c.v.State = StateDamaged
		c.v.Problems = append(c.v.Problems, Problem{Path: file, Message: strings.TrimPrefix(err.Error(), file+": ")})
		return nil
	}
	if err != nil {
		return err
	}
	defer clean()
	c.v.Path = rec.Dir
	if err := c.recording(rec); err != nil {
		return err
	}
	c.v.Path = file
	for i, p := range c.v.Problems {
		c.v.Problems[i].Path = file + strings.TrimPrefix(p.Path, rec.Dir)
	}
	return nil
}

func (c *verifier) recording(rec *recording.Recording) (err error) {
	if c.store, err = rec.Store(); err != nil {
		return err
	}
	c.v.State, c.finished = StateUnsealed, rec.Finished()
	if !c.finished {
		c.v.State = recording.StateRecording
		if rec.Live() == recording.LiveYes {
			c.v.Live = true
			c.note("unfinished: it is being recorded")
		} else {
			c.note("unfinished: the recorder did not come to its end")
		}
	}
	if err := c.seal(rec); err != nil {
		return err
	}
	if err := c.tape(rec.TapePath()); err != nil {
		return c.noTape(rec, err)
	}
	if n := rec.Manifest.Records; c.finished && n != c.v.Records {
		c.problem(rec.TapePath(), fmt.Errorf("it has %d whole records of %d", c.v.Records, n))
	}
	before := c.tree(rec)
	c.found(rec)
	if said := rec.OtherKeyIn(c.o.ConfigDir, c.keyed); said != "" {
		c.note(said)
	}
	c.stdin(rec)
	c.program(rec, c.head, c.last)
	c.patch(rec, before)
	c.terminal(rec)
	c.sessionLog(rec)
	c.unnamed()
	c.unsaid(rec)
	return c.parts(rec)
}

// noTape judges a recording whose tape could not be read, which nothing else of it can be held against.
func (c *verifier) noTape(rec *recording.Recording, err error) error {
	st, errStat := os.Stat(rec.TapePath())
	switch absent := errors.Is(errStat, os.ErrNotExist); {
	case absent && !c.finished:
		return nil // killed before the tape began
	case absent || errStat == nil && !st.Mode().IsRegular():
		c.unsaid(rec)
		if !slices.ContainsFunc(c.v.Problems, func(p Problem) bool { return p.Path == rec.TapePath() }) {
			c.problem(rec.TapePath(), errors.New("the tape is missing: expected a regular file"))
		}
		return nil
	}
	return err
}

func (c *verifier) stdin(rec *recording.Recording) {
	p, err := tape.ParsePayload(rec.Manifest.Stdin)
	if err == nil && p != nil {
		err = c.payload(p)
	}
	if err != nil {
		c.problem(filepath.Join(rec.Dir, recording.ManifestName), fmt.Errorf("stdin: %w", err))
	}
}

// unnamed checks the blobs that nothing names, too: a store holds no bytes that are not what they say.
func (c *verifier) unnamed() {
	for d, err := range c.store.All() {
		if err == nil {
			err = c.blob(d)
		}
		if recording.IsMissing(err) {
			continue // nothing names it, and GC took it away meanwhile
		}
		if err != nil {
			c.problem(filepath.Join(c.v.Path, recording.TapeName+tape.StoreSuffix), err)
		}
	}
}

// tape checks each line of a tape and each blob that it names.
func (c *verifier) tape(path string) error {
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return c.load(path, err)
	}
	defer f.Close()
	c.store, c.head = f.Store, f.Header() // the store is that of a recording
	c.mcp = mcp.Checker{}
	var want uint64
	disordered := false
	for rec, err := range f.Records() {
		if err != nil {
			return c.load(path, err)
		}
		if rec.Seq != want && !disordered {
			disordered = true
			c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: f.Line(), Message: fmt.Sprintf("seq %d where %d was due", rec.Seq, want)})
		}
		want, c.last = rec.Seq+1, rec.Kind
		c.v.Records++
		c.step(0)
		for _, err := range c.held(rec.Kind) {
			c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: f.Line(), Message: fmt.Sprintf("record %d: %v", rec.Seq, err)})
		}
	}
	c.torn(f, path)
	return nil
}

// held returns what of a record does not hold: its payloads, and what it says of them.
func (c *verifier) held(k tape.Kind) (problems []error) {
	for _, p := range tape.Payloads(k) {
		if err := c.payload(p); err != nil {
			problems = append(problems, err)
		}
	}
	if err := c.mcp.Check(k); err != nil {
		problems = append(problems, err)
	}
	return append(problems, mcpDigests(k)...)
}

// torn is what a crash leaves, and no fault of an unfinished recording or a bare tape; a finished one was cut later.
func (c *verifier) torn(f *tape.Tape, path string) {
	if f.Torn() && c.finished {
		c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: f.Line() + 1, Message: "the last line of a finished recording is torn"})
	} else if f.Torn() {
		c.note(fmt.Sprintf("%s:%d: the last line is torn, as a crash leaves it; it was dropped", path, f.Line()+1))
	}
}

// load tells a tape that does not hold from one that could not be looked at.
func (c *verifier) load(path string, err error) error {
	var le *tape.LoadError
	if !errors.As(err, &le) || errors.Is(err, tape.ErrVersion) {
		return err
	}
	c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: le.Line, Message: le.Err.Error()})
	return nil
}

func (c *verifier) payload(p *tape.Payload) error {
	if err := p.CheckHash(); err != nil {
		return err
	}
	if p.Inline {
		_, err := p.Bytes(c.store)
		return err
	}
	return c.sized(p.Hash, p.Len)
}

// sized checks a blob that must have n bytes: before it is read, for what is put in a blob's place may have no end.
func (c *verifier) sized(d cas.Digest, n int64) error {
	switch have, err := c.store.Size(d); {
	case err != nil:
		return err
	case have != n:
		c.seen[d] = true
		return fmt.Errorf("blob %s has %d bytes where %d are named", d, have, n)
	}
	return c.blob(d)
}

// blob reads a blob once, however many records name it.
func (c *verifier) blob(d cas.Digest) error {
	if c.seen[d] {
		return nil
	}
	c.seen[d] = true
	r, err := c.store.Open(d)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, &library.Meter{Context: context.Background(), From: r, Count: c.step}); err != nil {
		return err
	}
	c.v.Blobs++
	return nil
}

// step tells how far the reading has come.
func (c *verifier) step(n int) {
	c.bytes += int64(n)
	if c.o.Progress != nil {
		c.o.Progress(c.v.Records, c.bytes)
	}
}

// tree checks tree.json and the blobs that it names, and returns it; nil where there is none.
func (c *verifier) tree(rec *recording.Recording) *files.Tree {
	t, err := rec.Tree()
	path := filepath.Join(rec.Dir, recording.TreeName)
	if err != nil {
		c.problem(path, err)
		return nil
	}
	if t == nil {
		if rec.Manifest.HoldsTree() && rec.Finished() {
			c.problem(path, errors.New("is missing"))
		}
		return nil
	}
	c.entries(path, t)
	return t
}

// entries checks the blobs that a tree names.
func (c *verifier) entries(path string, t *files.Tree) {
	c.keyed += recording.CountKeyed(t)
	for _, e := range t.Entries {
		if e.Digest.IsZero() {
			continue
		}
		if err := c.sized(e.Digest, e.Size); err != nil {
			c.problem(path, fmt.Errorf("%s: %w", e.Path, err))
		}
	}
}

// found checks what the recording keeps of files that the run found beside its work tree.
func (c *verifier) found(rec *recording.Recording) {
	for _, f := range rec.Manifest.Roots.Followed(rec.Manifest.Writable) {
		path := filepath.Join(rec.Dir, f.Name)
		switch t, err := recording.ReadTree(path); {
		case err != nil:
			c.problem(path, err)
		case t != nil:
			c.entries(path, t)
		}
	}
}

// parts notes answers that were still streaming when the recorder ended.
func (c *verifier) parts(rec *recording.Recording) error {
	parts, err := rec.Parts()
	if err != nil {
		return err
	}
	for _, p := range parts {
		c.note(fmt.Sprintf("an answer was still streaming: %s %s (%d bytes are there)", p.Method, p.URL, p.Len))
	}
	return nil
}

func (c *verifier) problem(path string, err error) {
	c.v.Problems = append(c.v.Problems, Problem{Path: path, Message: err.Error()})
}

func (c *verifier) note(text string) { c.v.Notes = append(c.v.Notes, text) }

// mcpDigests checks that the digests of an MCP call are those of its payloads. Another producer may have taken them before it
// redacted: only what says of which conversation it is, as our recorders do, is held to it.
func mcpDigests(k tape.Kind) (problems []error) {
	m, ok := k.(*tape.MCPJSONRPC)
	if !ok || m.Conversation == 0 {
		return nil
	}
	for _, d := range []struct {
		key  string
		said cas.Digest
		of   *tape.Payload
	}{{"request_digest", m.RequestDigest, m.Request}, {"response_digest", m.ResponseDigest, m.Response}} {
		if d.of != nil && d.said != d.of.Hash {
			problems = append(problems, fmt.Errorf("%s is %s, and its payload %s", d.key, d.said.Short(), d.of.Hash.Short()))
		}
	}
	return problems
}
