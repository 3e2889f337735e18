package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// Changes are the files of Git repositories that differ from a commit. Each repository that holds something a recording depends on is
// asked once. What no repository can tell of counts as changed.
type Changes struct {
	Since string // as it was asked for

	mu   sync.Mutex
	tops map[string]string   // of directories: the work tree that holds them, "" for none
	seen map[string][]string // of work trees: the changed files, relative and with slashes; nil where Git cannot tell
}

// ChangedSince makes Changes since a commit. The error says that the repository that holds dir does not know it; one that has no commit
// yet knows none, and there everything has changed.
func ChangedSince(ctx context.Context, dir, since string) (*Changes, error) {
	if _, err := git(ctx, dir, "rev-parse", "--quiet", "--verify", "HEAD"); err == nil {
		if _, err := git(ctx, dir, "rev-parse", "--verify", "--end-of-options", since+"^{commit}"); err != nil {
			return nil, fmt.Errorf("%s is no commit that this checkout has: where CI fetches the newest alone, have it fetch all (fetch-depth: 0): %w", since, err)
		}
	} else if _, err := git(ctx, dir, "rev-parse", "--show-toplevel"); err != nil {
		return nil, err
	}
	return &Changes{Since: since, tops: make(map[string]string), seen: make(map[string][]string)}, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}

// below lists what has changed at path and below it, relative to it; known is false where no repository can tell.
func (c *Changes) below(ctx context.Context, path string) (changed []string, known bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, false
	}
	abs = recording.Resolved(abs)
	top, all := c.of(ctx, filepath.Dir(abs))
	if recording.Exists(filepath.Join(abs, ".git")) { // path is a work tree itself
		top, all = c.of(ctx, abs)
	}
	rel, err := filepath.Rel(top, abs)
	if top == "" || all == nil || err != nil {
		return nil, false
	}
	rel = filepath.ToSlash(rel)
	for _, p := range all {
		if p == rel {
			changed = append(changed, ".")
		} else if in, ok := strings.CutPrefix(p, rel+"/"); ok || rel == "." {
			changed = append(changed, in)
		}
	}
	return changed, true
}

// of returns the work tree that holds dir and its changed files.
func (c *Changes) of(ctx context.Context, dir string) (top string, changed []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	top, asked := c.tops[dir]
	if !asked {
		if out, err := git(ctx, dir, "rev-parse", "--show-toplevel"); err == nil {
			top = recording.Resolved(strings.TrimSuffix(out, "\n"))
		}
		c.tops[dir] = top
	}
	if top == "" {
		return "", nil
	}
	if _, asked := c.seen[top]; !asked {
		c.seen[top] = changedIn(ctx, top, c.Since)
	}
	return top, c.seen[top]
}

// changedIn lists the files of a work tree that differ from a commit, those that are not tracked yet among them; nil where Git cannot tell.
func changedIn(ctx context.Context, top, since string) []string {
	changed := []string{}
	for _, args := range [][]string{{"diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=none", "--end-of-options", since, "--"}, {"ls-files", "-z", "--others", "--exclude-standard"}} {
		out, err := git(ctx, top, args...)
		if err != nil {
			return nil
		}
		for path := range strings.SplitSeq(out, "\x00") {
			if path != "" {
				changed = append(changed, path)
			}
		}
	}
	return changed
}

// touch reports whether a recording depends on one of the changes: on its own files, a tapedeck.yaml above them, its program, which is known
// by its digest, and where programs run over the work tree of now, which lies at tree, on each file of it that is in no recording.
func (c *Changes) touch(ctx context.Context, rec *recording.Recording, path string, treeNow bool, tree string) bool {
	if changed, known := c.below(ctx, path); !known || len(changed) > 0 || ignored(ctx, path) {
		return true
	}
	if c.configChanged(ctx, path) || programChanged(rec.Manifest, treeNow, tree) || c.argumentChanged(ctx, rec.Manifest, tree) {
		return true
	}
	if !treeNow {
		return false
	}
	changed, known := c.below(ctx, tree)
	recorded, err := rec.Tree()
	return !known || err != nil || slices.ContainsFunc(changed, func(p string) bool { return !inRecording(recorded, tree, p) })
}

// ignored reports whether Git is told to look away from a path: whether that has changed nobody knows.
func ignored(ctx context.Context, path string) bool {
	_, err := git(ctx, filepath.Dir(path), "check-ignore", "--quiet", filepath.Base(path))
	return err == nil
}

// argumentChanged reports whether a file that the command line names has changed, as far as a repository can tell: one outside the work tree (a
// script, say, whose interpreter is the program), or one in it that Git ignores, which a replay finds as it is on the disk. tree is where the
// work tree lies now, whose other files touch looks at.
func (c *Changes) argumentChanged(ctx context.Context, m *recording.Manifest, tree string) bool {
	return slices.ContainsFunc(m.Argv[min(1, len(m.Argv)):], func(path string) bool {
		if !filepath.IsAbs(path) {
			path = filepath.Join(m.Cwd, path)
		}
		inTree := m.Roots.Tree != "" && recording.Within(path, m.Roots.Tree)
		if inTree {
			path = tree + strings.TrimPrefix(path, m.Roots.Tree)
		}
		st, err := os.Stat(path)
		switch {
		case err != nil || !st.Mode().IsRegular():
			return false
		case inTree:
			return ignored(ctx, path)
		}
		changed, known := c.below(ctx, path)
		return !known || len(changed) > 0
	})
}

// configChanged reports whether a tapedeck.yaml above path has changed, or has gone.
func (c *Changes) configChanged(ctx context.Context, path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return true
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if changed, _ := c.below(ctx, filepath.Join(dir, recording.ConfigName)); len(changed) > 0 {
			return true
		}
		if dir == filepath.Dir(dir) || recording.Exists(filepath.Join(dir, ".git")) {
			return false
		}
	}
}

// programChanged reports whether the program is another file than was recorded. One of the recorded work tree is restored with it.
func programChanged(m *recording.Manifest, treeNow bool, tree string) bool {
	path := m.Program.Path
	if root := m.Roots.Tree; recording.Within(path, root) {
		if !treeNow {
			return false
		}
		path = tree + strings.TrimPrefix(path, root)
	}
	return program.DigestOf(path).String() != m.Program.Digest
}

// inRecording reports whether the file at path below tree belongs to a recording, or is a packed one that the run did not find there.
func inRecording(recorded *files.Tree, tree, path string) bool {
	at := filepath.Join(tree, filepath.FromSlash(path))
	for dir := filepath.Dir(at); recording.Within(dir, tree); dir = filepath.Dir(dir) {
		if filepath.Base(dir) == library.Name || isRecording(dir) {
			return true
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	found := false
	if recorded != nil {
		_, found = recorded.Lookup(path)
	}
	return !found && library.LooksPacked(at)
}
