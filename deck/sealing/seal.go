// Package sealing gives a recording its seal, tells whose it is, and keeps the log of sealed recordings. The seal itself is package
// seal's, the log's form package recordlog's.
//
// Goals: whoever is killed while a recording is sealed leaves no lie; a recording whose seal does not hold gets no other unless it
// is asked for.
package sealing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
	"golang.org/x/mod/sumdb/note"
)

// Of a recording that is sealed recording.json is replaced last (package recording has the order): until then it says that it is not sealed,
// and is, and Seal seals it anew. That is told from a sealed recording that somebody changed by the digest of recording.json that seal.json has.

// A Sealing is what sealed a recording.
type Sealing struct {
	ID      string `json:"id"`
	Key     string `json:"key"`     // NAME+ID+BASE64 of who signed
	Name    string `json:"name"`    // of that key
	Root    string `json:"root"`    // base64
	Streams int    `json:"streams"` // trees below it
	Leaves  int64  `json:"leaves"`
	KeyMade bool   `json:"key_made"` // the key was made just now
	Already bool   `json:"already"`  // the seal was there, and holds; nothing was done
}

func sealingOf(d *seal.Document) *Sealing {
	s := &Sealing{ID: d.ID, Key: d.Key.String(), Name: d.Key.Name(), Root: d.Root.String(), Streams: len(d.Streams)}
	for i := range d.Streams {
		s.Leaves += d.Streams[i].Leaves
	}
	return s
}

// ErrSealBroken is wrapped by the refusal to seal a recording whose seal is gone or does not hold.
var ErrSealBroken = errors.New("its seal does not hold")

// Options say how Recording.Seal works. Nil and zero work.
type Options struct {
	// Anew seals the recording as it is now, whatever the seal says that it has or had.
	Anew      bool
	ConfigDir string // where the keys lie; the user's configuration directory when empty
	Progress  func(done, total int64)
}

// Seal seals a finished recording with this user's key, which is made where there is none. Every byte is read. One that is sealed
// already is verified: where its seal holds, nothing is done; where it does not, or is gone, the error wraps ErrSealBroken, unless
// Anew was asked for. Other errors wrap ErrLive, seal.ErrCannotSeal or the errors of seal.LoadKey.
func Seal(ctx context.Context, r *recording.Recording, o *Options) (*Sealing, error) {
	if o == nil {
		o = new(Options)
	}
	lock, err := lockToSeal(r)
	if err != nil {
		return nil, err
	}
	defer recording.Unlock(lock)
	m, err := recording.ReadManifest(r.Dir) // what it is now: another may have sealed it meanwhile
	if err != nil {
		return nil, err
	}
	r.Manifest = m
	if !o.Anew {
		switch found, err := sealedAlready(ctx, r, o); {
		case err != nil:
			return nil, err
		case found != nil:
			return found, nil
		}
	}
	return SealDir(ctx, r.Dir, Key(o.ConfigDir), &seal.Options{Replace: true, Progress: o.Progress, Sync: true})
}

// lockToSeal keeps others from sealing r, and refuses what is still being made; nil where there are no locks.
func lockToSeal(r *recording.Recording) (*os.File, error) {
	f, err := recording.LockExclusive(r.Dir)
	switch {
	case errors.Is(err, recording.ErrHeld) && !r.Finished():
		return nil, fmt.Errorf("%s %w: seal it once its program has ended", r.Dir, recording.ErrLive)
	case errors.Is(err, recording.ErrHeld):
		return nil, fmt.Errorf("%s: another command is at work on it: wait for its end", r.Dir)
	case recording.NotLock(err) != nil:
		return nil, err
	}
	if !r.Finished() {
		if f != nil {
			f.Close()
		}
		return nil, fmt.Errorf("%s %w: its recorder did not come to its end, and what is not whole is not sealed", r.Dir, seal.ErrCannotSeal)
	}
	return f, nil
}

// sealAnew is the way on where a seal does not hold.
const sealAnew = "`tapedeck seal --anew` seals the recording as it is now, which nothing proves to be what it was"

// sealedAlready returns the seal that r has, where it holds; nil where r has none and never had, and where its sealing was
// interrupted before the last step.
func sealedAlready(ctx context.Context, r *recording.Recording, o *Options) (*Sealing, error) {
	vo := &seal.VerifyOptions{ID: r.Manifest.ID, Progress: o.Progress}
	half := HalfSealed(r)
	if half { // another's seal is no reason to give it ours
		keys, err := TrustedKeys(o.ConfigDir)
		if err != nil {
			return nil, err
		}
		vo.Keys = keys
	}
	res, err := seal.Verify(ctx, r.Dir, vo)
	switch {
	case errors.Is(err, seal.ErrNoSeal) && !r.Manifest.Sealed:
		return nil, nil
	case errors.Is(err, seal.ErrNoSeal):
		return nil, fmt.Errorf("%s: %w: it says that it is sealed, and %s is gone: put that back, from a packed copy for example; %s", r.Dir,
			ErrSealBroken, seal.FileName, sealAnew)
	case err != nil:
		return nil, err
	}
	problems := res.Problems
	if half {
		problems = ButManifest(problems)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %w: %w; `tapedeck verify` lists everything; %s", r.Dir, ErrSealBroken, &problems[0], sealAnew)
	}
	if half {
		return nil, nil
	}
	s := sealingOf(res.Document)
	s.Already = true
	return s, nil
}

// ButManifest leaves out what is so until the last step of sealing: recording.json is not what was sealed, and the directory is
// there that the seal was made in.
func ButManifest(list []seal.Problem) []seal.Problem {
	return slices.DeleteFunc(list, func(p seal.Problem) bool {
		return p.Path == recording.ManifestName && p.Code == seal.CodeChanged || strings.HasPrefix(p.Path, seal.TempPrefix)
	})
}

// Key returns what loads this user's key, or makes it, when it is first called. Loading takes longer than sealing a short recording does.
func Key(config string) func() (*seal.Key, error) {
	return sync.OnceValues(func() (*seal.Key, error) {
		key, err := seal.LoadKey(recording.ConfigDir(config))
		if err != nil {
			return nil, fmt.Errorf("sealing key: %w", err)
		}
		return key, nil
	})
}

// SealDir seals what lies in dir, with the recording.json that says so.
func SealDir(ctx context.Context, dir string, load func() (*seal.Key, error), o *seal.Options) (*Sealing, error) {
	key, err := load()
	if err != nil {
		return nil, err
	}
	b, err := recording.ReadBounded(filepath.Join(dir, recording.ManifestName), recording.MaxManifest)
	if err != nil {
		return nil, err
	}
	if o.Manifest, err = withSealed(b); err != nil {
		return nil, err
	}
	o.Key = key
	d, err := seal.Seal(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	s := sealingOf(d)
	s.KeyMade = key.Made()
	return s, nil
}

// withSealed is the text of a recording.json whose "sealed" is true.
func withSealed(b []byte) ([]byte, error) {
	var s jsonscan.Scanner
	s.Reset(b)
	out, found := b, 0
	for s.Begin('{'); s.More('}'); {
		sealed := string(s.Key()) == "sealed"
		value := s.Raw()
		if end := s.Offset(); sealed {
			out = bytes.Join([][]byte{b[:end-len(value)], b[end:]}, []byte("true"))
			found++
		}
	}
	err := s.End()
	if err == nil && found != 1 {
		err = fmt.Errorf("it has the key \"sealed\" %d times, want once", found)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", recording.ManifestName, recording.ErrManifest, err)
	}
	return out, nil
}

// HalfSealed reports whether r says that it is not sealed, and its seal is that of the recording.json that was to come: whoever
// sealed it was killed before the last step.
func HalfSealed(r *recording.Recording) bool {
	if r.Manifest.Sealed || !r.Finished() {
		return false
	}
	d, err := seal.ReadDocument(r.Dir)
	if err != nil {
		return false
	}
	b, err := recording.ReadBounded(filepath.Join(r.Dir, recording.ManifestName), recording.MaxManifest)
	if err == nil {
		b, err = withSealed(b)
	}
	if err != nil {
		return false
	}
	for _, f := range d.Files {
		if f.Path == recording.ManifestName {
			return f.BLAKE3 == cas.Sum(b)
		}
	}
	return false
}

// SealedBy returns the name of the key that a recording's seal names, without verifying it; "" where it says that it has none, and
// false where it says that it has one that is not there or cannot be read.
func SealedBy(r *recording.Recording) (name string, ok bool) {
	if !r.Manifest.Sealed {
		return "", true
	}
	d, err := seal.ReadDocument(r.Dir)
	if err != nil {
		return "", false
	}
	return d.Key.Name(), true
}

// TrustedKeys returns the public keys that this machine's user seals with: seal.pub of the configuration directory. There are none
// where it is not there.
func TrustedKeys(config string) ([]seal.PublicKey, error) {
	keys, err := seal.ReadPublicKeys(KeyPath(config))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return keys, err
}

// KeyPath is the file with the public half of the user's sealing key.
func KeyPath(config string) string {
	return filepath.Join(recording.ConfigDir(config), seal.PublicKeyFile)
}

// A LoggedRecording is a recording that stands in a log of recordings.
type LoggedRecording struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	Entry   int64  `json:"entry"`
	Already bool   `json:"already"` // it stood there before
}

// AddToLog verifies the seal of each of recs and adds them to the log in dir, which this user's key signs. None is added where the seal
// of one does not hold; the error then wraps ErrSealBroken.
func AddToLog(ctx context.Context, dir string, recs []*recording.Recording) ([]LoggedRecording, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	key, err := seal.LoadKey(recording.ConfigDir(""))
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
		if keys, err = TrustedKeys(""); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: %w: name the public key of the log's owner with --key", dir, ErrNoKey)
	}
	c := &logChecker{find: find, dir: dir, quick: o.Quick}
	return recordlog.Verify(ctx, dir, &recordlog.VerifyOptions{
		Keys: Verifiers(keys), Witnesses: Verifiers(o.Witnesses), Since: o.Since, Recording: c.recording,
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
