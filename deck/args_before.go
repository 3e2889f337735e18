package deck

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// In what an argument may hold a secret by its name, for learnArgsBefore.
var (
	headerArg      = lazyregexp.New(`^([A-Za-z][A-Za-z0-9-]*):\s*(\S.*)$`)                  // X-Api-Key: V, as curl -H takes it
	assignedBefore = lazyregexp.New(`([A-Za-z][A-Za-z0-9_-]*)=["']?([^\s"'&;,]+)`)          // NAME=V, also in a query or a script
	member         = lazyregexp.New(`"([A-Za-z][A-Za-z0-9_-]*)"\s*:\s*"((?:[^"\\]|\\.)+)"`) // "api_key": "V"
)

// learnArgsBefore is learnArgs of the versions before scrub.RulesOfNames: what a recording has as it was, its replay leaves.
func learnArgsBefore(s *scrub.Scrubber, args []string) {
	for i, a := range args {
		learnFlagBefore(s, a, args[i+1:])
		s.LearnURLs(a)
		if m := headerArg.FindStringSubmatch(a); m != nil {
			s.Header(m[1], m[2])
		}
		for _, re := range []*lazyregexp.Regexp{assignedBefore, member} {
			for _, m := range re.FindAllStringSubmatch(a, -1) {
				learnNamed(s, m[1], m[2])
			}
		}
	}
}

// learnFlagBefore takes the value behind a flag whose name says so, and the password of -u USER:PASSWORD.
func learnFlagBefore(s *scrub.Scrubber, a string, rest []string) {
	name, isFlag := strings.CutPrefix(a, "-")
	if !isFlag || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return
	}
	name = strings.TrimPrefix(name, "-")
	if _, password, ok := strings.Cut(rest[0], ":"); ok && (name == "u" || name == "user" || name == "proxy-user" || name == "U") {
		s.AddSecret("password", password)
		return
	}
	learnNamed(s, name, rest[0])
}
