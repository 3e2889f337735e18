package testbench

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// secrets take out of the tape what it may not hold. Placeholders are numbered by first appearance, so that runs with different
// secrets write the same bytes, and nobody needs a key.
type secrets struct {
	scrubber *scrub.Scrubber
	again    bool            // of a replay
	says     map[string]bool // of each variable of Config.Env: whether its name says that it holds a secret

	mu      sync.Mutex
	numbers *bare.Numbers
}

// newSecrets knows the secrets of a run: those that c names, and the keys of the host where a live call may send them.
func newSecrets(c *Config, live bool, from *recorded) *secrets {
	var env []string
	says := make(map[string]bool)
	for name, value := range c.Env {
		env = append(env, name+"="+value)
		says[name] = names.SaySecret(name)
	}
	if live {
		env = append(env, hostKeys()...)
	}
	if from != nil { // what it says is scrubbed already
		env = nil
	}
	s := &secrets{again: from != nil, says: says, scrubber: bare.NewScrubber(&scrub.Options{Env: env}), numbers: bare.NewNumbers(nil)}
	s.numbers.Twice(s.again)
	for _, name := range sortedKeys(c.Secrets) {
		s.scrubber.AddSecret(name, c.Secrets[name])
	}
	return s
}

// hostKeys are the variables of the host whose names say that they hold secrets.
func hostKeys() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !names.SaySecret(name)
	})
}

// placeholderBegin begins every placeholder of package scrub.
const placeholderBegin = "td_"

// clean is tape.RecorderOptions.Clean.
func (s *secrets) clean(b []byte) []byte {
	out, _ := s.scrubber.Bytes(b)
	if !bytes.Contains(out, []byte(placeholderBegin)) {
		return out
	}
	return s.number(out)
}

// form is what two texts have in common that differ in their secrets alone: placeholders are numbered anew in each, and no other
// text has other numbers for it.
func (s *secrets) form(b []byte) []byte {
	out, _ := s.scrubber.Bytes(b)
	return scrub.Renumber(out)
}

// number numbers the placeholders of b, which is not written to.
func (s *secrets) number(b []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers.Knows(s.scrubber.Counts())
	return s.numbers.Bytes(b)
}

// variable returns the value of a variable of the environment as the tape may hold it: a short secret is none elsewhere.
func (s *secrets) variable(name, value string) []byte {
	says, ok := s.says[name]
	if !ok {
		says = names.SaySecret(name)
	}
	if s.again || !says {
		return []byte(value)
	}
	v := s.scrubber.Env([]string{name + "=" + value})
	if len(v) == 0 || !v[0].Secret {
		return []byte(value)
	}
	return s.number([]byte(v[0].Value))
}
