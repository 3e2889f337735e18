package script

import (
	_ "embed"

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
