package deck

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// What is in a recording twice must agree: an editor of one file rarely edits the other. It is no seal.

// patch checks that workspace.diff is what the run made of the work tree that it found, as tree.json, the tape and the blobs
// have it. Another version may have written the same changes otherwise.
func (c *verifier) patch(rec *Recording, before *files.Tree) {
	if !rec.Finished() || !rec.Manifest.holdsTree() {
		return
	}
	have, err := openRegular(rec.DiffPath())
	if err != nil {
		c.problem(rec.DiffPath(), err)
		return
	}
	defer have.Close()
	if before == nil || len(c.v.Problems) > 0 {
		return // it is told what does not hold already
	}
	same := &comparer{r: bufio.NewReader(have), line: 1}
	err = writePatch(rec, same, before)
	if err == nil {
		err = same.end()
	}
	if v := rec.Manifest.Versions.Tapedeck; errors.Is(err, errDiffers) && v != Version {
		c.note(fmt.Sprintf("%s was not compared with the tape: tapedeck %s wrote it", diffName, v))
		return
	}
	if err != nil {
		c.v.Problems = append(c.v.Problems, Problem{Path: rec.DiffPath(), Line: same.line, Message: err.Error()})
	}
}

// writePatch writes workspace.diff again.
func writePatch(r *Recording, w io.Writer, before *files.Tree) error {
	t, err := r.OpenTape()
	if err != nil {
		return err
	}
	defer t.Close()
	store, err := files.NewStaging(t.Store, "")
	if err != nil {
		return err
	}
	defer store.Close()
	after, err := files.After(before, t.Records(), store)
	if err != nil {
		return err
	}
	return files.WritePatch(w, files.Changes(before, after), store)
}

var errDiffers = errors.New("it is not the patch that tree.json, the tape and the blobs make")

// A comparer takes what should be what r gives.
type comparer struct {
	r    *bufio.Reader
	line int // of r, where the reading is
}

// Write implements io.Writer. The error wraps errDiffers.
func (c *comparer) Write(b []byte) (int, error) {
	for i, want := range b {
		got, err := c.r.ReadByte()
		if err != nil || got != want {
			return i, errDiffers
		}
		if got == '\n' {
			c.line++
		}
	}
	return len(b), nil
}

// end is called behind the last Write.
func (c *comparer) end() error {
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		return errDiffers
	}
	return nil
}

// program checks that recording.json and the tape speak of the same command line and of the same end.
func (c *verifier) program(rec *Recording, head *tape.Header, last tape.Kind) {
	if !c.finished || head == nil || head.Producer != Producer {
		return
	}
	m, path := rec.Manifest, filepath.Join(rec.Dir, manifestName)
	if !slices.EqualFunc(m.Argv[1:], head.Argv, sameArg) {
		c.problem(path, fmt.Errorf("argv: the tape is of a run with the arguments %q", head.Argv))
	}
	sp, ok := last.(*tape.ProcessSpawn)
	if ok && m.Exit != nil && (sp.ExitCode != m.Exit.Code || sp.Signal != m.Exit.Signal) {
		c.problem(path, fmt.Errorf("exit: the tape is of a run that ended with code %d", sp.ExitCode))
	}
}

// sameArg reports whether a and b are one argument. Where one of them holds a secret both had it hidden, in the ways of their
// places.
func sameArg(a, b string) bool { return a == b || holdsPlaceholder(a) || holdsPlaceholder(b) }

func holdsPlaceholder(s string) bool { return string(scrub.Renumber([]byte(s))) != s }
