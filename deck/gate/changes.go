package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// Changes are the files of a Git repository that differ from one of its commits.
type Changes struct {
	Since string // as it was asked for
	top   string // the repository's work tree, no link in it
	paths map[string]bool
}

// ChangedSince asks Git which files of the work tree that holds dir differ from the commit since, those that it does not track yet
// among them.
func ChangedSince(ctx context.Context, dir, since string) (*Changes, error) {
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	c := &Changes{Since: since, top: strings.TrimSuffix(top, "\n"), paths: make(map[string]bool)}
	for _, args := range [][]string{{"diff", "--name-only", "-z", "--no-renames", "--end-of-options", since, "--"}, {"ls-files", "-z", "--others", "--exclude-standard"}} {
		out, err := git(ctx, c.top, args...)
		if err != nil {
			return nil, err
		}
		for path := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			c.paths[path] = path != ""
		}
	}
	return c, nil
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

// touch reports whether a recording depends on one of the changes: on its own files, the tapedeck.yaml of config, the recorded program,
// and where programs run over the work tree of now each file that stood in the recorded one.
func (c *Changes) touch(rec *recording.Recording, at *Case, config string, treeNow bool) (bool, error) {
	own, err := filepath.Abs(at.Path)
	if err != nil {
		return false, err
	}
	if real, err := filepath.EvalSymlinks(own); err == nil {
		own = real
	}
	if c.below(own) || c.below(rec.Manifest.Program.Path) || config != "" && c.below(filepath.Join(config, recording.ConfigName)) {
		return true, nil
	}
	if !treeNow {
		return false, nil
	}
	tree, err := rec.Tree()
	if err != nil || tree == nil {
		return err == nil, err // one without a work tree may depend on anything
	}
	for path := range c.paths {
		if _, there := tree.Lookup(path); there {
			return true, nil
		}
	}
	return false, nil
}

// below reports whether a path, or something below it, has changed.
func (c *Changes) below(path string) bool {
	rel, err := filepath.Rel(c.top, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	rel = filepath.ToSlash(rel)
	for changed := range c.paths {
		if changed == rel || strings.HasPrefix(changed, rel+"/") {
			return true
		}
	}
	return false
}
