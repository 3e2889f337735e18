package host

import (
	"context"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

var fileFunctions = []*Function{
	{
		Name: "fs.read", do: readFile,
		Params:  []Param{{Name: "path", Type: "string"}},
		Doc:     "Reads a file whole.",
		Result:  "a string, or bytes where the file is not UTF-8",
		Example: `notes = fs.read("notes.txt")`,
	},
	{
		Name: "fs.write", do: writeFile,
		Params:  []Param{{Name: "path", Type: "string"}, {Name: "data", Type: "string or bytes"}},
		Doc:     "Writes a file whole, and makes the directories above it. What the run sees changes; the directory below it does not.",
		Result:  "None",
		Example: `fs.write("out/report.md", "# Report\n")`,
	},
	{
		Name: "fs.delete", do: deleteFile,
		Params:  []Param{{Name: "path", Type: "string"}},
		Doc:     "Deletes a file, or a directory that is empty.",
		Result:  "None",
		Example: `fs.delete("old.txt")`,
	},
	{
		Name: "fs.list", do: listFiles,
		Params:  []Param{{Name: "path", Type: "string"}},
		Doc:     "Lists a directory.",
		Result:  "its names, sorted, a list of strings",
		Example: `for name in fs.list("."): log(name)`,
	},
	{
		Name: "fs.exists", do: fileExists,
		Params:  []Param{{Name: "path", Type: "string"}},
		Doc:     "Says whether a file or a directory stands at path.",
		Result:  "a bool",
		Example: `if not fs.exists("notes.txt"): fail("no notes")`,
	},
	{
		Name: "fs.diff", do: diff,
		Doc:     "Says what the run has changed in its files so far.",
		Result:  "a unified diff that git apply takes, a string; empty where nothing changed",
		Example: `assert_in("+done", fs.diff())`,
	},
}

// path reads a path as people write it.
func (a *args) path(i int) string {
	name, err := overlay.Clean(a.text(i))
	if err != nil {
		panic(badArgument{err})
	}
	return name
}

func readFile(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	content, err := b.Files().ReadFile(a.path(0))
	if err != nil {
		return nil, err
	}
	return Text(content), nil
}

func writeFile(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	return nil, b.Files().WriteFile(a.path(0), a.bytes(1), 0o644)
}

func deleteFile(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	return nil, b.Files().Remove(a.path(0))
}

func listFiles(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	names, err := b.Files().List(a.path(0))
	if err != nil {
		return nil, err
	}
	list := make([]any, 0, len(names))
	for _, n := range names {
		list = append(list, n)
	}
	return list, nil
}

func fileExists(_ context.Context, b *testbench.Bench, a *args) (any, error) {
	return b.Files().Exists(a.path(0))
}

func diff(_ context.Context, b *testbench.Bench, _ *args) (any, error) {
	patch, err := b.Files().Diff()
	return Text(patch), err
}
