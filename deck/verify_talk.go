package deck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// talk checks session.jsonl: that it is a session log, and, where this tapedeck made it by the rules of now, that it is the one
// that the tape gives.
func (c *verifier) talk(rec *Recording) {
	path := filepath.Join(rec.Dir, sessionLogName)
	f, err := openRegular(path)
	switch {
	case err != nil && gone(err) != nil:
		c.problem(path, err)
		return
	case err != nil && c.finished && rec.Manifest.SessionRules > 0:
		c.problem(path, errors.New("is missing"))
		return
	case err != nil:
		return
	}
	defer f.Close()
	whole := c.talkForm(path, f)
	if !c.finished || rec.Manifest.SessionRules == 0 {
		return
	}
	if rules := rec.Manifest.SessionRules; rules != SessionRules {
		c.note(fmt.Sprintf("%s was not compared with the tape: it was derived by rules %d, and these are %d", sessionLogName, rules, SessionRules))
		return
	}
	if !whole || len(c.v.Problems) > 0 {
		return // it is told what does not hold already
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		c.problem(path, err)
		return
	}
	c.talkAgain(rec, path, f)
}

// talkForm checks each line by itself, and reports whether all hold.
func (c *verifier) talkForm(path string, f io.Reader) bool {
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

// errOtherTalk ends a deriving whose line is not the one that stands there.
var errOtherTalk = errors.New("it is not the event that the tape gives")

// talkAgain derives the session log again and holds it against what stands there.
func (c *verifier) talkAgain(rec *Recording, path string, f io.Reader) {
	have := jsonscan.NewLines(f, sessionlog.MaxEntry)
	n := 0
	_, err := talkSourceOf(rec).derive(func(line []byte) error {
		n++
		got, err := have.Next()
		if err != nil || !bytes.Equal(got, line) && !slices.Contains(rec.Manifest.SessionHidden, n) {
			return errOtherTalk
		}
		return nil
	})
	if err == nil {
		n++
		if _, more := have.Next(); !errors.Is(more, io.EOF) {
			err = errOtherTalk
		}
	}
	if v := rec.Manifest.Versions.Tapedeck; errors.Is(err, errOtherTalk) && v != Version {
		c.note(fmt.Sprintf("%s was not compared with the tape: tapedeck %s wrote it", sessionLogName, v))
		return
	}
	if err != nil {
		c.v.Problems = append(c.v.Problems, Problem{Path: path, Line: n, Message: err.Error()})
	}
}
