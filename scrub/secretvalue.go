package scrub

import (
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

const (
	// maxNamed bounds, in bytes, the value of a name.
	maxNamed = 16 << 10
	// minMade is the length in bytes from which a value may look made by a machine.
	minMade = 16
)

// isSecret tells whether a value is one of which the name says so. Numbers, in JSON, are none. A value that is too short or too
// common to be looked for elsewhere is for the scrubber to leave alone.
func (s nameSaying) isSecret(value string) bool {
	switch {
	case s == saysNothing || value == "":
		return false
	case s == saysAsOrdered || strings.HasPrefix(value, placeholders.Prefix):
		return true
	case reference.MatchString(value):
		return false
	case s == saysPassword || strings.Contains(value, "-----BEGIN "):
		return true
	case strings.ContainsFunc(value, unicode.IsSpace): // a text about a secret
		return false
	}
	return s == saysUnbroken || made(value)
}

// reference is what says where a secret is to be taken from: ${API_KEY}, $API_KEY, {{ API_KEY }}, {{ vault.token }}, ${db.password},
// ${{ secrets.TOKEN }}. It is no more than what nobody's password looks like: one that is taken for a reference leaks, a reference
// that is taken for a password costs a dummy.
var reference = func() *lazyregexp.Regexp {
	const capitals, path = `[A-Z_][A-Z0-9_]*`, `\.?[A-Za-z_][A-Za-z0-9_]*([.:][A-Za-z_][A-Za-z0-9_]*)+`
	const name = `(` + capitals + `|` + path + `)`
	return lazyregexp.New(`^(\$` + capitals + `|\$\{` + name + `\}|\{\{ *` + name + ` *\}\}|\$\{\{[^{}]*\}\})$`)
}()

// made tells whether a value looks made by a machine and opens something: letters and digits, no address, no path, no UUID, no
// time.
func made(value string) bool {
	var letters, digits int
	for i := range len(value) {
		switch c := value[i]; {
		case chars.IsLetter(c):
			letters++
		case chars.IsDigit(c):
			digits++
		case strings.IndexByte("_-.~+/=:|!", c) < 0:
			return false
		}
	}
	return len(value) >= minMade && letters >= 2 && digits >= 2 && !plainlyOther.MatchString(value)
}

var plainlyOther = lazyregexp.New(`^([A-Za-z][A-Za-z0-9+.-]*://.*|[./~].*|(?i:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12})|` +
	`[0-9]{4}-[0-9]{2}-[0-9]{2}.*)$`)
