// Package rooms_test holds the code to the table of rooms in ARCHITECTURE.md: every package is in a room of it and has one doc comment, and
// a room imports rooms of its own group and of groups above it, never below, never in a circle; no axis imports another but axis/exchange.
// What .golangci.yml denies beyond that stands there. Links between pages, and names of pages in code and messages, lead somewhere.
//
// Files of every system are read. Tests are left out: they may use what stands on top.
package rooms_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/tapedeck-dev/tapedeck/"
	groups = 4 // of rooms
)

// A building is the table and the code.
type building struct {
	groupOf  map[string]int // by room, a folder; 0 is the first group, which imports no other
	packages map[string]*pkg
}

// A pkg is the Go files of a folder, tests left out.
type pkg struct {
	documented []string // files with a doc comment
	imports    []string // folders, of this module
}

func TestPackagesHaveOneDocComment(t *testing.T) {
	for folder, p := range read(t).packages {
		if len(p.documented) != 1 {
			t.Errorf("%s has %d doc comments, want one: %q", folder, len(p.documented), p.documented)
		}
	}
}

func TestPackagesAreInARoom(t *testing.T) {
	b := read(t)
	for folder := range b.packages {
		if b.room(folder) == "" {
			t.Errorf("%s is in no room of ARCHITECTURE.md", folder)
		}
	}
	for room := range b.groupOf {
		if _, err := os.Stat(filepath.Join(root, room)); err != nil {
			t.Errorf("a room without a folder: %v", err)
		}
	}
}

func TestRoomsImportUpwards(t *testing.T) {
	b := read(t)
	for folder, p := range b.packages {
		room := b.room(folder)
		for _, imported := range p.imports {
			if of := b.room(imported); b.groupOf[of] > b.groupOf[room] {
				t.Errorf("%s imports %s, which is of a group below", folder, imported)
			}
			if one, other := axis(folder), axis(imported); one != "" && other != "" && one != other && other != "exchange" {
				t.Errorf("%s imports %s, another axis", folder, imported)
			}
		}
	}
}

func TestNoRoomsImportEachOther(t *testing.T) {
	b := read(t)
	next := make(map[string][]string)
	for folder, p := range b.packages {
		for _, imported := range p.imports {
			if from, to := b.room(folder), b.room(imported); from != to {
				next[from] = append(next[from], to)
			}
		}
	}
	done := make(map[string]bool)
	var visit func(room string, way []string)
	visit = func(room string, way []string) {
		if at := slices.Index(way, room); at >= 0 {
			t.Errorf("a circle: %s", strings.Join(append(way[at:], room), " imports "))
			return
		}
		if done[room] {
			return
		}
		for _, to := range next[room] {
			visit(to, append(slices.Clone(way), room))
		}
		done[room] = true
	}
	for room := range next {
		visit(room, nil)
	}
}

// axis is the axis that a folder belongs to, "" for none.
func axis(folder string) string {
	under, ok := strings.CutPrefix(folder, "axis/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(under, "/")
	return name
}

// room is the row of the table that a folder belongs to: its own, or that of the nearest folder above it that has one.
func (b *building) room(folder string) string {
	for ; folder != "."; folder = path.Dir(folder) {
		if _, ok := b.groupOf[folder]; ok {
			return folder
		}
	}
	return ""
}

func read(t *testing.T) *building {
	t.Helper()
	b := &building{groupOf: table(t), packages: make(map[string]*pkg)}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && skipped(name, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			return b.add(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.packages) < len(b.groupOf)/2 {
		t.Fatalf("%d packages for %d rooms: the code is elsewhere", len(b.packages), len(b.groupOf))
	}
	return b
}

// skipped reports whether a folder holds no packages of this module.
func skipped(folder, name string) bool {
	if strings.HasPrefix(name, ".") || name == "testdata" {
		return true
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// table reads the rooms' groups.
func table(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	group, room := regexp.MustCompile(`^\| \*\*.+\*\* \|`), regexp.MustCompile("^\\| `([^`]+)/` \\|")
	of, n := make(map[string]int), -1
	for line := range strings.Lines(string(text)) {
		if group.MatchString(line) {
			n++
		} else if m := room.FindStringSubmatch(line); m != nil {
			of[m[1]] = n
		}
	}
	if n != groups-1 {
		t.Fatalf("ARCHITECTURE.md has %d groups of rooms, want %d", n+1, groups)
	}
	return of
}

// add reads the head of one file.
func (b *building) add(name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	folder := path.Dir(filepath.ToSlash(relative))
	p := b.packages[folder]
	if p == nil {
		p = new(pkg)
		b.packages[folder] = p
	}
	if file.Doc != nil {
		p.documented = append(p.documented, path.Base(filepath.ToSlash(name)))
	}
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		if of, ok := strings.CutPrefix(imported, module); ok && !slices.Contains(p.imports, of) {
			p.imports = append(p.imports, of)
		}
	}
	return nil
}
