package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// Suffix is what the names of files with tests end in.
const Suffix = "_test.star"

// ErrNone is returned by Find where there is no test.
var ErrNone = errors.New("no file ends in " + Suffix)

// Find returns the files with tests among paths and below those that are directories, sorted, each once. Directories whose name
// begins with a dot are passed over, and so are the trees of fixtures (X_test.files) and links. The error is that of the file system, or
// ErrNone with the path under which there is none.
func Find(paths ...string) ([]string, error) {
	var all []string
	for _, path := range paths {
		found, err := find(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: %w", path, ErrNone)
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func find(path string) (found []string, err error) {
	path = filepath.Clean(path)
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		if st.Mode().IsRegular() && strings.HasSuffix(path, Suffix) {
			found = []string{path}
		}
		return found, nil
	}
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != path && (strings.HasPrefix(d.Name(), ".") || strings.HasSuffix(d.Name(), filesSuffix)):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.HasSuffix(p, Suffix):
			found = append(found, p)
		}
		return nil
	})
	return found, err
}

// HoldTests reports whether paths are what Find takes, directories and files of tests, or the one program that is to run: so is a single
// file that is called as tests are and holds none. The error says that they are neither.
func HoldTests(paths []string) (bool, error) {
	tests := 0
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil {
			return false, err
		}
		if st.IsDir() || strings.HasSuffix(path, Suffix) {
			tests++
		}
	}
	if tests < len(paths) && len(paths) > 1 {
		return false, fmt.Errorf("%s: want one program, or directories and files of tests; its arguments go behind --", strings.Join(paths, ", "))
	}
	return tests > 0 && (len(paths) > 1 || !isProgram(paths[0])), nil
}

// isProgram reports whether a file holds no test. Of one that does not parse the tests say so.
func isProgram(path string) bool {
	st, err := os.Stat(path)
	if err != nil || st.IsDir() {
		return false
	}
	tests, err := script.Tests(path)
	return err == nil && len(tests) == 0
}
