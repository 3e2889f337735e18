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
	"github.com/tapedeck-dev/tapedeck/axis/files"
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
