package deck

import (
	"strconv"

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
}

// play returns the recorded command line and environment. Secrets are taken from env by the names of their variables or,
// where env lacks them, made up in the recorded shape.
func (m *Manifest) play(env []string) *played {
	p := new(played)
	secret := make(map[string]EnvVar, len(m.ArgSecrets))
	for _, v := range m.ArgSecrets {
		secret[v.Name] = v
	}
	for i, a := range m.Argv {
		key := "argv." + strconv.Itoa(i)
		value := m.bytes(key, a)
		if v, ok := secret[key]; ok {
			value = p.dummy(v, value)
		}
		p.argv = append(p.argv, value)
	}
	for _, v := range m.Env {
		value := m.bytes("env."+v.Name, v.Value)
		if v.Secret {
			value = p.secret(v, value, env)
		}
		p.env = append(p.env, v.Name+"="+value)
	}
	return p
}

// secret returns the value of a secret variable.
func (p *played) secret(v EnvVar, recorded string, env []string) string {
	value := getenv(env, v.Name)
	if value == "" {
		return p.dummy(v, recorded)
	}
	p.aliases = append(p.aliases, alias{v.Name, value, recorded})
	return value
}

// dummy makes up the secrets of recorded, which stands for v.
func (p *played) dummy(v EnvVar, recorded string) string {
	value, made := scrub.Dummies(scrub.Var{Name: v.Name, Value: recorded, Secret: true, Shape: v.Shape})
	for placeholder, d := range made {
		p.aliases = append(p.aliases, alias{v.Name, d, placeholder})
	}
	return value
}
