package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/testbench/host"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

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
