package files

import (
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// WithStandIns returns the tree as a snapshot sees it where the secret files at paths are shown in their scrubbed form, for
// want of their true bytes: what a run changes is told from what stood there, not from what should have. What such a
// snapshot stores is put into store. reveal makes what is shown of what is stored, as LayerOptions.Reveal does; nil shows it
// as it is. t is not changed.
func (t *Tree) WithStandIns(paths []string, store cas.Store, s Scrubber, reveal func([]byte) []byte) (*Tree, error) {
	out := *t
	out.Entries = slices.Clone(t.Entries)
	for _, path := range paths {
		e, ok := out.Lookup(path)
		if !ok || e.Secret == "" {
			continue
		}
		shown, err := store.Get(e.Digest)
		if err != nil {
			return nil, fmt.Errorf("files: %s: %w", path, err)
		}
		if reveal != nil {
			shown = reveal(shown)
		}
		stored, secret, err := hideContent(s, path, shown)
		if err != nil {
			return nil, fmt.Errorf("files: %s: %w", path, err)
		}
		if e.Digest, err = lasting(store).Put(stored); err != nil {
			return nil, fmt.Errorf("files: %s: %w", path, err)
		}
		e.Size, e.Secret = int64(len(stored)), secret
	}
	return &out, nil
}
