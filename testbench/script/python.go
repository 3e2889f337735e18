package script

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// pythons are words that Python has and Starlark has not, and what stands in their place.
var pythons = map[string]string{
	"import": `load("lib.star", "name") takes a name from a file below the script's directory; clock, llm, fs and the others are there already`,
	"from":   `load("lib.star", "name") takes a name from a file below the script's directory`,
	"try":    "an error ends the script: there is no try",
	"raise":  `fail("…") ends the script with an error`,
	"class":  "struct(name = value) is a value with fields; there are no classes",
	"assert": "assert_eq(got, want), assert_true(value) and assert_in(item, container) are functions",
	"with":   "there is no with: fs.read and fs.write take whole files",
	"del":    "there is no del: dict.pop(key) and list.pop(index) remove",
	"is":     "== compares; there is no is",
	"yield":  "there are no generators: return a list",
	"async":  "parallel([f, g]) calls functions side by side", "await": "parallel([f, g]) calls functions side by side",
	"global": "a function cannot assign to a name of the file: keep a dict there and change that", "nonlocal": "keep a dict and change that",
}

// pythonNames are names that Python has at hand and a script has not, and what stands in their place.
var pythonNames = map[string]string{
	"open": "fs.read(path) and fs.write(path, data) take whole files",
	"time": "the clock is clock.now_ms(), clock.monotonic_ms() and clock.sleep(ms)", "datetime": "the clock is clock.now_ms(), in Unix ms",
	"os": "there are fs, env.get and process.run", "subprocess": `process.run("git", ["status"]) runs a command`,
	"requests": "http.get(url) and http.post(url, body) send requests", "asyncio": "parallel([f, g]) calls functions side by side",
	"isinstance": `type(x) == "int" asks for a type`,
	"sum":        "add them up in a loop", "round": "int(x) cuts a number off, x // y divides integers",
	"Exception": `fail("…") ends the script with an error`,
}

// notHere explains a name of Python's that is not defined. A message that offers a name which only looks like it is cut.
func notHere(message *string) string {
	name, ok := strings.CutPrefix(*message, "undefined: ")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, " ")
	hint := pythonNames[name]
	if hint != "" {
		*message = "undefined: " + name
	}
	return hint
}

// formatted is the beginning of an f-string.
var formatted = lazyregexp.New(`\b[fF]["']`)

// notStarlark explains a word of Python's at which the parser may have stumbled: the line's first, its `is`, or an f-string.
func notStarlark(line string) string {
	words := strings.FieldsFunc(line, func(c rune) bool { return !unicode.IsLetter(c) })
	switch {
	case len(words) > 0 && pythons[words[0]] != "":
		return pythons[words[0]]
	case slices.Contains(words, "is"):
		return pythons["is"]
	case formatted.MatchString(line):
		return `there are no f-strings: "%d of %s" % (n, name), or "{} of {}".format(n, name)`
	}
	return ""
}
