package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestEverythingShownPassesVisible keeps text of recordings from terminals: what prints does so through package visible, or
// through raw where it holds none.
func TestEverythingShownPassesVisible(t *testing.T) {
	fset := token.NewFileSet()
	//nolint:staticcheck // one directory, without types
	pkgs, err := parser.ParseDir(fset, ".", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range pkgs["main"].Files {
		if strings.HasSuffix(name, "_test.go") || name == "output.go" {
			continue
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
