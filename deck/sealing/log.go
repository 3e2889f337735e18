package sealing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
	"golang.org/x/mod/sumdb/note"
)

// A LoggedRecording is a recording that stands in a log of recordings.
type LoggedRecording struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	Entry   int64  `json:"entry"`
	Already bool   `json:"already"` // it stood there before
}

// AddToLog verifies the seal of each of recs and adds them to the log in dir, which this user's key signs. None is added where the seal
// of one does not hold; the error then wraps ErrSealBroken.
func AddToLog(ctx context.Context, dir string, recs []*recording.Recording, config string) ([]LoggedRecording, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	key, err := seal.LoadKey(recording.ConfigDir(config))
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	var entries []*recordlog.Entry
	for _, r := range recs {
		e, err := logEntry(ctx, r, dir)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	added, err := recordlog.Add(ctx, dir, key, key.Public(), &recordlog.AddOptions{Sync: true}, entries...)
	if err != nil {
		return nil, err
	}
	out := make([]LoggedRecording, len(added))
	for i, a := range added {
		out[i] = LoggedRecording{ID: entries[i].ID, Path: recs[i].Dir, Entry: a.Number, Already: a.Already}
	}
	return out, nil
}

// logEntry is what the log in dir says of r, whose seal must hold.
func logEntry(ctx context.Context, r *recording.Recording, dir string) (*recordlog.Entry, error) {
	res, err := seal.Verify(ctx, r.Dir, &seal.VerifyOptions{ID: r.Manifest.ID})
	switch {
	case errors.Is(err, seal.ErrNoSeal):
		return nil, fmt.Errorf("%s is not sealed, and a log lists sealed recordings: tapedeck seal seals it", r.Dir)
	case err != nil:
		return nil, err
	case !res.OK():
		return nil, fmt.Errorf("%s: %w: %w; `tapedeck verify` lists everything", r.Dir, ErrSealBroken, &res.Problems[0])
	}
	e := entryOf(res.Document)
	e.Time = time.Now().UTC().Format(time.RFC3339)
	e.Path = filepath.ToSlash(r.Dir)
	if rel, err := filepath.Rel(dir, r.Dir); err == nil {
		e.Path = filepath.ToSlash(rel)
	}
	return e, nil
}

func entryOf(d *seal.Document) *recordlog.Entry {
	text := d.Checkpoint
	if i := strings.LastIndex(text, "\n\n"); i >= 0 {
		text = text[:i+1] // signatures may be added to it
	}
	sum := sha256.Sum256([]byte(text))
	return &recordlog.Entry{Checkpoint: hex.EncodeToString(sum[:]), ID: d.ID, Key: d.Key.String(), Root: d.Root.String()}
}

// VerifyLogOptions say how VerifyLog works. Nil and zero work.
type VerifyLogOptions struct {
	Keys      []seal.PublicKey // whose log it may be; this machine's when empty
	Witnesses []seal.PublicKey // that must have cosigned its checkpoint
	Since     []byte           // an older checkpoint of the log; nil for none
	Quick     bool             // of the recordings their seals alone are looked at, not every byte
	ConfigDir string
	Progress  func(done, total int64) // entries
}

// ErrNoKey is wrapped by the error of what cannot be checked because nobody said whose it must be.
var ErrNoKey = errors.New("no key to check it by")

// VerifyLog computes the log in dir again and looks at each recording that it lists: where it lay, or where find knows it by its id.
func VerifyLog(ctx context.Context, dir string, find func(id string) (*recording.Recording, error), o *VerifyLogOptions) (*recordlog.Verification, error) {
	if o == nil {
		o = new(VerifyLogOptions)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	keys := o.Keys
	if len(keys) == 0 {
		if keys, err = TrustedKeys(o.ConfigDir); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: %w: name the public key of the log's owner with --key", dir, ErrNoKey)
	}
	c := &logChecker{find: find, dir: dir, quick: o.Quick}
	return recordlog.Verify(ctx, dir, &recordlog.VerifyOptions{
		Keys: Verifiers(keys), Witnesses: Verifiers(o.Witnesses), Since: o.Since, Recording: c.recording, Progress: o.Progress,
	})
}

// Verifiers are keys as package note has them.
func Verifiers(keys []seal.PublicKey) []note.Verifier {
	out := make([]note.Verifier, len(keys))
	for i, k := range keys {
		out[i] = k
	}
	return out
}

// logChecker looks at the recordings of one log.
type logChecker struct {
	find  func(id string) (*recording.Recording, error)
	dir   string
	quick bool
}

func (c *logChecker) recording(ctx context.Context, e *recordlog.Entry) ([]recordlog.Problem, error) {
	where := filepath.FromSlash(e.Path)
	if !filepath.IsAbs(where) {
		where = filepath.Join(c.dir, where)
	}
	one := func(code, format string, args ...any) []recordlog.Problem {
		return []recordlog.Problem{{Code: code, Path: where, Message: fmt.Sprintf(format, args...)}}
	}
	rec, err := c.open(where, e.ID)
	if err != nil {
		return one(recordlog.CodeMissing, "recording %s is gone: it was logged at %s, and no other is known under its id (%v)", e.ID, e.Time, err), nil
	}
	where = rec.Dir
	d, err := seal.ReadDocument(rec.Dir)
	switch p := (*seal.Problem)(nil); {
	case errors.Is(err, seal.ErrNoSeal):
		return one(recordlog.CodeUnsealed, "recording %s has no seal any more; it had one when it was logged at %s", e.ID, e.Time), nil
	case errors.As(err, &p):
		return one(recordlog.CodeRecording, "recording %s: %v", e.ID, p), nil
	case err != nil:
		return nil, err
	}
	if now := entryOf(d); now.Checkpoint != e.Checkpoint || now.Root != e.Root || now.Key != e.Key {
		return one(recordlog.CodeResealed, "recording %s has another seal now, by %s, than when it was logged at %s (by %s): if that was you, "+
			"log it again", e.ID, now.Key, e.Time, e.Key), nil
	}
	if c.quick {
		return nil, nil
	}
	key, err := seal.ParsePublicKey(e.Key)
	if err != nil {
		return one(recordlog.CodeEntry, "recording %s: %v", e.ID, err), nil
	}
	res, err := seal.Verify(ctx, rec.Dir, &seal.VerifyOptions{ID: e.ID, Keys: []seal.PublicKey{key}})
	if err != nil {
		return nil, err
	}
	if len(res.Problems) == 0 {
		return nil, nil
	}
	return one(recordlog.CodeRecording, "recording %s was changed: %v (%d problems: tapedeck verify %s)", e.ID, &res.Problems[0],
		len(res.Problems), rec.Dir), nil
}

// open opens the recording id where it lay, or where it is known.
func (c *logChecker) open(where, id string) (*recording.Recording, error) {
	rec, err := recording.Open(where)
	if err == nil && rec.Manifest.ID == id {
		return rec, nil
	}
	known, errLib := c.find(id)
	if errLib == nil && known.Manifest.ID == id {
		return known, nil
	}
	if err == nil {
		return nil, fmt.Errorf("another one lies there: %s", rec.Manifest.ID)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, recording.ErrNotRecording) {
		return nil, errors.New("nothing lies there")
	}
	return nil, err
}

// LoggedIn reports whether the log of recordings in dir lists id. The error says of a log that is there that it cannot be read, or that no
// key is trusted to have signed it.
func LoggedIn(dir, id string) (bool, error) {
	keys, err := TrustedKeys("")
	if err != nil {
		return false, err
	}
	log, err := recordlog.Open(dir, Verifiers(keys)...)
	if errors.Is(err, recordlog.ErrNoLog) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, e, err := log.Find(id)
	return e != nil, err
}
