package scrub

import (
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// What a file of credentials has its values in: a line of a dotenv file, of INI, YAML or TOML, and members of JSON that share
// one. A value in quotation marks may go over several lines.
var (
	settingLine = lazyregexp.New(`(?m)^[ \t]*(?:export[ \t]+|-[ \t]+)?["']?([A-Za-z_/][A-Za-z0-9_./:-]*?)["']?[ \t]*(?:=[ \t]*|:[ \t]+)("(?:[^"\\]|\\.)*"|'[^']*'|[^\r\n]*)`)
	jsonMember  = lazyregexp.New(`"([A-Za-z_][A-Za-z0-9_.-]*)"\s*:\s*"((?:[^"\\]|\\.)+)"`)
	comment     = lazyregexp.New(`[ \t]+#.*$`)
	fromOutside = lazyregexp.New(`^(\$[A-Za-z_{(]|<.*>$|\{\{)`) // ${OTHER}, <your key>
)

// LearnFile makes the secrets known that names in a file give away which holds credentials by its own name, and returns how
// many of them were not known before: a program prints and sends such files, and what it reads from them. Other files teach
// nothing, for they are read in no order. b is what the file holds, name its path.
func (s *Scrubber) LearnFile(name string, b []byte) (fresh int) {
	if s.rules < RulesOfNames || !s.CredentialFile(name) {
		return 0
	}
	learn := func(name, value string) {
		s.LearnVar(name, value)
		if fromOutside.MatchString(value) || !s.NamesSecret(name, value) {
			return
		}
		for _, p := range s.piecesOf(name, value) {
			if isFresh, _ := s.LearnNamed(name, p.value); isFresh {
				fresh++
			}
		}
	}
	text := string(b)
	for _, m := range settingLine.FindAllStringSubmatch(text, -1) {
		learn(m[1], settingValue(m[2]))
	}
	if path.Ext(name) == ".json" || strings.HasPrefix(strings.TrimSpace(text), "{") {
		for _, m := range jsonMember.FindAllStringSubmatch(text, -1) {
			learn(m[1], unescapedLines(m[2]))
		}
	}
	return fresh
}

// settingValue returns the value of a line without quotation marks, a comment and the comma of JSON behind it.
func settingValue(v string) string {
	if v == "" {
		return v
	}
	if v[0] == '"' {
		return unescapedLines(trimQuotes(strings.TrimRight(v, ", \t")))
	}
	if v[0] != '\'' {
		v = strings.TrimRight(comment.ReplaceAllString(v, ""), ", \t")
	}
	return trimQuotes(v)
}

// unescapedLines undoes what keys have in quotation marks.
func unescapedLines(v string) string {
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\"`, `"`, `\/`, "/", `\\`, `\`).Replace(v)
}
