package files

import (
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// fakeScrubber hides the word hunter2.
type fakeScrubber struct{}

const (
	secretWord  = "hunter2"
	placeholder = "td_word_0123456789ab"
)

func (fakeScrubber) Bytes(b []byte) ([]byte, bool) {
	out := bytes.ReplaceAll(b, []byte(secretWord), []byte(placeholder))
	return out, !bytes.Equal(out, b)
}

func (fakeScrubber) KeyedDigest(b []byte) string {
	h := fnv.New64a()
	h.Write(b)
	return fmt.Sprintf("%016x", h.Sum64())
}

func (fakeScrubber) CredentialFile(path string) bool { return names.IsCredentialFile(path) }

// A model is a tree as a test wants it: path to text, "->target" for a link, "/" for a directory, "*text" for an
// executable.
type model map[string]string

// build writes the model below dir.
func (m model) build(t testing.TB, dir string) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(m)) {
		must(t, m.place(filepath.Join(dir, p), m[p]))
	}
}

func (m model) place(path, what string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch {
	case what == "/":
		return os.MkdirAll(path, 0o755)
	case strings.HasPrefix(what, "->"):
		return os.Symlink(what[2:], path)
	case strings.HasPrefix(what, "*"):
		if err := os.WriteFile(path, []byte(what[1:]), 0o755); err != nil {
			return err
		}
		return os.Chmod(path, 0o755)
	}
	if err := os.WriteFile(path, []byte(what), 0o644); err != nil {
		return err
	}
	return os.Chmod(path, 0o644)
}

// second returns the error of a call that gives something else, too.
func second[T any](_ T, err error) error { return err }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snap takes a snapshot that must succeed.
func snap(t testing.TB, root string, opts *SnapOptions) *Tree {
	t.Helper()
	tree, err := Snap(root, opts)
	must(t, err)
	must(t, tree.Validate())
	return tree
}

// paths lists the paths of the entries.
func paths(t *Tree) []string {
	var out []string
	for _, e := range t.Entries {
		out = append(out, e.Path)
	}
	return out
}

// age sets the modification times below root into the past, so that no stamp is racy.
func age(t testing.TB, root string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	must(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return os.Chtimes(p, old, old)
	}))
}

func openStore(t testing.TB, dir string) *cas.Dir {
	t.Helper()
	s, err := cas.OpenDir(dir, nil)
	must(t, err)
	return s
}

// genModel draws a small tree of awkward names and contents.
func genModel(t *rapid.T, label string) model {
	m := model{}
	for range rapid.IntRange(0, 12).Draw(t, label+" files") {
		path := strings.Join(rapid.SliceOfN(genName, 1, 3).Draw(t, "path"), "/")
		m.add(path, genContent.Draw(t, "content"))
	}
	return m
}

// add puts path into m unless it would have to lie in a file, or replace a directory that holds something.
func (m model) add(path, what string) {
	for p := parentOf(path); p != ""; p = parentOf(p) {
		if v, ok := m[p]; ok && v != "/" {
			return
		}
	}
	for p := range m {
		if p != path && under(p, path) {
			return
		}
	}
	m[path] = what
}

// open drops the secret files.
func (m model) open() model {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(p, what string) bool { return baseOf(p) == ".env" || strings.Contains(what, secretWord) })
	return out
}

var genName = rapid.SampledFrom([]string{"a", "b", "a-b", "a.o", "sp ace", "q\"uo\\te", "tab\tnl\nx", "\xff\xfe", "ü", ".env", "-x", "'"})

var genContent = rapid.OneOf(
	rapid.SampledFrom([]string{"", "x", "x\n", "a\nb\nc\n", "a\r\nb\r\n", "*#!/bin/sh\n", "bin\x00\x01\xff\n", "/", "->a", "->../b/c",
		"->no where", "\xff\xfe\n", "+++ b/x\n--- a/x\n@@ -1 +1 @@\n", strings.Repeat("line\n", 30) + "tail", "pw=" + secretWord + "\n"}),
	rapid.StringMatching(`([a-c]\n){0,40}[a-c]?`),
)

// mutate draws what a run does to a tree.
func mutate(t *rapid.T, m model) model {
	out := maps.Clone(m)
	for _, p := range slices.Sorted(maps.Keys(m)) {
		switch rapid.IntRange(0, 4).Draw(t, "fate") {
		case 0:
			delete(out, p)
		case 1:
			out.add(p, genContent.Draw(t, "new content"))
		}
	}
	for p, what := range genModel(t, "added") {
		out.add(p, what)
	}
	return out
}

// init has properties tried on fewer examples than rapid would, unless TAPEDECK_LONG is set; each is files on the disk.
func init() {
	if os.Getenv("TAPEDECK_LONG") == "" {
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
}

// lower gives a bound another value until the test has ended.
func lower(t *testing.T, bound *int, to int) {
	was := *bound
	*bound = to
	t.Cleanup(func() { *bound = was })
}

// records turns changes into records, in the same order. The first error of the store ends the sequence.
func records(changes []Change, store cas.Store) iter.Seq2[tape.Record, error] {
	r := &recorder{store: store}
	return func(yield func(tape.Record, error) bool) {
		for i := range changes {
			rec, err := r.between(changes[i].Path, changes[i].Before, changes[i].After)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}
