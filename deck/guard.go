package deck

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/adrg/xdg"
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// A guard knows the secrets and the volatile facts of one run. Everything that a run writes goes through it.
type guard struct {
	scrub *scrub.Scrubber
	mask  *masks.Masker
	class exchange.Classifier
	mcp   *mcp.Classifier // class, where MCP is followed; nil where it is not
	key   scrub.Key       // the project's
	id    string          // names what scrub looks for: a stat cache made for other secrets says nothing about these

	masking *Masking
	roots   *Roots
	begun   scrub.Mark // what was known when the first byte was written
}

// newGuard returns the guard of a program with these arguments and this environment, in the working directory cwd.
func newGuard(config, cwd string, args, env []string, roots *Roots, masking *Masking) (*guard, error) {
	key, err := loadKey(config)
	if err != nil {
		return nil, err
	}
	s := scrub.New(key, &scrub.Options{Env: env, Harmless: pathsFrom(cwd)})
	learnArgs(s, args)
	return guardOf(key, s, args, env, roots, masking)
}

// newReplayGuard returns the guard of a replay: its secrets read as those of the recording, whatever their values.
func newReplayGuard(config, cwd string, p *played, roots *Roots, masking *Masking) (*guard, error) {
	if err := p.checkRules(); err != nil {
		return nil, err
	}
	key, err := loadKey(config)
	if err != nil {
		return nil, err
	}
	s := scrub.New(key, &scrub.Options{Rules: p.rules, Harmless: p.harmless(cwd)})
	for _, a := range p.aliases {
		if !s.AddAlias(a.placeholder, a.value) {
			s.AddSecret(a.name, a.value)
		}
	}
	s.AddDummies(p.dummies)
	for _, kv := range p.env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			s.LearnVar(name, value)
		}
	}
	learnArgs(s, p.argv[1:])
	return guardOf(key, s, p.argv[1:], p.env, roots, masking)
}

// followMCP has MCP over HTTP known for what it is, from now on.
func (g *guard) followMCP() {
	g.mcp = mcp.NewClassifier(g.class, g.mask)
	g.class = g.mcp
}

// classifier returns a new one of the kind that a run has whose masks are m: one that follows MCP or not.
func classifier(m *masks.Masker, followsMCP bool) exchange.Classifier {
	class := llm.NewClassifier(m)
	if followsMCP {
		return mcp.NewClassifier(class, m)
	}
	return class
}

// pathsFrom tells what is a path, seen from the directory cwd.
func pathsFrom(cwd string) func(value string) bool {
	return names.PathsFrom(cwd, func(path string) bool { _, err := os.Lstat(path); return err == nil })
}

func guardOf(key scrub.Key, s *scrub.Scrubber, args, env []string, roots *Roots, masking *Masking) (*guard, error) {
	m, err := masking.masker(roots)
	if err != nil {
		return nil, err
	}
	return &guard{
		scrub: s, key: key, mask: m, class: llm.NewClassifier(m), id: guardID(s, args, env), masking: masking, roots: roots, begun: s.Mark(),
	}, nil
}

// guardID names the secrets of s without telling them.
func guardID(s *scrub.Scrubber, args, env []string) string {
	var known strings.Builder
	for _, v := range s.Env(env) {
		if v.Secret {
			fmt.Fprintf(&known, "%s=%s\n", v.Name, v.Value)
		}
	}
	for _, a := range args { // one without a secret says nothing of what is looked for: every prompt is another
		if hidden := s.String(a); hidden != a {
			fmt.Fprintf(&known, "%q\n", hidden)
		}
	}
	return fmt.Sprintf("%s rules %d %s", Producer, s.Rules(), s.KeyedDigest([]byte(known.String())))
}

// learnFiles makes known what the secret files of the recorded tree t hold, as far as they stand at root as they were: the
// program gets those bytes, whatever the secrets of the replay are. A file that cannot be read is not given either.
func (g *guard) learnFiles(t *files.Tree, store cas.Store, root string) {
	g.eachSecretFile(t, store, root, func([]byte) bool { return true }, g.scrub.LearnFrom)
}

// noteFiles looks into the secret files of the tree t whose stored form came from an earlier recording: what their secrets
// look like is noted for a replay that lacks them.
func (g *guard) noteFiles(t *files.Tree, store cas.Store, root string) {
	g.eachSecretFile(t, store, root, g.scrub.Unshaped, func(_, real []byte) { g.scrub.Bytes(real) })
}

// eachSecretFile calls do for the files of t that hold a secret and stand at root as they were: with their stored form,
// which wanted must want, and their bytes.
func (g *guard) eachSecretFile(t *files.Tree, store cas.Store, root string, wanted func(stored []byte) bool, do func(stored, real []byte)) {
	if t == nil {
		return
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Secret == "" {
			continue
		}
		stored, err := store.Get(e.Digest)
		if err != nil || !wanted(stored) {
			continue
		}
		path := filepath.Join(root, filepath.FromSlash(e.Path))
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if real, err := readBounded(path, files.DefaultMaxFileSize); err == nil && g.scrub.KeyedDigest(real) == e.Secret {
			do(stored, real)
		}
	}
}

// reveal returns what puts the values of this replay in the place of the recording's placeholders; nil where there is no
// secret.
func (r *replayer) reveal() func([]byte) []byte {
	if !r.played.reveals() {
		return nil
	}
	return r.s.scrub.Reveal
}

// revealed returns the recorded stdin as the program got it. Keys that were typed into a terminal are counted as they came: a
// secret of another length moves those that come behind it.
func (r *replayer) revealed(stdin io.Reader) io.Reader {
	if !r.played.reveals() {
		return stdin
	}
	return r.s.scrub.Revealing(stdin)
}

// holdsSecret reports whether any of paths holds a secret. A recording needs its paths as they are, and a secret must not
// reach the disk: such a run is not recorded.
func (g *guard) holdsSecret(paths ...string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return g.scrub.String(p) != p })
}

// loadKey reads the project's key, or makes it. Where the user has no place to keep one (no HOME, a read-only one) the
// key is for this run only: placeholders hide as well, and differ from those of other runs.
func loadKey(config string) (scrub.Key, error) {
	key, err := scrub.LoadKey(keyPath(config))
	if err != nil && config == "" && homeless(err) {
		rand.Read(key[:]) // never fails (crypto/rand)
		return key, nil
	}
	if err != nil {
		return key, fmt.Errorf("scrub key: %w", err)
	}
	return key, nil
}

// homeless reports that a configuration directory cannot be made, rather than that what is in it is wrong.
func homeless(err error) bool {
	if _, errStat := os.Stat(keyPath("")); errStat == nil {
		return false
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR)
}

// keyPath is the file of the project's key.
func keyPath(config string) string { return filepath.Join(configDir(config), "scrub.key") }

// configDir is where the keys lie. It is absolute where HOME is not: what a jail covers has no other name.
func configDir(set string) string {
	home := cmp.Or(xdg.ConfigHome, filepath.Join(os.Getenv("HOME"), ".config")) // xdg knows no relative ones
	dir := cmp.Or(set, filepath.Join(home, "tapedeck"))
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}
