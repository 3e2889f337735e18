package deck

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A moved is the recorded work tree in a directory of its own, where a replay outside the jail runs: without mounts no
// path can show anything else than what the disk has there. The zero moved moves nothing.
type moved struct {
	from, to string // of the work tree
}

// path is where a recorded path is now.
func (m moved) path(p string) string {
	if m.to == "" || !recording.Within(p, m.from) {
		return p
	}
	return m.to + strings.TrimPrefix(p, m.from)
}

// recorded is where a path of now was recorded.
func (m moved) recorded(p string) string {
	if m.to == "" || !recording.Within(p, m.to) {
		return p
	}
	return m.from + strings.TrimPrefix(p, m.to)
}

// env is env with the working directory where it is now.
func (m moved) env(env []string) []string {
	out := make([]string, len(env))
	for i, kv := range env {
		out[i] = kv
		if dir, ok := strings.CutPrefix(kv, "PWD="); ok {
			out[i] = "PWD=" + m.path(dir)
		}
	}
	return out
}

// notes lists the arguments and variables that still name the work tree where it was recorded.
func (m moved) notes(argv, env []string) []string {
	if m.to == "" {
		return nil
	}
	var names []string
	for i, a := range argv[1:] {
		if strings.Contains(a, m.from) {
			names = append(names, fmt.Sprintf("argument %d", i+1))
		}
	}
	for _, kv := range env {
		if name, value, _ := strings.Cut(kv, "="); name != "OLDPWD" && strings.Contains(value, m.from) && !strings.Contains(value, m.to) {
			names = append(names, "variable "+name)
		}
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s names %s: there the program met the disk as it is now, not the recorded tree", strings.Join(names, ", "), m.from)}
}

// restoreMoved puts the recorded work tree where it is moved to. What the snapshot does not cover shows through as it is
// now, as it does in the jail: as a link.
func (r *replayer) restoreMoved() error {
	if r.moved.to == "" || r.trees.before == nil {
		return nil
	}
	secret, err := files.Restore(r.trees.before, r.trees.store, r.moved.to)
	if err != nil {
		return fmt.Errorf("restoring the work tree: %w", err)
	}
	root, err := os.OpenRoot(r.moved.to)
	if err != nil {
		return err
	}
	defer root.Close()
	var scrubbed []string
	for _, path := range secret {
		own, err := r.restoreSecret(root, path)
		if err != nil {
			return fmt.Errorf("restoring %s: %w", path, err)
		}
		if !own {
			scrubbed = append(scrubbed, path)
		}
	}
	if r.trees.before, err = r.trees.before.WithStandIns(scrubbed, r.trees.store, r.s.scrub, r.reveal()); err != nil {
		return err
	}
	left := copyBudget{files: maxCopiedFiles, bytes: maxCopiedBytes}
	for _, n := range r.trees.before.NotCovered {
		if n.Reason != files.Excluded {
			r.showUncovered(root, filepath.FromSlash(n.Path), &left)
		}
	}
	return nil
}

// showUncovered shows what the snapshot left out as it is now: a copy, so that the disk keeps its own, or a link where that
// would be too much.
func (r *replayer) showUncovered(root *os.Root, path string, left *copyBudget) {
	r.trees.exclude = append(r.trees.exclude, filepath.Join(r.moved.to, path))
	from := filepath.Join(r.moved.from, path)
	if left.fits(from) {
		if err := copyInto(root, path, from); err != nil {
			r.notes = append(r.notes, fmt.Sprintf("%s is not there as it is on the disk (%v)", path, err))
		}
		return
	}
	if err := root.Symlink(from, path); err != nil {
		r.notes = append(r.notes, fmt.Sprintf("%s is not there (%v)", path, err))
		return
	}
	r.notes = append(r.notes, path+" is the disk's own, for it is too large to copy: what the replay wrote there stays")
}

// restoreSecret takes a file that holds a secret from the disk, while it is the recorded one; else its scrubbed form.
func (r *replayer) restoreSecret(root *os.Root, path string) (own bool, err error) {
	e, ok := r.trees.before.Lookup(path)
	if !ok {
		return true, nil
	}
	local := filepath.FromSlash(path)
	b, err := os.ReadFile(filepath.Join(r.moved.from, local))
	own = err == nil && r.s.scrub.KeyedDigest(b) == e.Secret
	if !own {
		r.altered = true
		r.unshown = true
		r.notes = append(r.notes, path+" was not shown as recorded (it holds a secret, and is not on the disk as it was)")
		if b, err = r.store.Get(e.Digest); err != nil {
			return false, err
		}
		if reveal := r.reveal(); reveal != nil {
			b = reveal(b)
		}
	}
	return own, root.WriteFile(local, b, e.Mode.FileMode().Perm())
}
