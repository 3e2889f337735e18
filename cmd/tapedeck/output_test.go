package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/gate"
)

// TestEverythingShownPassesVisible keeps text of recordings from terminals: what prints does so through package visible, or
// through raw where it holds none.
func TestEverythingShownPassesVisible(t *testing.T) {
	fset := token.NewFileSet()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "output.go" {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, _ := sel.X.(*ast.Ident)
			if pkg != nil && pkg.Name == "fmt" && (strings.HasPrefix(sel.Sel.Name, "Fprint") || strings.HasPrefix(sel.Sel.Name, "Print")) {
				t.Errorf("%s: fmt.%s: print with visible.Fprintf", fset.Position(sel.Pos()), sel.Sel.Name)
			}
			return true
		})
	}
}

// TestInterruptedJSON: the last line of an interrupted test says how many recordings were not tried.
func TestInterruptedJSON(t *testing.T) {
	var out bytes.Buffer
	if err := new(testOptions).write(&gate.Summary{Left: 3}, &console{streams: streams{out: &out}, json: true}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, `"exit":1`) || !strings.Contains(got, `"not_tried":3`) {
		t.Error(got)
	}
}
