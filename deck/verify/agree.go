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
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
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
	have, err := regular.Open(rec.DiffPath())
	if err != nil {
		c.problem(rec.DiffPath(), err)
		return
	}
	defer have.Close()
	if before == nil || len(c.v.Problems) > 0 {
		return // it is told what does not hold already
	}
	same := &comparer{r: bufio.NewReader(have), line: 1, differs: errOtherPatch}
	c.again(rec, rec.DiffPath(), same, derive.WritePatch(same, rec, before))
}

// again ends the holding of a file against what was made of the rest of the recording once more, which err says could not be, or is not what
// stands there. Another version may have made it otherwise.
func (c *verifier) again(rec *recording.Recording, path string, same *comparer, err error) {
	if err == nil {
		err = same.end()
	}
	if v := rec.Manifest.Versions.Tapedeck; errors.Is(err, same.differs) && v != recording.Version {
		c.note(fmt.Sprintf("%s was not compared with the tape: tapedeck %s wrote it", filepath.Base(path), v))
	} else if err != nil {
		c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: same.line, Message: err.Error()})
	}
}

// What a comparer says of a file that is another.
var (
	errOtherPatch = errors.New("it is not the patch that tree.json, the tape and the blobs make")
	errOtherLog   = errors.New("it is not the event that the tape gives")
)

// A comparer takes what should be what r gives.
type comparer struct {
	r       *bufio.Reader
	line    int   // of r, where the reading is
	differs error // that it is not
}

// Write implements io.Writer. The error is differs.
func (c *comparer) Write(b []byte) (int, error) {
	for i, want := range b {
		got, err := c.r.ReadByte()
		if err != nil || got != want {
			return i, c.differs
		}
		if got == '\n' {
			c.line++
		}
	}
	return len(b), nil
}

// skip passes by a line.
func (c *comparer) skip() error {
	for {
		switch b, err := c.r.ReadByte(); {
		case err != nil:
			return c.differs
		case b == '\n':
			c.line++
			return nil
		}
	}
}

// end is called behind the last Write.
func (c *comparer) end() error {
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		return c.differs
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
	f, err := regular.Open(path)
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

// logAgain derives the session log again and holds it against what stands there, but for the lines in which a secret was hidden.
func (c *verifier) logAgain(rec *recording.Recording, path string, f io.Reader) {
	same := &comparer{r: bufio.NewReader(f), line: 1, differs: errOtherLog}
	_, err := derive.SourceOf(rec).Derive(func(line []byte) error {
		if slices.Contains(rec.Manifest.SessionHidden, same.line) {
			return same.skip()
		}
		_, err := same.Write(line)
		return err
	})
	c.again(rec, path, same, err)
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
		c.opened(path, func(*cassette.Reader) error { return nil }) // as far as it is whole
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
		c.opened(path, func(t *cassette.Reader) error { return c.agrees(m, t) })
	}
}

// opened looks at what was kept of the terminal. What a recorder that was killed left of it must open as far as it is whole.
func (c *verifier) opened(path string, look func(*cassette.Reader) error) {
	t, err := recording.OpenTerminal(path, !c.finished)
	if err != nil {
		c.problem(path, err)
		return
	}
	defer t.Close()
	if err := look(t); err != nil {
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

// placeholderAt is a placeholder of package scrub at the beginning of a text.
var placeholderAt = lazyregexp.New(`^td_[A-Za-z0-9_.-]{1,200}?_[0-9a-f]{12}`)

const (
	resyncText   = 24        // bytes behind a placeholder that are looked for
	resyncWithin = 512 << 10 // where, in bytes: the longest secret that is passed by
)

// sameOutput compares what the tape and the cassette have of one stream, and returns where the cassette's differs from it; -1 for
// nowhere. Where the tape has a placeholder the cassette has a mask as long as the secret; and a secret that only the screen
// shows is masked in the cassette alone.
func sameOutput(taped, shown io.Reader) (at int64, err error) {
	a, b := bufio.NewReaderSize(taped, 64<<10), bufio.NewReaderSize(shown, resyncWithin)
	for {
		x, errX := some(a)
		y, errY := some(b)
		if err := errors.Join(errX, errY); err != nil {
			return 0, err
		}
		if len(x) == 0 && len(y) == 0 {
			return -1, nil
		}
		n := commonBytes(x, y)
		a.Discard(n) // it is buffered
		b.Discard(n)
		at += int64(n)
		if n == len(x) && n > 0 || n == len(y) && n > 0 {
			continue
		}
		skipped, ok := maskedAt(a, b)
		if !ok {
			return at, nil
		}
		at += skipped
	}
}

// some returns what is buffered, or can be; nothing at the end.
func some(r *bufio.Reader) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, recording.NotEOF(err)
	}
	return r.Peek(r.Buffered())
}

func commonBytes(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// maskedAt passes by a secret that a and b hide in their ways, and returns how long it is in b.
func maskedAt(a, b *bufio.Reader) (n int64, ok bool) {
	x, _ := a.Peek(300)
	if p := placeholderAt.Find(x); p != nil {
		a.Discard(len(p))
		return resync(a, b)
	}
	y, _ := b.Peek(1)
	if len(x) == 0 || len(y) == 0 || y[0] != screen.Mask && (x[0] < utf8.RuneSelf || y[0] < utf8.RuneSelf) {
		return 0, false
	}
	a.Discard(1)
	b.Discard(1)
	return 1, true
}

// resync finds in b what stands in a next.
func resync(a, b *bufio.Reader) (n int64, ok bool) {
	next, _ := a.Peek(resyncText + len("td_") - 1) // one that begins within is seen
	if i := bytes.Index(next, []byte("td_")); i > 0 {
		next = next[:i]
	}
	next = next[:min(len(next), resyncText)]
	y, _ := b.Peek(resyncWithin)
	i := len(y)
	switch {
	case bytes.HasPrefix(next, []byte("td_")): // two secrets in a row
		i = 0
	case len(next) > 0:
		i = findMasked(y, next)
	}
	if i < 0 {
		return 0, false
	}
	b.Discard(i)
	return int64(i), true
}

// findMasked returns where text stands in b, of which some may be masked there; -1 for nowhere.
func findMasked(b, text []byte) int {
	for i := range len(b) - len(text) + 1 {
		plain := 0
		for k, c := range text {
			if b[i+k] == c {
				plain++
			} else if b[i+k] != screen.Mask {
				plain = -1
				break
			}
		}
		if 2*plain >= len(text) && b[i+len(text)-1] == text[len(text)-1] {
			return i
		}
	}
	return -1
}
