package httptape_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/httptape"
)

// TestGuide holds docs/library.md against the package: every option stands in it, and every name that it uses exists.
func TestGuide(t *testing.T) {
	b, err := os.ReadFile("../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(b)
	options := reflect.TypeFor[httptape.Options]()
	for i := range options.NumField() {
		if name := options.Field(i).Name; !strings.Contains(guide, name) && name != "Env" && name != "AllowUnmatched" {
			t.Errorf("Options.%s stands nowhere", name)
		}
	}
	for _, m := range regexp.MustCompile(`Options\.([A-Z]\w+)`).FindAllStringSubmatch(guide, -1) {
		if _, ok := options.FieldByName(m[1]); !ok {
			t.Errorf("there is no Options.%s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`"github\.com/tapedeck-dev/tapedeck/([a-z/]+)"`).FindAllStringSubmatch(guide, -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Errorf("there is no package %s", m[1])
		}
	}
	exported := exportedNames(t)
	for _, m := range regexp.MustCompile("httptape\\.([A-Z]\\w+)|`\\*?((?:Mode|Err)[A-Z]\\w+|[A-Z]\\w+Error)`").FindAllStringSubmatch(guide, -1) {
		name := m[1] + m[2]
		if !exported[name] && name != "ErrInteractionNotFound" && name != "ErrCassetteNotFound" {
			t.Errorf("there is no httptape.%s", name)
		}
	}
	transport := reflect.TypeFor[*httptape.Transport]()
	for _, m := range regexp.MustCompile(`tr\.([A-Z]\w+)\(`).FindAllStringSubmatch(guide, -1) {
		if _, ok := transport.MethodByName(m[1]); !ok {
			t.Errorf("a Transport has no %s", m[1])
		}
	}
}

// exportedNames lists what the package declares at its top.
func exportedNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name != "httptape" {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}
