package deck

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	"github.com/tapedeck-dev/tapedeck/tape"
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

// The bounds of learnSettings: files, bytes of one, directories below the work tree, and entries that are looked at.
const (
	maxSettings     = 64
	maxSettingsFile = 64 << 10
	maxSettingsDeep = 4
	maxSettingsSeen = 20_000
)

// packages are directories of what others wrote, which holds no credentials of this project, and of our own.
var packages = []string{".git", ".hg", ".tapedeck", "node_modules", "vendor", ".venv", "venv", "site-packages", "__pycache__", recording.TapeName + tape.StoreSuffix}

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

// An alias is a value that reads as a placeholder of the recording.
type alias struct {
	name, value string
	placeholder string
}

// played is the command line and environment of a replay, with what stands in them for the recording's secrets.
type played struct {
	argv, env []string
	aliases   []alias
	dummies   []scrub.Given     // of what the traffic and the files brought while recording
	values    map[string]string // of secrets, by the digits of their placeholders
	rules     int               // of scrub, that the recording was made with
	// secretNames are those of tapedeck.yaml, as they were then.
	secretNames []string
	plainVars   map[string]bool // names of the variables in which the recording saw no secret
	plainArgs   []string        // the same of arguments
}

// playOf returns the recorded command line and environment. Secrets are taken from env by the names of their variables or,
// where env lacks them, made up in the recorded shape; what held the same secret then holds the same value now.
func playOf(m *recording.Manifest, env []string) *played {
	p := &played{values: make(map[string]string), rules: max(m.ScrubRules, 1), secretNames: m.SecretNames, plainVars: make(map[string]bool)}
	for _, v := range m.Env { // first: a secret that is here, and stands in another variable too, is no dummy there
		if value := recording.Getenv(env, v.Name); v.Secret && value != "" {
			p.given(v.Name, value, m.Bytes("env."+v.Name, v.Value))
		}
	}
	for _, v := range m.Env {
		value := m.Bytes("env."+v.Name, v.Value)
		switch now := recording.Getenv(env, v.Name); {
		case !v.Secret:
			p.plainVars[v.Name] = true
		case now != "":
			value = now
		default:
			value = p.fill(v, value)
		}
		p.env = append(p.env, v.Name+"="+value)
	}
	secret := make(map[string]recording.EnvVar, len(m.ArgSecrets))
	for _, v := range m.ArgSecrets {
		secret[v.Name] = v
	}
	for i, a := range m.Argv {
		key := "argv." + strconv.Itoa(i)
		value := m.Bytes(key, a)
		if v, ok := secret[key]; ok {
			value = p.fill(v, value)
		} else {
			p.plainArgs = append(p.plainArgs, value)
		}
		p.argv = append(p.argv, value)
	}
	p.makeUp(m.Secrets)
	return p
}

// harmless tells what is no secret in spite of its name: what stands plain in the recording, where a path may have been that is
// not on this machine; and, for another program than the recorded one, what is a path here.
func (p *played) harmless(cwd string) func(value string) bool {
	plain := make(map[string]bool)
	for _, kv := range p.env {
		if name, value, ok := strings.Cut(kv, "="); ok && p.plainVars[name] {
			plain[value] = true
		}
	}
	isPath := secrets.PathsFrom(cwd)
	return func(value string) bool {
		return plain[value] || slices.ContainsFunc(p.plainArgs, func(a string) bool { return strings.Contains(a, value) }) || isPath(value)
	}
}

// makeUp makes a dummy of each secret that no variable and no argument holds. One for which there is none stays a
// placeholder.
func (p *played) makeUp(secrets []scrub.Secret) {
	taken := make(map[string]bool, len(p.values))
	for _, v := range p.values {
		taken[v] = true
	}
	lacking := make([]scrub.Secret, 0, len(secrets))
	for _, s := range secrets {
		if _, ok := p.values[scrub.Digits(s.Placeholder)]; !ok {
			lacking = append(lacking, s)
		}
	}
	p.dummies = scrub.DummiesOf(lacking, func(v string) bool { return taken[v] })
	for _, d := range p.dummies {
		p.values[scrub.Digits(d.Placeholder)] = d.Value
	}
}

// late lists those late secrets of a recording that no variable and no argument of it holds.
func (p *played) late(secrets []scrub.Secret) []scrub.Secret {
	held := make(map[string]bool, len(p.aliases))
	for _, a := range p.aliases {
		held[scrub.Digits(a.placeholder)] = true
	}
	return slices.DeleteFunc(recording.LateSecrets(secrets), func(s scrub.Secret) bool { return held[scrub.Digits(s.Placeholder)] })
}

// reveals reports whether a placeholder of the recording has a value now.
func (p *played) reveals() bool { return len(p.aliases)+len(p.dummies) > 0 }

// given says what the secrets of a recorded variable are now that it has a value. Where that is not the recorded text but
// for its secrets, nor put together from as many, all of it is taken for one.
func (p *played) given(name, value, recorded string) {
	given, ok := scrub.Align(recorded, value)
	if !ok {
		given, ok = scrub.Paired(name, recorded, value)
	}
	if !ok {
		given = []scrub.Given{{Placeholder: recorded, Value: value}}
	}
	for _, g := range given {
		if g.Placeholder == "" { // it has one more
			p.aliases = append(p.aliases, alias{name: name, value: g.Value})
			continue
		}
		p.alias(name, g.Value, g.Placeholder)
	}
}

// fill returns recorded with a value in the place of each placeholder, in the form in which it stood.
func (p *played) fill(v recording.EnvVar, recorded string) string {
	_, made := scrub.Dummies(scrub.Var{Name: v.Name, Value: recorded, Secret: true, Shape: v.Shape})
	for placeholder, dummy := range made {
		p.alias(v.Name, dummy, placeholder)
	}
	return string(scrub.Fill([]byte(recorded), func(digits string) (string, bool) {
		value, ok := p.values[digits]
		return value, ok
	}))
}

// genuine reports whether the secrets of the replay are those of the recording: what a program makes of one that it was given in
// another's place reads as another.
func (p *played) genuine(s *scrub.Scrubber) bool {
	return !slices.ContainsFunc(p.aliases, func(a alias) bool {
		digits := scrub.Digits(a.placeholder)
		return digits != "" && !strings.HasPrefix(s.KeyedDigest([]byte(strings.TrimSpace(a.value))), digits)
	})
}

// alias gives a placeholder its value, unless it has one.
func (p *played) alias(name, value, placeholder string) {
	digits := scrub.Digits(placeholder)
	if _, ok := p.values[digits]; ok {
		return
	}
	p.values[digits] = value
	p.aliases = append(p.aliases, alias{name, value, placeholder})
}
