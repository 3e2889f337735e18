package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

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
