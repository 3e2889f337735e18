package deck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// A redactor knows the secrets and the volatile facts of one run. Everything that a run writes goes through it.
type redactor struct {
	scrub *scrub.Scrubber
	mask  *masks.Masker
	class exchange.Classifier
	mcp   *mcp.Classifier // class, where MCP is followed; nil where it is not
	key   scrub.Key       // the project's
	id    string          // names what scrub looks for: a stat cache made for other secrets says nothing about these

	masking *recording.Masking
	roots   *recording.Roots
	begun   scrub.Mark // what was known when the first byte was written
}

// newRedactor returns the redactor of a program with these arguments and this environment, in the working directory cwd. names are those
// under which the project has secrets.
func newRedactor(config, cwd string, args, env, names []string, roots *recording.Roots, masking *recording.Masking) (*redactor, error) {
	key, err := recording.LoadKey(config)
	if err != nil {
		return nil, err
	}
	s := scrub.New(key, &scrub.Options{Env: env, Harmless: secrets.PathsFrom(cwd), SecretNames: names})
	secrets.LearnArgs(s, args)
	return redactorOf(key, s, args, env, names, roots, masking)
}

// newReplayRedactor returns the redactor of a replay: its secrets read as those of the recording, whatever their values.
func newReplayRedactor(config, cwd string, p *played, roots *recording.Roots, masking *recording.Masking) (*redactor, error) {
	if err := scrub.CheckRules(p.rules); err != nil {
		return nil, fmt.Errorf("the recording cannot be replayed: %w", err)
	}
	key, err := recording.LoadKey(config)
	if err != nil {
		return nil, err
	}
	s := scrub.New(key, &scrub.Options{Rules: p.rules, Harmless: p.harmless(cwd), SecretNames: p.secretNames})
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
	secrets.LearnArgs(s, p.argv[1:])
	return redactorOf(key, s, p.argv[1:], p.env, p.secretNames, roots, masking)
}

// followMCP has MCP over HTTP known for what it is, from now on.
func (r *redactor) followMCP() {
	r.mcp = mcp.NewClassifier(r.class, r.mask)
	r.class = r.mcp
}

func redactorOf(key scrub.Key, s *scrub.Scrubber, args, env, names []string, roots *recording.Roots, masking *recording.Masking) (*redactor, error) {
	m, err := masking.Masker(roots)
	if err != nil {
		return nil, err
	}
	return &redactor{
		scrub: s, key: key, mask: m, class: llm.NewClassifier(m), id: redactorID(s, args, env, names), masking: masking, roots: roots, begun: s.Mark(),
	}, nil
}

// redactorID names the secrets of s without telling them.
func redactorID(s *scrub.Scrubber, args, env, names []string) string {
	var known strings.Builder
	for _, name := range names {
		fmt.Fprintf(&known, "%q\n", name)
	}
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
	return fmt.Sprintf("%s rules %d %s", recording.Producer, s.Rules(), s.KeyedDigest([]byte(known.String())))
}

// learnFiles makes known what the secret files of the recorded tree t hold, as far as they stand at root as they were: the
// program gets those bytes, whatever the secrets of the replay are. A file that cannot be read is not given either.
func (r *redactor) learnFiles(t *files.Tree, store cas.Store, root string) {
	r.eachSecretFile(t, store, root, func([]byte) bool { return true }, r.scrub.LearnFrom)
}

// eachSecretFile calls do for the files of t that hold a secret and stand at root as they were: with their stored form,
// which wanted must want, and their bytes.
func (r *redactor) eachSecretFile(t *files.Tree, store cas.Store, root string, wanted func(stored []byte) bool, do func(stored, real []byte)) {
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
		if real, err := recording.ReadBounded(path, files.DefaultMaxFileSize); err == nil && r.scrub.KeyedDigest(real) == e.Secret {
			do(stored, real)
		}
	}
}

// holdsSecret reports whether any of paths holds a secret. A recording needs its paths as they are, and a secret must not
// reach the disk: such a run is not recorded.
func (r *redactor) holdsSecret(paths ...string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return r.scrub.String(p) != p })
}

// The bounds of learnSettings: files, bytes of one, directories below the work tree, and entries that are looked at.
const (
	maxSettings     = 64
	maxSettingsFile = 64 << 10
	maxSettingsDeep = 4
	maxSettingsSeen = 20_000
)

// packages are directories of what others wrote, which holds no credentials of this project, and of our own.
var packages = []string{".git", ".hg", ".tapedeck", "node_modules", "vendor", ".venv", "venv", "site-packages", "__pycache__"}

// learnSettings makes known what names in the credential files (.env and their like) of the work tree at root give away: the
// program may print or send them. It comes before anything is written, for what stands in those files is looked for everywhere;
// ignored files are read as well, since the program reads them too. Of recorded, the tree of a replay (nil for none), a file
// that stands there otherwise now is passed by: the program does not get it.
func (r *redactor) learnSettings(root string, recorded *files.Tree) {
	for _, digest := range r.settings(root, recorded) {
		r.id += " " + digest
	}
	r.begun = r.scrub.Mark()
}

// settings returns the keyed digests of the files that told something.
func (r *redactor) settings(root string, recorded *files.Tree) (digests []string) {
	if root == "" {
		return nil
	}
	left, seen := maxSettings, 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxSettingsSeen || left == 0 {
			return fs.SkipAll
		}
		name, errRel := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil || errRel != nil:
			return nil // what cannot be read the snapshot lists
		case d.IsDir() && name != "." && (slices.Contains(packages, d.Name()) || strings.Count(name, "/") >= maxSettingsDeep):
			return fs.SkipDir
		case !d.Type().IsRegular() || !r.scrub.CredentialFile(path):
			return nil
		}
		info, err := os.Lstat(path)
		if err != nil || info.Size() > maxSettingsFile {
			return nil
		}
		b, err := recording.ReadBounded(path, maxSettingsFile)
		if err == nil && asRecorded(recorded, name, r.scrub.KeyedDigest(b)) {
			left--
			r.scrub.LearnFile(path, b) // what is known already too: a replay may know it from elsewhere, and has the same id
			digests = append(digests, r.scrub.KeyedDigest(b))
		}
		return nil
	})
	return digests
}

// asRecorded tells whether a file with that keyed digest is the one that t has under name; one that t has not is ignored there,
// and stands in a replay as it is now.
func asRecorded(t *files.Tree, name, digest string) bool {
	if t == nil {
		return true
	}
	for i := range t.Entries {
		if t.Entries[i].Path == name {
			return t.Entries[i].Secret == digest
		}
	}
	return true
}
