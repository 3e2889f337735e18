package suite

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// first holds what Create writes; NAME stands for the name, in names and texts.
//
//go:embed first/*
var first embed.FS

var goodName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// stubName is the name of the type stub that Create writes: Pyright, and editors with it, take the names in it for built in.
const stubName = "__builtins__.pyi"

// Create writes a first script called name into dir, which is made where it is not there: the script, its tests, the answers of the
// model that they need, and the type stub for editors. It returns the files that it wrote in that order. Nothing is written where one of
// them is there already, but for the stub, which stays as it is.
func Create(dir, name string) ([]string, error) {
	name = strings.TrimSuffix(name, ".star")
	if !goodName.MatchString(name) || strings.HasSuffix(name+".star", Suffix) {
		return nil, fmt.Errorf("%q is no name for a script: want letters, digits, _ and -, and no _test at its end", name)
	}
	var paths []string
	for _, from := range []string{"NAME.star", "NAME_test.star", "NAME_test.llm.jsonl"} {
		path := filepath.Join(dir, strings.ReplaceAll(from, "NAME", name))
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, fmt.Errorf("%s is there already: choose another name", path))
		}
		paths = append(paths, path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := first.ReadFile("first/NAME" + strings.TrimPrefix(filepath.Base(path), name))
		if err == nil {
			err = create(path, bytes.ReplaceAll(text, []byte("NAME"), []byte(name)))
		}
		if err != nil {
			return nil, err
		}
	}
	stub := filepath.Join(dir, stubName)
	switch err := create(stub, script.Stub()); {
	case err == nil:
		paths = append(paths, stub)
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	return paths, nil
}

func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
