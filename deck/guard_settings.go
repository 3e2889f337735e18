package deck

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// The bounds of learnSettings: files, bytes of one, directories below the work tree, and entries that are looked at.
const (
	maxSettings     = 64
	maxSettingsFile = 64 << 10
	maxSettingsDeep = 4
	maxSettingsSeen = 20_000
)

// packages are directories of what others wrote, which holds no credentials of this project, and of our own.
var packages = []string{".git", ".hg", ".tapedeck", "node_modules", "vendor", ".venv", "venv", "site-packages", "__pycache__"}

// learnSettings makes known what names in the credential files (.env and their like) of the work tree at root give away: the
// program may print or send them. It comes before anything is written, for what stands in those files is looked for everywhere;
// ignored files are read as well, since the program reads them too. Of recorded, the tree of a replay (nil for none), a file
// that stands there otherwise now is passed by: the program does not get it.
func (g *guard) learnSettings(root string, recorded *files.Tree) {
	for _, digest := range g.settings(root, recorded) {
		g.id += " " + digest
	}
	g.begun = g.scrub.Mark()
}

// learnWritten does the same at the end of a recording, for the files that the run wrote: what they give away became known late.
func (g *guard) learnWritten(root string) { g.settings(root, nil) }

// settings returns the keyed digests of the files that told something.
func (g *guard) settings(root string, recorded *files.Tree) (digests []string) {
	if root == "" {
		return nil
	}
	left, seen := maxSettings, 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxSettingsSeen || left == 0 {
			return fs.SkipAll
		}
		name, errRel := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil || errRel != nil:
			return nil // what cannot be read the snapshot lists
		case d.IsDir() && name != "." && (slices.Contains(packages, d.Name()) || strings.Count(name, "/") >= maxSettingsDeep):
			return fs.SkipDir
		case !d.Type().IsRegular() || !g.scrub.CredentialFile(path):
			return nil
		}
		info, err := os.Lstat(path)
		if err != nil || info.Size() > maxSettingsFile {
			return nil
		}
		b, err := readBounded(path, maxSettingsFile)
		if err == nil && asRecorded(recorded, name, g.scrub.KeyedDigest(b)) {
			left--
			if g.scrub.LearnFile(path, b) > 0 {
				digests = append(digests, g.scrub.KeyedDigest(b))
			}
		}
		return nil
	})
	return digests
}

// asRecorded tells whether a file with that keyed digest is the one that t has under name; one that t has not is ignored there,
// and stands in a replay as it is now.
func asRecorded(t *files.Tree, name, digest string) bool {
	if t == nil {
		return true
	}
	for i := range t.Entries {
		if t.Entries[i].Path == name {
			return t.Entries[i].Secret == digest
		}
	}
	return true
}
