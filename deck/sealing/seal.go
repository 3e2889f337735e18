// Package sealing gives a recording its seal, tells whose it is, and keeps the log of sealed recordings. The seal itself is package
// seal's, the log's form package recordlog's.
//
// Goals: whoever is killed while a recording is sealed leaves no lie; a recording whose seal does not hold gets no other unless it
// is asked for.
package sealing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// The order in which a recording is sealed, so that whoever is killed meanwhile leaves no lie:
//
//	recording.json {"state":"finished","sealed":false}   the recording is whole, and unsealed
//	seal.tiles/                                          says nothing without seal.json
//	seal.json                                            over the recording.json to come, which says "sealed":true
//	recording.json {"state":"finished","sealed":true}    replaced atomically, last
//
// Until the last step the recording says that it is not sealed, and is; Seal then seals it. What lies between the last two steps
// is told from a sealed recording that somebody changed by the digest of recording.json that seal.json has.

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
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%s: %w: it is no object", recording.ManifestName, recording.ErrManifest)
	}
	out, found := b, false
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", recording.ManifestName, recording.ErrManifest, err)
		}
		if key != "sealed" {
			continue
		}
		if found {
			return nil, fmt.Errorf("%s: %w: the key \"sealed\" stands twice", recording.ManifestName, recording.ErrManifest)
		}
		found = true
		end := dec.InputOffset()
		out = bytes.Join([][]byte{b[:end-int64(len(value))], b[end:]}, []byte("true"))
	}
	if !found {
		return nil, fmt.Errorf("%s: %w: it has no key \"sealed\"", recording.ManifestName, recording.ErrManifest)
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
