package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// What is in a recording twice must agree: an editor of one file rarely edits the other. It is no seal.

// patch checks that workspace.diff is what the run made of the work tree that it found, as tree.json, the tape and the blobs
// have it. Another version may have written the same changes otherwise.
func (c *verifier) patch(rec *recording.Recording, before *files.Tree) {
	if !rec.Finished() || !rec.Manifest.HoldsTree() {
		return
	}
	have, err := recording.OpenRegular(rec.DiffPath())
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
	if v := rec.Manifest.Versions.Tapedeck; errors.Is(err, errDiffers) && v != recording.Version {
		c.note(fmt.Sprintf("%s was not compared with the tape: tapedeck %s wrote it", recording.DiffName, v))
		return
	}
	if err != nil {
		c.v.Problems = append(c.v.Problems, Problem{Path: rec.DiffPath(), Line: same.line, Message: err.Error()})
	}
}

// writePatch writes workspace.diff again.
func writePatch(r *recording.Recording, w io.Writer, before *files.Tree) error {
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
func (c *verifier) program(rec *recording.Recording, head *tape.Header, last tape.Kind) {
	if !c.finished || head == nil || head.Producer != recording.Producer {
		return
	}
	m, path := rec.Manifest, filepath.Join(rec.Dir, recording.ManifestName)
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

// sessionLog checks session.jsonl: that it is a session log, and, where this tapedeck made it by the rules of now, that it is the one
// that the tape gives.
func (c *verifier) sessionLog(rec *recording.Recording) {
	path := filepath.Join(rec.Dir, derive.SessionLogName)
	f, err := recording.OpenRegular(path)
	switch {
	case err != nil && recording.Gone(err) != nil:
		c.problem(path, err)
		return
	case err != nil && c.finished && rec.Manifest.SessionRules > 0:
		c.problem(path, errors.New("is missing"))
		return
	case err != nil:
		return
	}
	defer f.Close()
	whole := c.logForm(path, f)
	if !c.finished || rec.Manifest.SessionRules == 0 {
		return
	}
	if rules := rec.Manifest.SessionRules; rules != derive.SessionRules {
		c.note(fmt.Sprintf("%s was not compared with the tape: it was derived by rules %d, and these are %d", derive.SessionLogName, rules, derive.SessionRules))
		return
	}
	if !whole || len(c.v.Problems) > 0 {
		return // it is told what does not hold already
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		c.problem(path, err)
		return
	}
	c.logAgain(rec, path, f)
}

// logForm checks each line by itself, and reports whether all hold.
func (c *verifier) logForm(path string, f io.Reader) bool {
	r := sessionlog.NewReader(f, path, &sessionlog.ReaderOptions{Tolerant: !c.finished})
	want := uint64(0)
	for e := range r.Events() {
		if !e.HasSeq || e.Seq != want {
			c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: e.Line, Message: fmt.Sprintf("want an event with seq %d", want)})
			return false
		}
		want++
	}
	var le *sessionlog.LoadError
	switch err := r.Err(); {
	case errors.As(err, &le):
		c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: le.Line, Message: le.Err.Error()})
	case err != nil:
		c.problem(path, err)
	default:
		return true
	}
	return false
}

// errOtherLog ends a deriving whose line is not the one that stands there.
var errOtherLog = errors.New("it is not the event that the tape gives")

// logAgain derives the session log again and holds it against what stands there.
func (c *verifier) logAgain(rec *recording.Recording, path string, f io.Reader) {
	have := jsonscan.NewLines(f, sessionlog.MaxEntry)
	n := 0
	_, err := derive.SourceOf(rec).Derive(func(line []byte) error {
		n++
		got, err := have.Next()
		if err != nil || !bytes.Equal(got, line) && !slices.Contains(rec.Manifest.SessionHidden, n) {
			return errOtherLog
		}
		return nil
	})
	if err == nil {
		n++
		if _, more := have.Next(); !errors.Is(more, io.EOF) {
			err = errOtherLog
		}
	}
	if v := rec.Manifest.Versions.Tapedeck; errors.Is(err, errOtherLog) && v != recording.Version {
		c.note(fmt.Sprintf("%s was not compared with the tape: tapedeck %s wrote it", derive.SessionLogName, v))
		return
	}
	if err != nil {
		c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: n, Message: err.Error()})
	}
}

// terminal checks the cassette of what the program's terminal showed, and that it is what the tape has of it.
func (c *verifier) terminal(rec *recording.Recording) {
	m, path := rec.Manifest, rec.TerminalPath()
	if m.TTY == nil {
		return // what is there is none of the program's
	}
	if !recording.Exists(path) {
		if c.finished && !slices.Contains(m.Axes["terminal"].NotCovered, recording.GapScreen) {
			c.problem(path, errors.New("is missing"))
		}
		return
	}
	if !c.finished {
		c.partial(path)
		return
	}
	found, err := cassette.Verify(path)
	if err != nil {
		c.problem(path, err)
		return
	}
	for _, f := range found.Findings {
		text := strings.TrimPrefix(f.Text, f.File+": ")
		if f.Line > 0 {
			text = strings.TrimPrefix(text, fmt.Sprintf("line %d: ", f.Line))
		}
		c.v.Problems = append(c.v.Problems, Problem{Path: filepath.Join(path, f.File), Line: f.Line, Message: text})
	}
	if found.More > 0 {
		c.problem(path, fmt.Errorf("and %d more", found.More))
	}
	if len(found.Findings) == 0 {
		c.holdsBoth(m, path)
	}
}

// partial checks what a recorder that was killed left of the terminal: it must open as far as it is whole.
func (c *verifier) partial(path string) {
	t, err := recording.OpenTerminal(path, true)
	if err != nil {
		c.problem(path, err)
		return
	}
	t.Close()
}

func (c *verifier) holdsBoth(m *recording.Manifest, path string) {
	t, err := recording.OpenTerminal(path, false)
	if err == nil {
		defer t.Close()
		err = c.agrees(m, t)
	}
	if err != nil {
		c.problem(filepath.Join(path, cassette.OutputFile), err)
	}
}

// agrees holds what the terminal showed, and how the program ended, against the tape's last record.
func (c *verifier) agrees(m *recording.Manifest, t *cassette.Reader) error {
	sp, ok := c.last.(*tape.ProcessSpawn)
	if !ok || m.TTY == nil {
		return nil
	}
	if f := t.Final(); f != nil && f.Exit != nil && (f.Exit.Code != sp.ExitCode || f.Exit.Signal != sp.Signal) {
		return fmt.Errorf("its program ended with code %d, that of the tape with %d", f.Exit.Code, sp.ExitCode)
	}
	p := sp.Stdout
	if m.TTY.ShownAs() == 2 {
		p = sp.Stderr
	}
	if p == nil {
		return nil
	}
	r, err := p.Open(c.store)
	if err != nil {
		return nil // it is told with its record
	}
	defer r.Close()
	at, err := sameOutput(r, t.OutputReader())
	if err != nil {
		return err
	}
	if at >= 0 {
		return fmt.Errorf("it differs from what the tape has of the terminal, from byte %d on", at)
	}
	return nil
}
