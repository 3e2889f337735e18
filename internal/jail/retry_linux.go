package jail

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxPlans is how often a start begins anew because something was mounted, or unmounted, below an overlay meanwhile.
const maxPlans = 5

// startPlanned starts a jail by a plan, and by newer ones as long as it fails and the host's mounts are others than those
// of the plan. Once they may be the same: what was in the way, or was looked for, may have come and gone in between.
func startPlanned(ctx context.Context, c *Config, plan *mountPlan) (*Jail, error) {
	same := 0
	filled := hasFilledLayer(c) // nobody could tell what a start that failed left there
	for range maxPlans - 1 {
		j, err := startOnce(ctx, c, plan)
		var setup *SetupError
		if filled || !errors.As(err, &setup) {
			return j, err
		}
		newer, errPlan := planMounts(c)
		if errPlan != nil || emptyLayers(c) != nil {
			return nil, err
		}
		if newer.sameMounts(plan) {
			same++
		}
		if same > 1 || ctx.Err() != nil {
			return nil, err
		}
		plan = newer
	}
	return startOnce(ctx, c, plan)
}

// hasFilledLayer reports whether an upper layer is not empty before the start.
func hasFilledLayer(c *Config) bool {
	return slices.ContainsFunc(c.Overlays, func(o Overlay) bool {
		entries, err := os.ReadDir(o.Upper)
		return err != nil || len(entries) > 0
	})
}

// emptyLayers takes away what a start that failed left in the layers' directories.
func emptyLayers(c *Config) error {
	for _, o := range c.Overlays {
		if err := removeLayer(filepath.Join(filepath.Dir(o.Upper), submountsDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, dir := range []string{o.Upper, o.Work} {
			entries, err := os.ReadDir(dir)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if err := removeLayer(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeLayer removes a tree in which the kernel may have left directories that their owner may not enter.
func removeLayer(path string) error {
	err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}
