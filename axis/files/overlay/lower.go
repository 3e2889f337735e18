package overlay

import (
	"io/fs"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An ask says what somebody wants of a path. A tape answers some by turns; a directory does not care.
type ask uint8

const (
	askWalk   ask = iota // to go on below it
	askRead              // its content
	askOpen              // its content, perhaps, later
	askStat              // what it is
	askList              // the names in it
	askChange            // to write there
	askRemove            // to take away what stands there
	askMake              // to make a directory there
)

// A look is what stands at a path.
type look struct {
	mode   files.Mode   // 0: nothing
	size   int64        // of a file
	target string       // of a link
	barred *reason      // why what stands there is not let through; mode is 0 then
	info   fs.FileInfo  // of a directory's file, as it was then
	from   *tape.Record // of a tape: the record that says so; nil where none does
}

// An entry is one name in a directory. Of its mode the type counts.
type entry struct {
	name string
	mode files.Mode
}

// A lower is what a tree begins as. Its paths hold no links but in the last place. Any number of goroutines may use it.
type lower interface {
	// look says what stands at path. The error is an *UnknownError, of a tape.
	look(path string, a ask) (look, error)
	// read returns the content of a file that look found.
	read(path string, l look) ([]byte, error)
	// list returns what stands in a directory that look found, in any order.
	list(path string, l look) ([]entry, error)
	close() error
}
