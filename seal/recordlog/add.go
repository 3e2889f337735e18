package recordlog

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/seal/internal/merkle"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// AddOptions say how Add works. Nil and zero work.
type AddOptions struct {
	Sync bool // what was added survives a loss of power once Add returns
}

// An Added is what became of one entry.
type Added struct {
	Number  int64
	Already bool // the newest entry of this recording said the same: nothing was added
}

// ErrChanged is wrapped by the refusal to add to a log whose files are not what its checkpoint stands for.
var ErrChanged = errors.New("the log is not what its checkpoint says")

// lockRetry is how often a lock that another holds is asked for again.
const lockRetry = 5 * time.Millisecond

// Add appends entries to the log in dir, which is made where it is not there, and signs its new checkpoint. It waits for others
// who add, until ctx ends. What the checkpoint says was there before is held against the right edge of the tree first.
//
// Errors wrap ErrChanged or ErrCheckpoint where the log has been changed or is another key's; nothing was added then.
func Add(ctx context.Context, dir string, s note.Signer, v note.Verifier, o *AddOptions, entries ...*Entry) ([]Added, error) {
	if o == nil {
		o = new(AddOptions)
	}
	raw := make([][]byte, len(entries))
	for i, e := range entries {
		b, err := e.encode()
		if err != nil {
			return nil, err
		}
		raw[i] = b
	}
	if err := makeDirs(dir, dir, o.Sync); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	defer lock.Close()
	a := &adder{dir: dir, sync: o.Sync}
	if err := a.begin(s, v); err != nil {
		return nil, err
	}
	return a.add(s, entries, raw)
}

// adder is one Add under its lock.
type adder struct {
	dir    string
	sync   bool
	log    *Log
	edge   merkle.Tree
	bundle []byte // of the last, partial bundle
	filled []string
}

// begin reads the right edge of the log, and makes a log where there is none.
func (a *adder) begin(s note.Signer, v note.Verifier) (err error) {
	a.log, err = Open(a.dir, v)
	if errors.Is(err, ErrNoLog) {
		err = a.create(s, v)
	}
	if err != nil {
		return err
	}
	a.edge.Full = func(level int, n int64, hashes []tlog.Hash) error {
		return a.fill(strconv.Itoa(level), n, merkle.Join(hashes))
	}
	if err := a.load(); err != nil {
		return fmt.Errorf("%s: %w: %w (seal log verify tells more)", a.dir, ErrChanged, err)
	}
	if err := a.log.reindex(); err != nil {
		return err
	}
	return a.clear()
}

// create signs the checkpoint of an empty log, so that a log without a checkpoint is never one that nobody had begun.
func (a *adder) create(s note.Signer, v note.Verifier) error {
	if _, err := os.Lstat(filepath.Join(a.dir, "tile")); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: it holds tiles and no checkpoint; put its checkpoint back, or name another directory", a.dir, ErrChanged)
	}
	empty, err := tlog.TreeHash(0, nil)
	if err != nil {
		return err
	}
	if err := a.commit(tlog.Tree{Hash: empty}, s); err != nil {
		return err
	}
	a.log, err = Open(a.dir, v)
	return err
}

func (a *adder) commit(t tlog.Tree, s note.Signer) error {
	head, err := note.Sign(&note.Note{Text: merkle.Head(OriginOf(s.Name()), t)}, s)
	if err != nil {
		return err
	}
	return put(a.dir, checkpointName, head, a.sync)
}

// load reads the right edge and holds it against the checkpoint.
func (a *adder) load() error {
	size := a.log.Head.Tree.N
	a.edge.N = size
	for l := 0; size>>(merkle.Height*l) > 0; l++ {
		n, w := merkle.Partial(size, l)
		var h []tlog.Hash
		if w > 0 {
			var err error
			if h, err = a.log.hashes(l, n, w); err != nil {
				return err
			}
		}
		a.edge.Levels = append(a.edge.Levels, h)
	}
	if got := a.edge.Root(); got != a.log.Head.Tree.Hash {
		return fmt.Errorf("its tiles give the root %s, its checkpoint has %s", got, a.log.Head.Tree.Hash)
	}
	n, w := merkle.Partial(size, 0)
	if w == 0 {
		return nil
	}
	list, err := a.log.bundle(n, w)
	if err != nil {
		return err
	}
	for i, e := range list {
		if tlog.RecordHash(e) != a.edge.Levels[0][i] {
			return fmt.Errorf("entry %d was changed", n*merkle.Width+int64(i))
		}
		a.bundle = appendEntry(a.bundle, e)
	}
	return nil
}

// clear removes what lies beyond the checkpoint, which killed adders leave: what is added now may be wider at once.
func (a *adder) clear() error {
	for l := -1; ; l++ {
		name, level := entriesLevel, 0
		if l >= 0 {
			name, level = strconv.Itoa(l), l
		}
		if _, err := os.Lstat(a.log.path("tile/" + name)); err != nil {
			return gone(err)
		}
		n, w := merkle.Partial(a.edge.N, level)
		if err := a.clearTile(name, n, w); err != nil {
			return err
		}
		for n++; ; n++ {
			if !exists(a.log.path(tilePath(name, n, merkle.Width))) && !exists(a.log.path(tilePath(name, n, merkle.Width))+".p") {
				break
			}
			if err := a.clearTile(name, n, 0); err != nil {
				return err
			}
		}
	}
}

// clearTile leaves of tile n what is at most w wide.
func (a *adder) clearTile(level string, n int64, w int) error {
	path := a.log.path(tilePath(level, n, merkle.Width))
	if err := gone(os.Remove(path)); err != nil {
		return err
	}
	names, err := os.ReadDir(path + ".p")
	if err != nil {
		return gone(err)
	}
	for _, p := range names {
		if have, err := strconv.Atoi(p.Name()); err == nil && have <= w {
			continue
		}
		if err := gone(os.Remove(filepath.Join(path+".p", p.Name()))); err != nil {
			return err
		}
	}
	return nil
}

// fill writes a full tile or bundle. The partial ones before it go when the checkpoint is signed.
func (a *adder) fill(level string, n int64, b []byte) error {
	name := tilePath(level, n, merkle.Width)
	a.filled = append(a.filled, name)
	return put(a.dir, name, b, a.sync)
}

// add writes what is new of entries, and the checkpoint.
func (a *adder) add(s note.Signer, entries []*Entry, raw [][]byte) ([]Added, error) {
	out := make([]Added, len(entries))
	old := a.edge.N
	fresh := make(map[string]int) // by id: the entry of this call
	for i, e := range entries {
		if j, ok := fresh[e.ID]; ok && entries[j].same(e) {
			out[i] = Added{out[j].Number, true}
			continue
		}
		n, have, err := a.log.newest(e.ID)
		if err != nil {
			return nil, err
		}
		if _, ok := fresh[e.ID]; !ok && have != nil && have.same(e) {
			out[i] = Added{n, true}
			continue
		}
		out[i] = Added{Number: a.edge.N}
		fresh[e.ID] = i
		if err := a.append(raw[i]); err != nil {
			return nil, err
		}
	}
	if a.edge.N == old {
		return out, nil
	}
	if err := a.partials(old); err != nil {
		return nil, err
	}
	for i, e := range entries {
		if !out[i].Already {
			if err := noteIndex(a.dir, e.ID, out[i].Number); err != nil {
				return nil, err
			}
		}
	}
	if err := a.commit(tlog.Tree{N: a.edge.N, Hash: a.edge.Root()}, s); err != nil {
		return nil, err
	}
	for _, name := range a.filled {
		os.RemoveAll(a.log.path(name) + ".p") // what stays is harmless
	}
	return out, nil
}

// append adds one entry to the bundle and to the tree.
func (a *adder) append(e []byte) error {
	a.bundle = appendEntry(a.bundle, e)
	if (a.edge.N+1)%merkle.Width == 0 {
		if err := a.fill(entriesLevel, a.edge.N/merkle.Width, a.bundle); err != nil {
			return err
		}
		a.bundle = a.bundle[:0]
	}
	return a.edge.Add(tlog.RecordHash(e))
}

// partials writes the partial tiles of the tree that grew from old entries.
func (a *adder) partials(old int64) error {
	size := a.edge.N
	if n, w := merkle.Partial(size, 0); w > 0 {
		if err := put(a.dir, tilePath(entriesLevel, n, w), a.bundle, a.sync); err != nil {
			return err
		}
	}
	for l, hashes := range a.edge.Levels {
		n, w := merkle.Partial(size, l)
		if w == 0 || old>>(merkle.Height*l) == size>>(merkle.Height*l) {
			continue
		}
		if err := put(a.dir, levelPath(l, n, w), merkle.Join(hashes), a.sync); err != nil {
			return err
		}
	}
	return nil
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// An Entry is one recording as the log lists it.
type Entry struct {
	Checkpoint string `json:"checkpoint"` // hex SHA-256 of the text that the recording's seal signs
	ID         string `json:"id"`         // of the recording
	Key        string `json:"key"`        // who signed its seal: a verifier key
	Path       string `json:"path"`       // where it lay, relative to the log's directory where that can be; a hint
	Root       string `json:"root"`       // base64 of the seal's root hash
	Time       string `json:"time"`       // when it was added, RFC 3339 in UTC: as the log's owner says
}

// maxEntry bounds an entry in bytes: its length is two bytes.
const maxEntry = 1<<16 - 1

// encode returns the entry's bytes in the log.
func (e *Entry) encode() ([]byte, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	b, err := json.Marshal(e)
	if err == nil {
		b, err = canonjson.Canonical(b)
	}
	if err == nil && len(b) > maxEntry {
		err = fmt.Errorf("an entry of %d bytes, want %d at most", len(b), maxEntry)
	}
	return b, err
}

// ParseEntry reads one entry, which must stand in the form that this package writes.
func ParseEntry(b []byte) (*Entry, error) {
	e := new(Entry)
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("entry: %w", err)
	}
	own, err := e.encode()
	if err != nil {
		return nil, fmt.Errorf("entry: %w", err)
	}
	if string(own) != string(b) {
		return nil, errors.New("entry: it is not in canonical form, or has keys that no entry has")
	}
	return e, nil
}

func (e *Entry) check() error {
	sum, err := hex.DecodeString(e.Checkpoint)
	if err != nil || len(sum) != 32 || hex.EncodeToString(sum) != e.Checkpoint {
		return fmt.Errorf("checkpoint %q is no SHA-256 in lower case hex", e.Checkpoint)
	}
	root, err := base64.StdEncoding.Strict().DecodeString(e.Root)
	if err != nil || len(root) != 32 {
		return fmt.Errorf("root %q is no hash in base64", e.Root)
	}
	at, err := time.Parse(time.RFC3339, e.Time)
	if err != nil || at.UTC().Format(time.RFC3339) != e.Time {
		return fmt.Errorf("time %q is not RFC 3339 in UTC", e.Time)
	}
	if e.ID == "" || e.Key == "" {
		return errors.New("an entry needs an id and a key")
	}
	for _, s := range []string{e.ID, e.Key, e.Path} {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8", s)
		}
	}
	return nil
}

// same reports whether two entries are of one seal.
func (e *Entry) same(o *Entry) bool {
	return e.ID == o.ID && e.Checkpoint == o.Checkpoint && e.Root == o.Root && e.Key == o.Key
}

// tilePath is the path of tile n of a level, w hashes wide, below the log's directory, with slashes. Level "entries" has the
// entries.
func tilePath(level string, n int64, w int) string {
	s := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		s = fmt.Sprintf("x%03d/%s", n%1000, s)
	}
	if w != merkle.Width {
		s += fmt.Sprintf(".p/%d", w)
	}
	return "tile/" + level + "/" + s
}

func levelPath(level int, n int64, w int) string { return tilePath(fmt.Sprint(level), n, w) }

const entriesLevel = "entries"
