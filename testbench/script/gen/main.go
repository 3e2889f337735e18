// Command gen writes what is known about a script's functions for people and for their editors: a part of docs/reference/script.md and the
// type stub tapedeck.pyi. Both come from the table that the engine itself runs.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/tapedeck-dev/tapedeck/testbench/host"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

func main() {
	docs := flag.String("docs", "", "write the functions between the marks of this page")
	stub := flag.String("stub", "", "write the type stub to this file")
	flag.Parse()
	page, err := os.ReadFile(*docs)
	if err != nil {
		log.Fatal(err)
	}
	if page, err = withReference(page); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*docs, page, 0o644); err != nil {
		log.Fatal(err)
	}
	text, err := typeStub()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*stub, text, 0o644); err != nil {
		log.Fatal(err)
	}
}

// The marks of the page between which the functions stand.
const (
	begin = "<!-- functions: written by go generate ./testbench/script -->\n"
	end   = "<!-- end of functions -->\n"
)

// withReference puts the functions between the marks.
func withReference(page []byte) ([]byte, error) {
	head, rest, found := bytes.Cut(page, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, fmt.Errorf("the page has not the lines %q and %q", begin, end)
	}
	return []byte(string(head) + begin + "\n" + reference() + end + string(tail)), nil
}

func reference() string {
	var b strings.Builder
	for _, f := range script.Functions() {
		fmt.Fprintf(&b, "### `%s`\n\n%s\n", f, f.Doc)
		for _, p := range f.Params {
			fmt.Fprintf(&b, "`%s`: %s%s. ", p.Name, p.Type, optional(p))
		}
		fmt.Fprintf(&b, "Gives %s. Example: `%s`\n\n", f.Result, strings.ReplaceAll(f.Example, "\n", "; "))
	}
	return b.String()
}

func optional(p host.Param) string {
	if p.Optional && !strings.HasPrefix(p.Name, "*") {
		return ", or nothing"
	}
	return ""
}

// parameterTypes are Python's words for ours.
var parameterTypes = map[string]string{
	"int": "int", "string": "str", "dict": "dict[str, Any]", "anything": "Any", "function": "Callable[[], Any]",
	"string or bytes": "str | bytes", "string or list": "str | list[Any]", "string or dict": "str | dict[str, Any]",
	"list of strings": "Sequence[str]", "list of dicts": "Sequence[Mapping[str, Any]]", "dict of strings": "Mapping[str, str]",
	"list of functions": "Sequence[Callable[[], Any]]", "string, list, dict or set": "str | Sequence[Any] | Mapping[Any, Any] | set[Any]",
}

// resultTypes are what the functions give, by their names.
var resultTypes = map[string]string{
	"clock.now_ms": "int", "clock.monotonic_ms": "int", "clock.sleep": "None", "clock.advance": "None",
	"llm.complete": "Completion",
	"fs.read":      "Any", "fs.write": "None", "fs.delete": "None", "fs.list": "list[str]", "fs.exists": "bool", "fs.diff": "str",
	"process.run": "ProcessResult", "mcp.call": "dict[str, Any]", "http.get": "HTTPResponse", "http.post": "HTTPResponse",
	"random.int": "int", "random.bytes": "bytes", "env.get": "Any",
	"parallel": "list[Any]", "log": "None", "assert_eq": "None", "assert_true": "None", "assert_in": "None", "on_finish": "None",
	"json.encode": "str", "json.decode": "Any", "struct": "Any",
}

const stubHead = `# The names that a script of tapedeck has beside those of Python, for editors. Written by go generate ./testbench/script.
from typing import Any, Callable, Mapping, NoReturn, Sequence, TypedDict

# Of Starlark's own those that Python lacks.
def fail(*values: Any, sep: str = " ") -> NoReturn: ...
def load(module: str, /, *names: str, **renamed: str) -> None: ...

class ToolCall(TypedDict):
    id: str
    name: str
    arguments: dict[str, Any]

class Usage(TypedDict):
    input_tokens: int
    output_tokens: int

class Completion(TypedDict):
    text: str
    tool_calls: list[ToolCall]
    usage: Usage
    stop_reason: str | None

class ProcessResult(TypedDict):
    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int

class HTTPResponse(TypedDict):
    status: int
    headers: dict[str, str]
    body: str
`

// typeStub is a class for each name before a dot, its one value, and the functions without a dot.
func typeStub() ([]byte, error) {
	var b strings.Builder
	b.WriteString(stubHead)
	spaces := map[string]bool{}
	for _, f := range script.Functions() {
		space, _, dotted := strings.Cut(f.Name, ".")
		if !dotted {
			if err := writeFunction(&b, f, ""); err != nil {
				return nil, err
			}
			continue
		}
		if spaces[space] {
			continue
		}
		spaces[space] = true
		if err := writeSpace(&b, space); err != nil {
			return nil, err
		}
	}
	return []byte(b.String()), nil
}

func writeSpace(b *strings.Builder, space string) error {
	fmt.Fprintf(b, "\nclass _%s:\n", space)
	for _, f := range script.Functions() {
		if !strings.HasPrefix(f.Name, space+".") {
			continue
		}
		if err := writeFunction(b, f, "    "); err != nil {
			return err
		}
	}
	fmt.Fprintf(b, "\n%s: _%s\n", space, space)
	return nil
}

func writeFunction(b *strings.Builder, f *host.Function, indent string) error {
	result, ok := resultTypes[f.Name]
	if !ok {
		return fmt.Errorf("%s has no type of its result in resultTypes", f.Name)
	}
	var params []string
	if indent != "" {
		params = append(params, "self")
	}
	for _, p := range f.Params {
		t, ok := parameterTypes[p.Type]
		if !ok {
			return fmt.Errorf("%s: %s: no word of Python's for %q in parameterTypes", f.Name, p.Name, p.Type)
		}
		switch {
		case strings.HasPrefix(p.Name, "*"):
			params = append(params, p.Name+": "+t)
		case p.Optional && t != "Any":
			params = append(params, p.Name+": "+t+" | None = None")
		case p.Optional:
			params = append(params, p.Name+": "+t+" = None")
		default:
			params = append(params, p.Name+": "+t)
		}
	}
	name := f.Name[strings.IndexByte(f.Name, '.')+1:]
	if indent == "" {
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%sdef %s(%s) -> %s:\n%s    \"\"\"%s Gives %s.\"\"\"\n", indent, name, strings.Join(params, ", "), result, indent, f.Doc, f.Result)
	return nil
}
