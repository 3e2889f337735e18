package bench

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// untar unpacks a tree.
type untar struct {
	files, few int    // few of a short run
	suffix     string // of the archive: .tar or .tar.gz
	archive    string // its path, once prepared
}

func (u *untar) tell(short bool) string {
	n := u.files
	if short {
		n = u.few
	}
	return fmt.Sprintf("`tar -xf tree%s` into an empty work tree; %s files of source, 1 to 16 KB", u.suffix, count(float64(n)))
}

func (u *untar) prepare(_ context.Context, e *env, _ *place) error {
	u.archive = filepath.Join(e.tmp, "tree"+u.suffix)
	return sourceTree{pick(e, u.files, u.few)}.archive(u.archive)
}

func (*untar) clean(e *env, p *place) error { return e.clear(p.work(), p.temp()) }

func (u *untar) command(*place) (argv, env []string) {
	return []string{"tar", "-xf", u.archive}, nil
}

// clone clones a repository of this disk over Git's own protocol, as from another machine.
type clone struct {
	files, few int
	repository string // once prepared
}

func (c *clone) tell(short bool) string {
	n := c.files
	if short {
		n = c.few
	}
	return fmt.Sprintf("`git clone file://…` of a repository of %s files and %d commits into an empty work tree", count(float64(n)), cloneCommits)
}

const cloneCommits = 5

func (c *clone) prepare(ctx context.Context, e *env, _ *place) error {
	dir, err := e.dir("repository")
	if err != nil {
		return err
	}
	c.repository = dir
	if err := e.git(ctx, dir, "init", "-q", "-b", "main"); err != nil {
		return err
	}
	if err := (sourceTree{pick(e, c.files, c.few)}).write(dir); err != nil {
		return err
	}
	for i := range cloneCommits {
		if err := os.WriteFile(filepath.Join(dir, "VERSION"), fmt.Appendln(nil, i), 0o644); err != nil {
			return err
		}
		if err := errors.Join(e.git(ctx, dir, "add", "-A"), e.git(ctx, dir, "commit", "-q", "-m", "version")); err != nil {
			return err
		}
	}
	return nil
}

// git runs Git on a repository of ours.
func (e *env) git(ctx context.Context, dir string, args ...string) error {
	own := []string{"-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0", "-c", "safe.directory=*"}
	_, err := do(e.command(ctx, dir, "git", append(own, args...)...))
	return err
}

func (*clone) clean(e *env, p *place) error { return e.clear(p.work(), p.temp()) }

func (c *clone) command(*place) (argv, env []string) {
	return []string{"git", "clone", "-q", "file://" + c.repository, "clone"}, nil
}

// npmInstall installs a set of packages from npm's cache into a Git checkout that ignores node_modules.
type npmInstall struct{}

//go:embed npm/package.json npm/package-lock.json npm/.npmrc
var npmFiles embed.FS

// npmPackages is how many the lock file names.
var npmPackages = func() int {
	lock, err := npmFiles.ReadFile("npm/package-lock.json")
	if err != nil {
		panic(err) // it is embedded
	}
	return strings.Count(string(lock), `"node_modules/`)
}()

func (npmInstall) tell(bool) string {
	return fmt.Sprintf("`npm ci --offline --ignore-scripts` of %d packages from a cache in HOME, in a Git checkout that ignores node_modules",
		npmPackages)
}

func (n npmInstall) prepare(ctx context.Context, e *env, p *place) error {
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		b, err := npmFiles.ReadFile("npm/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(p.work(), name), b, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(p.work(), ".gitignore"), []byte("node_modules/\n"), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "packages"}} {
		if err := e.git(ctx, p.work(), args...); err != nil {
			return err
		}
	}
	cached, err := e.npmCache(ctx)
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(p.home(), ".npm"), os.DirFS(cached))
}

func (npmInstall) clean(e *env, p *place) error {
	return errors.Join(e.clear(p.temp()), e.putAway(filepath.Join(p.work(), "node_modules"), filepath.Join(p.work(), ".tapedeck"),
		filepath.Join(p.home(), ".npm", "_logs")))
}

func (npmInstall) command(p *place) (argv, env []string) {
	return []string{"npm", "ci", "--offline", "--cache", filepath.Join(p.home(), ".npm"), "--ignore-scripts", "--no-audit", "--no-fund",
		"--loglevel", "error"}, nil
}

// npmCache fetches the packages, once, and returns the cache that holds them.
func (e *env) npmCache(ctx context.Context) (string, error) {
	if e.npm == (output{}) {
		e.npm.text, e.npm.err = e.fetchPackages(ctx)
	}
	return e.npm.text, e.npm.err
}

func (e *env) fetchPackages(ctx context.Context) (string, error) {
	dir, err := e.dir("packages")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, npmFiles); err != nil {
		return "", err
	}
	cache := filepath.Join(dir, "cache")
	cmd := e.command(ctx, filepath.Join(dir, "npm"), "npm", "ci", "--cache", cache, "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Env = os.Environ() // the registry is the caller's
	_, err = do(cmd)
	return cache, err
}

// needPackages is a need: npm, and a registry that has the packages.
func needPackages(ctx context.Context, e *env) string {
	if why := needNode(ctx, e); why != "" {
		return why
	}
	if _, err := e.npmCache(ctx); err != nil {
		return fmt.Sprintf("npm and the packages of integration/bench/npm from its registry: %v", err)
	}
	return ""
}

// goBuild builds this project with an empty build cache.
type goBuild struct {
	module string // where the modules are, once prepared
	long   string // the package that is built
	short  string // the same of a short run
	pkg    string // the chosen one
}

func (b *goBuild) tell(short bool) string {
	pkg := b.long
	if short {
		pkg = b.short
	}
	return fmt.Sprintf("`go build %s` of this project with an empty GOCACHE in HOME, the modules in their cache", pkg)
}

func (b *goBuild) prepare(ctx context.Context, e *env, p *place) error {
	b.pkg = pick(e, b.long, b.short)
	cmd := exec.CommandContext(ctx, "go", "env", "GOMODCACHE")
	cmd.Dir = e.root
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go env GOMODCACHE: %w", err)
	}
	b.module = strings.TrimSpace(string(out))
	cmd = exec.CommandContext(ctx, "go", "mod", "download")
	cmd.Dir = e.root
	if _, err := do(cmd); err != nil {
		return err
	}
	return e.git(ctx, p.work(), "clone", "-q", "--shared", e.root, ".")
}

func (*goBuild) clean(e *env, p *place) error {
	return errors.Join(e.clear(p.home(), p.temp()), e.putAway(filepath.Join(p.work(), ".tapedeck")))
}

func (b *goBuild) command(p *place) (argv, env []string) {
	env = []string{"GOMODCACHE=" + b.module, "GOCACHE=" + filepath.Join(p.home(), ".cache", "go-build"), "GOFLAGS=-mod=mod", "GOPROXY=off",
		"GOTOOLCHAIN=local", "CGO_ENABLED=0"}
	return []string{"go", "build", "-buildvcs=false", "-o", filepath.Join(p.temp(), "built"), b.pkg}, env
}
