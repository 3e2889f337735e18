package deck

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// noteArgs puts argv into m: secrets as placeholders with the shapes that dummies are made from, bytes that are not UTF-8
// beside them.
func (m *Manifest) noteArgs(s *scrub.Scrubber, argv []string) {
	m.Argv = make([]string, len(argv))
	for i, a := range argv {
		v := s.Arg(a)
		text, raw := tape.SafeString(v.Value)
		m.Argv[i] = text
		key := "argv." + strconv.Itoa(i)
		if raw != nil {
			m.setRaw(key, raw)
		}
		if v.Secret {
			m.ArgSecrets = append(m.ArgSecrets, EnvVar{Name: key, Value: text, Secret: true, Shape: v.Shape})
		}
	}
}

// noteEnv puts env into m in the same way.
func (m *Manifest) noteEnv(s *scrub.Scrubber, env []string) {
	m.Env = []EnvVar{}
	for _, v := range s.Env(env) {
		text, raw := tape.SafeString(v.Value)
		if raw != nil {
			m.setRaw("env."+v.Name, raw)
		}
		m.Env = append(m.Env, EnvVar{Name: v.Name, Value: text, Secret: v.Secret, Shape: v.Shape})
	}
}

func (m *Manifest) setRaw(key string, b []byte) {
	if m.Raw == nil {
		m.Raw = make(map[string][]byte)
	}
	m.Raw[key] = b
}

// bytes returns the true bytes of a string of m.
func (m *Manifest) bytes(key, text string) string {
	if raw, ok := m.Raw[key]; ok {
		return string(raw)
	}
	return text
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
	values    map[string]string // of placeholders
}

// play returns the recorded command line and environment. Secrets are taken from env by the names of their variables or,
// where env lacks them, made up in the recorded shape; what held the same secret then holds the same value now.
func (m *Manifest) play(env []string) *played {
	p := &played{values: make(map[string]string)}
	for _, v := range m.Env {
		value := m.bytes("env."+v.Name, v.Value)
		if v.Secret {
			value = p.secret(v, value, env)
		}
		p.env = append(p.env, v.Name+"="+value)
	}
	secret := make(map[string]EnvVar, len(m.ArgSecrets))
	for _, v := range m.ArgSecrets {
		secret[v.Name] = v
	}
	for i, a := range m.Argv {
		key := "argv." + strconv.Itoa(i)
		value := m.bytes(key, a)
		if v, ok := secret[key]; ok {
			value = p.fill(v, value)
		}
		p.argv = append(p.argv, value)
	}
	return p
}

// secret returns the value of a secret variable.
func (p *played) secret(v EnvVar, recorded string, env []string) string {
	value := getenv(env, v.Name)
	if value == "" {
		return p.fill(v, recorded)
	}
	p.alias(v.Name, value, recorded)
	return value
}

// fill returns recorded with a value in the place of each placeholder.
func (p *played) fill(v EnvVar, recorded string) string {
	_, made := scrub.Dummies(scrub.Var{Name: v.Name, Value: recorded, Secret: true, Shape: v.Shape})
	var pairs []string
	for placeholder, dummy := range made {
		p.alias(v.Name, dummy, placeholder)
		pairs = append(pairs, placeholder, p.values[placeholder])
	}
	return strings.NewReplacer(pairs...).Replace(recorded)
}

// alias gives a placeholder its value, unless it has one.
func (p *played) alias(name, value, placeholder string) {
	if _, ok := p.values[placeholder]; ok {
		return
	}
	p.values[placeholder] = value
	p.aliases = append(p.aliases, alias{name, value, placeholder})
}

// reveal returns what puts the values of this replay in the place of the recording's placeholders; nil where there is no
// secret.
func (p *played) reveal() func([]byte) []byte {
	if len(p.aliases) == 0 {
		return nil
	}
	var pairs []string
	for _, a := range p.aliases {
		pairs = append(pairs, a.placeholder, a.value)
	}
	r := strings.NewReplacer(pairs...)
	return func(b []byte) []byte {
		if !bytes.Contains(b, []byte("td_")) {
			return b
		}
		return []byte(r.Replace(string(b)))
	}
}
