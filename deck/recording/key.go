package recording

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/adrg/xdg"
	"github.com/tapedeck-dev/tapedeck/axis/ambient"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// OtherKey says that the recording holds digests of files with secrets that were made with another project key than the one in the
// configuration directory config (the user's where empty), and how to go on. It is "" where there are none, where the key is the
// same, and where a recording does not name its key. No key is made.
func (r *Recording) OtherKey(config string) string {
	trees, err := r.allTrees()
	if err != nil {
		return "" // verify tells
	}
	n := 0
	for _, t := range trees {
		n += CountKeyed(t)
	}
	return r.OtherKeyIn(config, n)
}

// OtherKeyIn is OtherKey of a recording that holds n such digests.
func (r *Recording) OtherKeyIn(config string, n int) string {
	return r.otherKey(config, n, "nothing tells whether %d of its files, which held secrets, are still the same on the disk; put the key that it was "+
		"made with there, or go on without these files")
}

// UntoldSecrets says the same of n secrets that a replay seeks by their keyed digests.
func (r *Recording) UntoldSecrets(config string, n int) string {
	return r.otherKey(config, n, "nothing tells again %d of its secrets, which stood in it before they were known; where the program brings one "+
		"the replay diverges, unless the key that it was made with is put there")
}

// otherKey says of n things what follows from another key.
func (r *Recording) otherKey(config string, n int, follows string) string {
	path, id := KeyPath(config), ""
	is := "there is none in " + path
	switch key, err := scrub.ReadKey(path); {
	case err == nil:
		id, is = key.ID(), fmt.Sprintf("the one in %s is %s", path, key.ID())
	case !errors.Is(err, fs.ErrNotExist):
		is = "the one here cannot be taken: " + err.Error()
	}
	if n == 0 || r.Manifest.ScrubKey == "" || r.Manifest.ScrubKey == id {
		return ""
	}
	return fmt.Sprintf("this recording was made with another project key (%s, and %s): "+follows, r.Manifest.ScrubKey, is, n)
}

// CountKeyed counts the files of t that are known by a keyed digest.
func CountKeyed(t *files.Tree) (n int) {
	if t == nil {
		return 0
	}
	for i := range t.Entries {
		if t.Entries[i].Secret != "" {
			n++
		}
	}
	return n
}

// LoadKey reads the project's key, or makes it. Where the user has no place to keep one (no HOME, a read-only one) the
// key is for this run only: placeholders hide as well, and differ from those of other runs.
func LoadKey(config string) (scrub.Key, error) {
	key, err := scrub.LoadKey(KeyPath(config))
	if err != nil && config == "" && homeless(err) {
		rand.Read(key[:]) // never fails (crypto/rand)
		return key, nil
	}
	if err != nil {
		return key, fmt.Errorf("scrub key: %w", err)
	}
	return key, nil
}

// homeless reports that a configuration directory cannot be made, rather than that what is in it is wrong.
func homeless(err error) bool {
	if _, errStat := os.Stat(KeyPath("")); errStat == nil {
		return false
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR)
}

// KeyPath is the file of the project's key.
func KeyPath(config string) string { return filepath.Join(ConfigDir(config), "scrub.key") }

// ConfigDir is where the keys lie. It is absolute where HOME is not: what a jail covers has no other name.
func ConfigDir(set string) string {
	home := cmp.Or(xdg.ConfigHome, filepath.Join(os.Getenv("HOME"), ".config")) // xdg knows no relative ones
	dir := cmp.Or(set, filepath.Join(home, "tapedeck"))
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// SeedName is the file that holds the seed of one recording, for a machine that has not the project's key: it is there where somebody
// packed it too, and nowhere else.
const SeedName = "run.seed"

// ErrNoSeed is wrapped by the error of a recording whose seed nobody here has.
var ErrNoSeed = errors.New("the seed of its random numbers is not here")

// Seed is what the random bytes of the run are made from: that in its directory, or the one that follows from the project's key. The
// error wraps ErrNoSeed where the run had none, or key is another project's.
func (r *Recording) Seed(key scrub.Key) (*ambient.Seed, error) {
	if seed, err := r.packedSeed(); seed != nil || err != nil {
		return seed, err
	}
	switch {
	case !r.Manifest.Axes["random"].On:
		return nil, fmt.Errorf("%s: %w: the run drew the kernel's", r.Dir, ErrNoSeed)
	case r.Manifest.ScrubKey != key.ID():
		return nil, fmt.Errorf("%s: %w: it was recorded with another project key (%s)", r.Dir, ErrNoSeed, r.Manifest.ScrubKey)
	}
	seed := ambient.NewSeed(key[:], r.Manifest.SeededBy())
	return &seed, nil
}

func (r *Recording) packedSeed() (*ambient.Seed, error) {
	const enough = 1 << 10
	path := filepath.Join(r.Dir, SeedName)
	text, err := ReadBounded(path, enough)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	seed := new(ambient.Seed)
	if err == nil {
		err = seed.UnmarshalText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; without the file the project's key is asked", path, err)
	}
	return seed, nil
}

// PassSeed puts the seed that lies in the directory of r, where one does, into that of a run which drew from it again.
func (r *Recording) PassSeed(dir string) error {
	seed, err := r.packedSeed()
	if seed == nil || err != nil {
		return err
	}
	text, _ := seed.MarshalText() // never fails
	return durable.WriteFile(filepath.Join(dir, SeedName), text, &durable.Options{Mode: 0o600})
}
