package scrub

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// NamesSecret reports whether value is a secret because name, that of a variable or of an argument, says so. With
// RulesOfNames some are none in spite of their names: the path of the file that the secret lies in, the name of a column
// (SORT_KEY=created_at), and what Options.Harmless knows. A program needs those as they are, and its files have them in
// their own names.
func (s *Scrubber) NamesSecret(name, value string) bool {
	switch {
	case !s.says(name, value):
		return false
	case s.rules < RulesOfNames:
		return true
	}
	return !namesPath(name, value) && !namesColumn(name, value) && (s.harmless == nil || !s.harmless(value))
}

// ofFiles are what the names of variables and arguments end in that hold a path, and homes how a path begins that no key
// begins like.
var (
	ofFiles = []string{"file", "filename", "path", "dir", "directory", "folder"}
	homes   = []string{"~/", "./", "../", `.\`, `..\`, "file://"}
)

// namesPath tells whether a value is the path of a file by its name or by how it begins. One that may be the secret itself
// (people put the JSON of an account where its file is asked for) is not.
func namesPath(name, value string) bool {
	if strings.ContainsAny(value, "{\n\"") || strings.Contains(value, "-----") {
		return false
	}
	if slices.ContainsFunc(homes, func(h string) bool { return strings.HasPrefix(value, h) }) {
		return true
	}
	return strings.EqualFold(name, "GOOGLE_APPLICATION_CREDENTIALS") ||
		slices.ContainsFunc(ofFiles, func(word string) bool { return lastWordIs(name, word) })
}

// lastWordIs tells whether word, in lower case, is the last one of a name: behind a separator, or with a capital of its own.
func lastWordIs(name, word string) bool {
	at := len(name) - len(word)
	if at <= 0 || !strings.EqualFold(name[at:], word) {
		return false
	}
	isCapital := name[at] >= 'A' && name[at] <= 'Z'
	return !chars.IsAlnum(name[at-1]) || isCapital && name[at-1] >= 'a' && name[at-1] <= 'z'
}

var (
	// keysOfRows are words before KEY that make it that of a row, of a cache or of a list, which opens nothing.
	keysOfRows = []string{"SORT", "PRIMARY", "FOREIGN", "PARTITION", "RANGE", "GROUP", "ORDER", "UNIQUE", "COMPOSITE", "NATURAL",
		"SURROGATE", "CACHE", "ROUTING", "LOOKUP", "INDEX", "JOIN", "DEDUP", "SHARD"}
	// keysThatOpen are words before KEY that people make up words for.
	keysThatOpen = []string{"API", "SECRET", "PRIVATE", "ACCESS", "MASTER", "ENCRYPTION", "ENCRYPT", "SIGNING", "SIGN", "AUTH",
		"LICENSE", "SESSION", "COOKIE", "JWT", "HMAC", "APP", "ADMIN", "SHARED", "SERVICE"}
	identifier = lazyregexp.New(`^[A-Za-z]+([_.-][A-Za-z]+)*$`)
	column     = lazyregexp.New(`^[a-z]{1,16}(_[a-z]{1,16})+$`)
)

// namesColumn tells whether a value is the name of a column or of its like: words, under a name that ends in KEY.
func namesColumn(name, value string) bool {
	words := wordsOf(name)
	last := len(words) - 1
	switch {
	case last < 0 || words[last] != "KEY":
		return false
	case last > 0 && slices.Contains(keysOfRows, words[last-1]):
		return identifier.MatchString(value)
	case slices.ContainsFunc(words, func(w string) bool { return slices.Contains(keysThatOpen, w) }):
		return false
	}
	return column.MatchString(value) && !NameSaysSecret(value)
}

// PathsFrom returns an Options.Harmless that holds for the paths of what there is, from the directory dir where they are
// not absolute. exists is asked with an absolute path.
func PathsFrom(dir string, exists func(path string) bool) func(value string) bool {
	return func(value string) bool {
		if len(value) > maxPath || strings.ContainsAny(value, "\x00\n") {
			return false
		}
		if !filepath.IsAbs(value) {
			value = filepath.Join(dir, value)
		}
		return exists(value)
	}
}

// maxPath is the length in bytes of what may be a path.
const maxPath = 4096
