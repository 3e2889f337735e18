package deck

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/adrg/xdg"
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// A guard knows the secrets and the volatile facts of one run. Everything that a run writes goes through it.
type guard struct {
	scrub *scrub.Scrubber
	mask  *scrub.Masker
	class exchange.Classifier
	id    string // names what scrub looks for: a stat cache made for other secrets says nothing about these
}

// newGuard returns the guard of a program with these arguments and this environment.
func newGuard(config string, args, env []string, roots *Roots, masking *Masking) (*guard, error) {
	key, err := loadKey(config)
	if err != nil {
		return nil, err
	}
	s := scrub.New(key, &scrub.Options{Env: env})
	learnArgs(s, args)
	return guardOf(s, args, env, roots, masking)
}

// newReplayGuard returns the guard of a replay: its secrets read as those of the recording, whatever their values.
func newReplayGuard(config string, p *played, roots *Roots, masking *Masking) (*guard, error) {
	key, err := loadKey(config)
	if err != nil {
		return nil, err
	}
	s := scrub.New(key, nil)
	for _, a := range p.aliases {
		if !s.AddAlias(a.placeholder, a.value) {
			s.AddSecret(a.name, a.value)
		}
	}
	learnArgs(s, p.argv[1:])
	return guardOf(s, p.argv[1:], p.env, roots, masking)
}

func guardOf(s *scrub.Scrubber, args, env []string, roots *Roots, masking *Masking) (*guard, error) {
	m, err := masking.masker(roots)
	if err != nil {
		return nil, err
	}
	return &guard{scrub: s, mask: m, class: llm.NewClassifier(m), id: guardID(s, args, env)}, nil
}

// guardID names the secrets of s without telling them.
func guardID(s *scrub.Scrubber, args, env []string) string {
	var known strings.Builder
	for _, v := range s.Env(env) {
		if v.Secret {
			fmt.Fprintf(&known, "%s=%s\n", v.Name, v.Value)
		}
	}
	for _, a := range args {
		fmt.Fprintf(&known, "%q\n", s.String(a))
	}
	return Producer + " " + s.KeyedDigest([]byte(known.String()))
}

// holdsSecret reports whether any of paths holds a secret. A recording needs its paths as they are, and a secret must not
// reach the disk: such a run is not recorded.
func (g *guard) holdsSecret(paths ...string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return g.scrub.String(p) != p })
}

// learnArgs tells s the secrets among the arguments: the value of a flag whose name says so, in both spellings
// (--api-key=V, --api-key V).
func learnArgs(s *scrub.Scrubber, args []string) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			continue
		}
		name, value, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !inline && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		if value != "" && scrub.NameSaysSecret(name) {
			s.AddSecret(strings.ReplaceAll(strings.ToLower(name), "-", "_"), value)
		}
	}
}

func loadKey(config string) (scrub.Key, error) {
	key, err := scrub.LoadKey(filepath.Join(configDir(config), "scrub.key"))
	if err != nil {
		return key, fmt.Errorf("scrub key: %w", err)
	}
	return key, nil
}

// configDir is where the keys lie.
func configDir(set string) string {
	if set != "" {
		return set
	}
	return filepath.Join(xdg.ConfigHome, "tapedeck")
}
