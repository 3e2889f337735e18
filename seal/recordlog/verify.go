package recordlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// The codes of problems.
const (
	CodeCheckpoint = "checkpoint" // it does not hold
	CodeEntry      = "entry"      // an entry, or its bundle, is not what the tree has
	CodeTile       = "tile"       // a tile is not what the entries give
	CodeRoot       = "root"       // the entries give another root than the checkpoint has
	CodeUnlisted   = "unlisted"   // a file that no log has
	CodeIndex      = "index"      // the index leads elsewhere
	CodeTruncated  = "truncated"  // the log is shorter than an older checkpoint of it
	CodeForked     = "forked"     // it is no continuation of an older checkpoint
	CodeMissing    = "missing"    // a recording is gone
	CodeUnsealed   = "unsealed"   // a recording has no seal any more
	CodeResealed   = "resealed"   // a recording has another seal now than when it was added last
	CodeRecording  = "changed"    // a recording's seal does not hold
	CodeWitness    = "witness"    // a witness did not sign the checkpoint
)

// A Problem is one thing that does not hold.
type Problem struct {
	Code    string `json:"code"`
	Path    string `json:"path"`         // of the file, or of the recording
	Entry   int64  `json:"entry"`        // its number in the log; -1 where it is about none
	ID      string `json:"id,omitempty"` // of the recording
	Message string `json:"message"`
}

func (p Problem) String() string { return p.Path + ": " + p.Message }

// VerifyOptions say what Verify looks at beside the log's own files. Keys are needed.
type VerifyOptions struct {
	Keys      []note.Verifier // whose log it may be
	Witnesses []note.Verifier // each must have signed the checkpoint
	// Since is an older checkpoint of the log, which somebody kept; nil for none.
	Since []byte
	// Recording looks at the recording of an entry, the newest of its id. It returns what does not hold, with codes and messages;
	// nil looks at no recording.
	Recording func(ctx context.Context, e *Entry) ([]Problem, error)
	Progress  func(done, total int64) // entries
}

// A Verification is what Verify found. A log without problems holds.
type Verification struct {
	Log        string    `json:"log"`
	Origin     string    `json:"origin"`
	Size       int64     `json:"size"`
	Root       string    `json:"root"`
	Recordings int       `json:"recordings"` // distinct ones that were looked at
	Witnesses  []string  `json:"witnesses"`  // that signed the checkpoint, of those asked for
	Problems   []Problem `json:"problems"`
	Notes      []string  `json:"notes"`
}

// Verify computes the log in dir again from its entries, holds every tile, the checkpoint and an older one against that, and looks
// at each recording that it lists. An error means that nothing could be looked at.
func Verify(ctx context.Context, dir string, o *VerifyOptions) (*Verification, error) {
	v := &verifier{ctx: ctx, o: o, out: &Verification{Log: dir, Witnesses: []string{}, Problems: []Problem{}, Notes: []string{}}}
	log, err := Open(dir, o.Keys...)
	switch {
	case errors.Is(err, ErrNoLog) && o.Since != nil:
		v.problem(CodeTruncated, dir, -1, "there is no log here, and the older checkpoint is of one")
		return v.out, nil
	case errors.Is(err, ErrCheckpoint):
		v.problem(CodeCheckpoint, filepath.Join(dir, checkpointName), -1, "%v", err)
		return v.out, nil
	case err != nil:
		return nil, err
	}
	v.log = log
	v.out.Origin, v.out.Size, v.out.Root = log.Head.Origin, log.Head.Tree.N, log.Head.Tree.Hash.String()
	if err := v.run(); err != nil {
		return nil, err
	}
	return v.out, nil
}

// verifier is one Verify under way.
type verifier struct {
	ctx    context.Context
	o      *VerifyOptions
	log    *Log
	out    *Verification
	edge   merkle.Tree
	broken bool             // the entries cannot be read
	newest map[string]int64 // by id: the entry's number
	order  []string         // ids by first appearance
}

func (v *verifier) problem(code, path string, entry int64, format string, args ...any) {
	v.out.Problems = append(v.out.Problems, Problem{Code: code, Path: path, Entry: entry, Message: fmt.Sprintf(format, args...)})
}

func (v *verifier) run() error {
	v.newest = make(map[string]int64)
	v.edge.Full = v.tile
	v.entries()
	if err := v.ctx.Err(); err != nil {
		return err
	}
	v.root()
	v.since()
	v.witnesses()
	if err := v.files(); err != nil {
		return err
	}
	return v.recordings()
}

// entries reads every bundle and builds the tree again.
func (v *verifier) entries() {
	for n := int64(0); n*merkle.Width < v.log.Head.Tree.N && v.ctx.Err() == nil; n++ {
		list, err := v.log.bundle(n, v.log.bundleWidth(n))
		if err != nil {
			v.problem(CodeEntry, v.log.path(tilePath(entriesLevel, n, v.log.bundleWidth(n))), n*merkle.Width, "%v", err)
			v.broken = true
			return
		}
		stored, err := v.log.hashes(0, n, len(list))
		if err != nil {
			v.problem(CodeTile, v.log.path(levelPath(0, n, len(list))), -1, "%v", err)
		}
		for i, e := range list {
			v.entry(n*merkle.Width+int64(i), e, stored, i)
		}
		if v.o.Progress != nil {
			v.o.Progress(v.edge.N, v.log.Head.Tree.N)
		}
	}
}

func (v *verifier) entry(n int64, raw []byte, stored []tlog.Hash, i int) {
	path := v.log.path(tilePath(entriesLevel, n/merkle.Width, v.log.bundleWidth(n/merkle.Width)))
	h := tlog.RecordHash(raw)
	if stored != nil && stored[i] != h {
		v.problem(CodeEntry, path, n, "entry %d was changed: its hash is not the one that the tree has", n)
	}
	e, err := ParseEntry(raw)
	if err != nil {
		v.problem(CodeEntry, path, n, "entry %d: %v", n, err)
	} else {
		if _, ok := v.newest[e.ID]; !ok {
			v.order = append(v.order, e.ID)
		}
		v.newest[e.ID] = n
	}
	v.edge.Add(h) // the error is that of tile, which gives none
}

// tile holds a full tile against what the entries give.
func (v *verifier) tile(level int, n int64, hashes []tlog.Hash) error {
	v.same(level, n, merkle.Width, hashes)
	return nil
}

func (v *verifier) same(level int, n int64, w int, hashes []tlog.Hash) {
	path := v.log.path(levelPath(level, n, w))
	have, err := v.log.hashes(level, n, w)
	if err != nil {
		v.problem(CodeTile, path, -1, "%v", err)
		return
	}
	for i := range have {
		if have[i] != hashes[i] {
			v.problem(CodeTile, path, -1, "hash %d is not what the entries give", i)
			return
		}
	}
}

// root holds the last tiles and the checkpoint against what the entries give.
func (v *verifier) root() {
	if v.broken {
		return
	}
	for l, hashes := range v.edge.Levels {
		if n, w := merkle.Partial(v.edge.N, l); w > 0 {
			v.same(l, n, w, hashes)
		}
	}
	if got := v.edge.Root(); got != v.log.Head.Tree.Hash {
		v.problem(CodeRoot, v.log.path(checkpointName), -1, "the entries give the root %s, it has %s", got, v.log.Head.Tree.Hash)
	}
}

// since holds an older checkpoint against the log.
func (v *verifier) since() {
	if v.o.Since == nil {
		return
	}
	old, err := ParseCheckpoint(v.o.Since, v.o.Keys...)
	path := v.log.path(checkpointName)
	switch {
	case err != nil:
		v.problem(CodeCheckpoint, "older checkpoint", -1, "%v", err)
	case old.Origin != v.log.Head.Origin:
		v.problem(CodeForked, path, -1, "it is of %s, the older one of %s", v.log.Head.Origin, old.Origin)
	case old.Tree.N > v.log.Head.Tree.N:
		v.problem(CodeTruncated, path, -1, "the log had %d entries, and has %d: those at its end are gone", old.Tree.N,
			v.log.Head.Tree.N)
	default:
		root, err := v.log.rootAt(old.Tree.N)
		if err != nil {
			v.problem(CodeForked, path, -1, "nothing tells whether it continues the older checkpoint: %v", err)
		} else if root != old.Tree.Hash {
			v.problem(CodeForked, path, -1, "its first %d entries are not those of the older checkpoint", old.Tree.N)
		}
	}
}

// rootAt is the root hash that the log had when it had n entries.
func (l *Log) rootAt(n int64) (tlog.Hash, error) {
	if n == l.Head.Tree.N {
		return l.Head.Tree.Hash, nil
	}
	return tlog.TreeHash(n, l.reader())
}

// witnesses looks for their signatures.
func (v *verifier) witnesses() {
	for _, w := range v.o.Witnesses {
		if _, err := note.Open(v.log.Head.Note, note.VerifierList(w)); err != nil {
			v.problem(CodeWitness, v.log.path(checkpointName), -1, "the witness %s did not sign it: %v", w.Name(), err)
			continue
		}
		v.out.Witnesses = append(v.out.Witnesses, w.Name())
	}
}

// recordings looks at each recording once.
func (v *verifier) recordings() error {
	if v.o.Recording == nil || v.broken {
		return nil
	}
	for _, id := range v.order {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		n := v.newest[id]
		e, err := v.log.Entry(n)
		if err != nil {
			continue // said
		}
		if have, f, err := v.log.newest(id); err != nil || f != nil && have != n {
			v.problem(CodeIndex, v.log.path(indexName), n, "it leads to entry %d for %s: delete the folder, and it is made again", have, id)
		}
		found, err := v.o.Recording(v.ctx, e)
		if err != nil {
			return err
		}
		v.out.Recordings++
		for _, p := range found {
			p.Entry, p.ID = n, id
			v.out.Problems = append(v.out.Problems, p)
		}
	}
	return nil
}

// files looks for what no log has, and at the partial tiles of older checkpoints.
func (v *verifier) files() error {
	beyond := 0
	err := filepath.WalkDir(v.log.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(v.log.Dir, path)
		if err != nil || e.IsDir() {
			return err
		}
		name := filepath.ToSlash(rel)
		switch t, ok := parseTile(name); {
		case name == checkpointName || name == lockName || strings.HasPrefix(e.Name(), durable.TempPrefix):
		case strings.HasPrefix(name, indexName+"/"): // no part of the log
		case !ok || !e.Type().IsRegular():
			v.problem(CodeUnlisted, path, -1, "no log has such a file")
		case t.beyond(v.log.Head.Tree.N):
			beyond++
		case t.w < merkle.Width:
			v.older(path, t)
		}
		return nil
	})
	if beyond > 0 {
		v.out.Notes = append(v.out.Notes, fmt.Sprintf("%d files are of a larger log than the checkpoint's: a killed add leaves such, and so "+
			"does an old checkpoint that was put back: hold the log against one that you kept (--since)", beyond))
	}
	return err
}

// older holds the partial tile of an older checkpoint against what has become of it.
func (v *verifier) older(path string, t tileName) {
	size := v.log.Head.Tree.N >> (merkle.Height * t.level)
	w := int(min(merkle.Width, size-t.n*merkle.Width)) // of what it is now
	if w == t.w || v.broken {
		return // looked at
	}
	now, errNow := v.log.read(t.name, t.n, w, maxBundle)
	have, err := readBounded(path, maxBundle)
	if err == nil && errNow == nil && !t.prefixOf(have, now) {
		err = errors.New("it is not the beginning of what it has become")
	}
	if err != nil {
		v.problem(CodeTile, path, -1, "%v", err)
	}
}

// A tileName is a path of a tile or of a bundle.
type tileName struct {
	name  string // the level, as it stands
	level int    // 0 of a bundle
	n     int64
	w     int
}

func parseTile(path string) (t tileName, ok bool) {
	f := strings.Split(path, "/")
	if len(f) < 3 || f[0] != "tile" {
		return t, false
	}
	t.name, t.w = f[1], merkle.Width
	if t.name != entriesLevel {
		l, err := strconv.Atoi(t.name)
		if err != nil || l < 0 || l > 63/merkle.Height {
			return t, false
		}
		t.level = l
	}
	f = f[2:]
	if last := len(f) - 1; last > 0 && strings.HasSuffix(f[last-1], ".p") {
		w, err := strconv.Atoi(f[last])
		if err != nil || w < 1 || w >= merkle.Width {
			return t, false
		}
		t.w, f = w, append(f[:last-1:last-1], strings.TrimSuffix(f[last-1], ".p"))
	}
	for _, part := range f {
		d, err := strconv.ParseInt(strings.TrimPrefix(part, "x"), 10, 64)
		if err != nil || d < 0 || d > 999 || t.n > 1<<50 {
			return t, false
		}
		t.n = t.n*1000 + d
	}
	return t, tilePath(t.name, t.n, t.w) == path
}

// beyond reports whether a log of size entries has no such tile yet.
func (t tileName) beyond(size int64) bool {
	return t.n*merkle.Width+int64(t.w) > size>>(merkle.Height*t.level)
}

// prefixOf reports whether have is what t has of now.
func (t tileName) prefixOf(have, now []byte) bool {
	if t.name != entriesLevel {
		return len(have) == t.w*tlog.HashSize && bytes.HasPrefix(now, have)
	}
	list, err := splitBundle(have)
	return err == nil && len(list) == t.w && bytes.HasPrefix(now, have)
}
