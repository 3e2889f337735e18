package deck

import (
	"errors"
	"fmt"
	"io/fs"

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
		n += keyed(t)
	}
	return r.otherKeyAt(config, n)
}

// otherKeyAt is OtherKey of a recording that holds n such digests.
func (r *Recording) otherKeyAt(config string, n int) string {
	path := keyPath(config)
	switch key, err := scrub.ReadKey(path); {
	case err == nil:
		return r.otherKey(key.ID(), fmt.Sprintf("the one in %s is %s", path, key.ID()), n)
	case errors.Is(err, fs.ErrNotExist):
		return r.otherKey("", "there is none in "+path, n)
	default:
		return r.otherKey("", "the one here cannot be taken: "+err.Error(), n)
	}
}

// otherKey is OtherKey where have names the key that is here, and is says so.
func (r *Recording) otherKey(have, is string, n int) string {
	if n == 0 || !r.madeWithOther(have) {
		return ""
	}
	return fmt.Sprintf("this recording was made with another project key (%s, and %s): nothing tells whether %d of its files, which held "+
		"secrets, are still the same on the disk; put the key that it was made with there, or go on without these files",
		r.Manifest.ScrubKey, is, n)
}

// notSought says the same of n secrets that a replay seeks by their keyed digests.
func (r *Recording) notSought(have, is string, n int) string {
	if n == 0 || !r.madeWithOther(have) {
		return ""
	}
	return fmt.Sprintf("this recording was made with another project key (%s, and %s): nothing tells again %d of its secrets, which stood in "+
		"it before they were known; where the program brings one the replay diverges, unless the key that it was made with is put there",
		r.Manifest.ScrubKey, is, n)
}

// madeWithOther reports whether the recording was made with another key than the one that have names.
func (r *Recording) madeWithOther(have string) bool {
	return r.Manifest.ScrubKey != "" && r.Manifest.ScrubKey != have
}

// keyed counts the files of t that are known by a keyed digest.
func keyed(t *files.Tree) (n int) {
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
