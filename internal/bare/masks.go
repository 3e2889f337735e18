package bare

import (
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// NewMasker returns what masks the requests of a bare tape before they are compared: o (nil is what package scrub knows) with the
// directories filled in that it leaves empty. The error is of a mask of o that cannot be.
func NewMasker(o *masks.Options) (*masks.Masker, error) {
	var all masks.Options
	if o != nil {
		all = *o
	}
	if err := all.Check(); err != nil {
		return nil, err
	}
	fillRoots(&all)
	return masks.New(&all), nil
}

// fillRoots names the directories whose paths differ from one developer to the next.
func fillRoots(m *masks.Options) {
	if m.Home == "" {
		m.Home, _ = os.UserHomeDir() // none is masked where there is none
	}
	if m.Temp == "" {
		m.Temp = os.TempDir()
	}
	if m.WorkTree == "" {
		m.WorkTree = workTree()
	}
}

// workTree is the nearest directory above the working directory that holds .git, else go.mod; "" for none.
func workTree() string {
	wd, err := os.Getwd()
	if err != nil {
		return ""
	}
	for _, mark := range []string{".git", "go.mod"} {
		for dir := wd; ; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return ""
}
