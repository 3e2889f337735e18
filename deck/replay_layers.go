package deck

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
)

// overlaid lists the directories that the program may change: they get layers, so that nothing outlives the replay. Those of
// which something is recorded are among them even where their paths are absent here.
func (r *replayer) overlaid() []string {
	m := r.rec.Manifest
	dirs := m.Roots.writable(m.Writable)
	for _, f := range m.Roots.followed(m.Writable) {
		recorded := r.found[f.dir] != nil || f.dir == m.Roots.Tree
		if recorded && !slices.Contains(dirs, f.dir) {
			dirs = append(dirs, f.dir)
		}
	}
	return dirs
}

// mountPlan lays a layer over every directory that the program may change, and what the run found there over the disk.
func (r *replayer) mountPlan(p *run) error {
	for i, d := range r.overlaid() {
		dir := filepath.Join(r.scratch.dir, strconv.Itoa(i))
		lowers, err := r.lowers(d, dir)
		if err != nil {
			return err
		}
		o, err := overlayOver(d, dir, lowers...)
		if err != nil {
			return err
		}
		p.overlays = append(p.overlays, o)
	}
	return nil
}

// lowers lists the layers that a directory is shown with, topmost first: what the run found at paths that it changed, of the
// work tree all that was recorded, and the directory as it is now.
func (r *replayer) lowers(d, dir string) (out []string, err error) {
	if t := r.found[d]; t != nil {
		layer := filepath.Join(dir, "found")
		if err := r.foundLayer(t, d, layer); err != nil {
			return nil, err
		}
		out = append(out, layer)
	}
	if d == r.rec.Manifest.Roots.Tree && r.trees.before != nil {
		layer := filepath.Join(dir, "recorded")
		if err := r.layer(layer); err != nil {
			return nil, err
		}
		out = append(out, layer)
	}
	if isDir(d) {
		out = append(out, d)
	}
	return out, nil
}

// layer makes the recorded work tree: what differs from the disk as it is now.
func (r *replayer) layer(layer string) error {
	if !r.o.TreeNow {
		r.trees.at = time.Now()
	}
	stats, err := files.BuildLayer(r.trees.before, r.trees.store, r.rec.Manifest.Roots.Tree, layer, &files.LayerOptions{
		Scrubber: r.s.scrub, ScrubID: r.s.id, CachePath: r.trees.cache, Exclude: r.trees.exclude,
		Changed: r.changed, Reveal: r.reveal(),
	})
	if err != nil {
		return fmt.Errorf("restoring the work tree: %w", err)
	}
	return r.noteLayer(stats)
}

// foundLayer makes what the run found at the paths that it changed in a directory. What it only read there is as it is now.
func (r *replayer) foundLayer(t *files.Tree, real, layer string) error {
	f := r.followed(real)
	stats, err := files.BuildLayer(t, r.trees.store, real, layer, &files.LayerOptions{
		Scrubber: r.s.scrub, Exclude: r.trees.exclude, Changed: r.changedIn(f), Reveal: r.reveal(),
	})
	if err != nil {
		return fmt.Errorf("restoring what the run found in %s: %w", real, err)
	}
	for _, n := range stats.Notes {
		r.altered = true
		r.notes = append(r.notes, fmt.Sprintf("%s was not shown as the run found it (%s)", f.prefix+n.Path, n.Why))
	}
	if n := stats.Differing; n > 0 {
		r.notes = append(r.notes, fmt.Sprintf("what the run changed in %s was shown as it found it; on the disk %s (%s); what it only "+
			"read there is as it is now", real, differNow(n), strings.Join(stats.Differ, ", ")))
	}
	return nil
}

func (r *replayer) followed(dir string) followed {
	m := r.rec.Manifest
	all := m.Roots.followed(m.Writable)
	return all[slices.IndexFunc(all, func(f followed) bool { return f.dir == dir })]
}

// changedIn are the paths, relative to a directory, that the recorded run changed there.
func (r *replayer) changedIn(f followed) map[string]bool {
	out := make(map[string]bool)
	for path := range r.changed {
		if rel, ok := strings.CutPrefix(path, f.prefix); ok {
			out[rel] = true
		}
	}
	return out
}

// noteLayer notes what of the work tree is not shown as recorded, and what of it differs on the disk.
func (r *replayer) noteLayer(stats *files.LayerStats) error {
	var scrubbed []string
	r.altered = r.altered || len(stats.Notes) > 0
	for _, n := range stats.Notes {
		r.notes = append(r.notes, fmt.Sprintf("%s was not shown as recorded (%s)", n.Path, n.Why))
		if n.Why == files.NoteScrubbed {
			scrubbed = append(scrubbed, n.Path)
		}
	}
	if n := stats.Differing; n > 0 && isDir(r.rec.Manifest.Roots.Tree) {
		r.notes = append(r.notes, fmt.Sprintf("the work tree was shown as recorded; on the disk %s (%s), which --tree now would show",
			differNow(n), strings.Join(stats.Differ, ", ")))
	}
	var err error
	r.trees.before, err = r.trees.before.WithStandIns(scrubbed, r.trees.store, r.s.scrub, r.reveal())
	return err
}

func differNow(n int) string {
	if n == 1 {
		return "one file differs now"
	}
	return fmt.Sprintf("%d files differ now", n)
}
