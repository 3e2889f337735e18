package deck

import (
	"regexp"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// In what an argument may hold a secret by its name.
var (
	headerArg = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*):\s*(\S.*)$`)                  // X-Api-Key: V, as curl -H takes it
	assigned  = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_-]*)=["']?([^\s"'&;,]+)`)          // NAME=V, also in a query or a script
	member    = regexp.MustCompile(`"([A-Za-z][A-Za-z0-9_-]*)"\s*:\s*"((?:[^"\\]|\\.)+)"`) // "api_key": "V"
)

// learnArgs tells s the secrets among the arguments of a program: what names itself one in the ways that programs take
// them. A secret that nothing names, and that has no known shape, cannot be told from any other word.
func learnArgs(s *scrub.Scrubber, args []string) {
	for i, a := range args {
		learnFlag(s, a, args[i+1:])
		s.LearnURLs(a)
		if m := headerArg.FindStringSubmatch(a); m != nil {
			s.Header(m[1], m[2])
		}
		for _, re := range []*regexp.Regexp{assigned, member} {
			for _, m := range re.FindAllStringSubmatch(a, -1) {
				learnNamed(s, m[1], m[2])
			}
		}
	}
}

// learnFlag takes the value of a flag whose name says so, in both spellings (--api-key=V, --api-key V), and the password of
// -u USER:PASSWORD.
func learnFlag(s *scrub.Scrubber, a string, rest []string) {
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

func learnNamed(s *scrub.Scrubber, name, value string) {
	if s.NamesSecret(name, value) {
		s.AddSecret(strings.ToLower(strings.ReplaceAll(name, "-", "_")), value)
	}
}
