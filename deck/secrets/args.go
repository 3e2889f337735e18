package secrets

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// What an argument is that may hold a secret by its name.
var (
	// flagArg is --NAME=V, of which all of the rest is the value, and --NAME; varArg is NAME=V as docker -e and env take it.
	flagArg = lazyregexp.New(`(?s)^--?([A-Za-z][A-Za-z0-9_.-]*)(=.*)?$`)
	varArg  = lazyregexp.New(`^([A-Z][A-Z0-9_]*)=(\S+)$`)
	// flagLike is what is no value of the flag before it: --word, --word=V, -x.
	flagLike = lazyregexp.New(`(?s)^(--[A-Za-z][A-Za-z0-9_-]*(=.*)?|-[A-Za-z])$`)
	// lineArg is X-Api-Key: V as curl takes it, also in one argument with its flag.
	lineArg = lazyregexp.New(`^(?:-H|--header=|--proxy-header=)?\s*([A-Za-z][A-Za-z0-9-]*):\s*(\S.*)$`)
)

// What stands in an argument that is a script, a query or JSON.
var (
	assigned = lazyregexp.New(`([A-Za-z][A-Za-z0-9_-]*)=(?:"([^"]*)"|'([^']*)'|([^\s"'&;,]+))`)
	flagged  = lazyregexp.New(`(?:^|\s)--?([A-Za-z][A-Za-z0-9_-]*)\s+(?:"([^"]*)"|'([^']*)'|([^\s"']*[0-9][^\s"']*))`)
	member   = lazyregexp.New(`"([A-Za-z][A-Za-z0-9_-]*)"\s*:\s*"((?:[^"\\]|\\.)+)"`) // "api_key": "V"
	line     = lazyregexp.New(`["']([A-Za-z][A-Za-z0-9-]*):\s*([^"'\\\n]+)\\?["']`)
	// reference is what a shell puts the secret into: Bearer $TOKEN, $(pass show x).
	reference = lazyregexp.New("^(\\S+\\s+)?([$][A-Za-z_{(]|`)")
)

// LearnArgs tells s the secrets among the arguments of a program: what names itself one in the ways that programs take
// them. A secret that nothing names, and that has no known shape, cannot be told from any other word.
func LearnArgs(s *scrub.Scrubber, args []string) {
	for i, a := range args {
		s.LearnURLs(a)
		if !learnFlag(s, a, args[i+1:]) {
			learnText(s, a)
		}
	}
}

// learnFlag takes the value of a flag whose name says so, in both spellings (--api-key=V, --api-key V), that of a variable, and
// the password of -u USER:PASSWORD. It reports whether nothing else is in a.
func learnFlag(s *scrub.Scrubber, a string, rest []string) (all bool) {
	if m := varArg.FindStringSubmatch(a); m != nil {
		return learnNamed(s, m[1], m[2])
	}
	m := flagArg.FindStringSubmatch(a)
	switch {
	case m == nil:
		return false
	case m[2] != "":
		return learnNamed(s, m[1], m[2][1:])
	case len(rest) > 0 && !flagLike.MatchString(rest[0]):
		learnBehind(s, m[1], rest[0])
	}
	return true
}

func learnBehind(s *scrub.Scrubber, name, value string) {
	if _, password, ok := strings.Cut(value, ":"); ok && (name == "u" || name == "user" || name == "proxy-user" || name == "U") {
		s.AddSecret("password", password)
		return
	}
	learnNamed(s, name, value)
}

// learnText takes what names itself a secret within an argument.
func learnText(s *scrub.Scrubber, a string) {
	if m := lineArg.FindStringSubmatch(a); m != nil {
		s.LearnHeader(map[string][]string{m[1]: {m[2]}})
	}
	for _, m := range line.FindAllStringSubmatch(a, -1) {
		// One word in prose is no header: "token: none of these".
		prose := !strings.Contains(m[1], "-") && names.SaySecret(m[1]) && strings.Contains(strings.TrimSpace(m[2]), " ")
		if !prose && !reference.MatchString(m[2]) {
			s.LearnHeader(map[string][]string{m[1]: {m[2]}})
		}
	}
	for _, m := range member.FindAllStringSubmatch(a, -1) {
		learnNamed(s, m[1], m[2])
	}
	for _, m := range assigned.FindAllStringSubmatch(a, -1) {
		if value := m[2] + m[3] + m[4]; !reference.MatchString(value) {
			learnNamed(s, m[1], value)
		}
	}
	for _, m := range flagged.FindAllStringSubmatch(a, -1) {
		if value := m[2] + m[3] + m[4]; !reference.MatchString(value) && !flagLike.MatchString(value) {
			learnBehind(s, m[1], value)
		}
	}
}

// learnNamed makes value known where name says that it is a secret, and reports whether it does.
func learnNamed(s *scrub.Scrubber, name, value string) bool {
	if !s.NamesSecret(name, value) {
		return false
	}
	s.AddPieces(strings.ToLower(strings.ReplaceAll(name, "-", "_")), value)
	return true
}
