package gate

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

// A Kind is what a case is made of.
type Kind string

// A recording in its directory, a packed one, a file of scripts' tests.
const (
	Recording Kind = "recording"
	Packed    Kind = "packed"
	Script    Kind = "script"
)

// A Case is one thing to try.
type Case struct {
	Path string // as it was found: below a path that was given
	Kind Kind
}

// libraryName is the one directory with a dot that is looked into.
const libraryName = ".tapedeck"

// Find returns what can be tried at and below paths, sorted, each once. Directories whose name begins with a dot are passed over, but
// for libraries (.tapedeck), and so are links, node_modules and the insides of recordings. The error is that of the file system, or
// says which path holds nothing.
func Find(paths ...string) ([]Case, error) {
	var all []Case
	for _, path := range paths {
		found, err := find(filepath.Clean(path))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no recording, packed recording or script's tests (*%s) here", path, suite.Suffix)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Case) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(all), nil
}

// packedSuffix ends the names of packed recordings, mostly.
const packedSuffix = ".tar.zst"

// isRecording reports whether a directory is a recording, or was one: what lacks its manifest alone is damaged.
func isRecording(dir string) bool {
	return library.HoldsRecording(dir) || recording.Exists(filepath.Join(dir, recording.TapeName)) && recording.IsDir(filepath.Join(dir, recording.TapeName+tape.StoreSuffix))
}

// isPlaceholder reports whether a file has the name of a packed recording and is empty, or what stands for it where Git LFS fetched nothing.
func isPlaceholder(path string) bool {
	if !strings.HasSuffix(path, packedSuffix) {
		return false
	}
	f, err := recording.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	const pointer = "version https://git-lfs"
	head := make([]byte, len(pointer))
	n, _ := io.ReadFull(f, head)
	return n == 0 || string(head) == pointer
}

func find(top string) (found []Case, err error) {
	if _, err := os.Stat(top); err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(top); err == nil && library.HoldsRecording(real) {
		return []Case{{top, Recording}}, nil
	}
	walk := top
	if recording.IsDir(top) {
		walk += string(filepath.Separator) // through a link
	}
	err = filepath.WalkDir(walk, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != walk && (strings.HasPrefix(name, ".") && name != libraryName || name == "node_modules" || strings.HasSuffix(name, ".cas")):
			return filepath.SkipDir
		case d.IsDir() && isRecording(path):
			found = append(found, Case{path, Recording})
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case strings.HasSuffix(name, suite.Suffix) && d.Type().IsRegular():
			found = append(found, Case{path, Script})
		case (d.Type().IsRegular() || path == top) && (library.LooksPacked(path) || strings.HasSuffix(name, ".rec"+packedSuffix) || isPlaceholder(path)):
			found = append(found, Case{path, Packed})
		}
		return nil
	})
	return found, err
}
