package deck

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

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
