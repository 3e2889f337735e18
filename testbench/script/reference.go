package script

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/testbench/host"
)

//go:generate go run ./gen -docs ../../docs/reference/script.md -stub tapedeck.pyi

// Functions are those that a script may call beside Starlark's own, in the order of docs/reference/script.md. A parameter whose name begins
// with an asterisk takes every further argument.
func Functions() []*host.Function {
	all := host.Functions()
	for i := range ownFunctions {
		all = append(all, &ownFunctions[i].Function)
	}
	return append(all, jsonFunctions...)
}

//go:embed tapedeck.pyi
var stub []byte

// Stub is a file of Python's type stubs with every name that a script has: editors complete and check a script with it.
func Stub() []byte { return append([]byte(nil), stub...) }

// jsonFunctions and struct are Starlark's.
var jsonFunctions = []*host.Function{
	{
		Name: "json.encode", Params: []host.Param{{Name: "x", Type: "anything"}},
		Doc:    "Writes a value as JSON. Members keep their order.",
		Result: "a string", Example: `fs.write("state.json", json.encode({"step": 3}))`,
	},
	{
		Name: "json.decode", Params: []host.Param{{Name: "x", Type: "string"}, {Name: "default", Type: "anything", Optional: true}},
		Doc:    "Reads JSON. Text that is none fails, or gives default where one is given.",
		Result: "the value: dicts, lists, strings, ints, floats, bools and None", Example: `step = json.decode('{"step": 3}')["step"]`,
	},
	{
		Name: "struct", Params: []host.Param{{Name: "**fields", Type: "anything", Optional: true}},
		Doc:    "Makes a value with fields.",
		Result: "the value; as JSON a dict", Example: `point = struct(x = 1, y = 2)`,
	},
}

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
