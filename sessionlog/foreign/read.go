package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// text reads a string, and steps over anything else, for which it is "".
func text(s *jsonscan.Scanner) string {
	if s.Peek() == '"' {
		return s.Text()
	}
	s.Skip()
	return ""
}

func failure(s *jsonscan.Scanner) error {
	if s.Err() != nil {
		return broken{s.Err()}
	}
	return nil
}

// isTrue reads a true, and steps over anything else.
func isTrue(s *jsonscan.Scanner) bool {
	set := s.Peek() == 't'
	s.Skip()
	return set
}

// textIn reads an object and returns the text under a key of it. A string is returned as it is; of anything else it is "".
func textIn(s *jsonscan.Scanner, key string) (found string) {
	if s.Peek() != '{' {
		return text(s)
	}
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) != key {
			s.Skip()
		} else {
			found = text(s)
		}
	}
	return found
}

// hasKey reads a value and reports whether it is an object with a key.
func hasKey(s *jsonscan.Scanner, key string) (found bool) {
	if s.Peek() != '{' {
		s.Skip()
		return false
	}
	for s.Begin('{'); s.More('}'); {
		found = string(s.Key()) == key || found
		s.Skip()
	}
	return found
}

// count reads a number of tokens, and steps over anything that is none.
func count(s *jsonscan.Scanner) int64 {
	if c := s.Peek(); c < '0' || c > '9' {
		s.Skip()
		return 0
	}
	return s.Int()
}

// why is the reason for skipping something known, "unknown" for anything else.
func why(known bool, reason string) string {
	if known {
		return reason
	}
	return "unknown"
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}

// newest sets the file that a report is about: path, or where that is a folder the file below it, of those whose name is wanted,
// that was written last; it is said in a note.
func newest(r *Report, path string, wanted func(name string) bool) error {
	return newestThat(r, path, wanted, func([]byte) bool { return true })
}

// newestThat is newest for folders in which sessions lie that nobody means: suits is asked by how a file begins, the last written
// first. Where none suits it is the newest.
func newestThat(r *Report, path string, wanted func(name string) bool, suits func(head []byte) bool) error {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err
	}
	found, err := filesBelow(path, wanted)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &Error{Path: path, Err: fmt.Errorf("%w: no session of %s in this folder", ErrEmpty, r.Format)}
	}
	i := slices.IndexFunc(found, func(f datedFile) bool {
		head, err := headOf(f.path)
		return err == nil && suits(head)
	})
	r.File = found[max(i, 0)].path
	switch {
	case len(found) == 1:
		r.note("%s is the session in the folder", r.File)
	case i <= 0:
		r.note("%s is the newest of %d sessions in the folder", r.File, len(found))
	default:
		r.note("%s is the newest of %d sessions in the folder but for %d of sub-agents or in which nothing was said", r.File, len(found), i)
	}
	return nil
}

// A datedFile is a file and when it was written last.
type datedFile struct {
	path string
	at   time.Time
}

// filesBelow lists the files below a folder whose name is wanted, those written last first.
func filesBelow(folder string, wanted func(name string) bool) (found []datedFile, err error) {
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !wanted(e.Name()) {
			return err
		}
		info, err := e.Info()
		if err == nil {
			found = append(found, datedFile{path, info.ModTime()})
		}
		return err
	})
	slices.SortFunc(found, func(a, b datedFile) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(b.path, a.path)
	})
	return found, err
}

// withoutMark is how a file begins, without a byte order mark.
func withoutMark(head []byte) []byte { return bytes.TrimPrefix(head, []byte(byteOrderMark)) }

const byteOrderMark = "\xef\xbb\xbf"

// eachElement reads a file that is one object with a list under key, or that list alone: each gets the elements, in order, with
// the number of the line that they begin on, and about the values of the object's other keys. Memory is one element.
func eachElement(ctx context.Context, r *Report, key string, about func(key string, b []byte) error, each func(b []byte, n int) error) error {
	f, err := openFile(r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	e := &elements{s: jsonscan.NewStream(f, MaxLine), r: r, each: each, ctx: ctx}
	e.s.SkipMark()
	if e.s.Peek() == '[' {
		err = e.list()
	} else {
		err = e.object(key, about)
	}
	if fault, ok := errors.AsType[broken](err); ok {
		err = fault.error
	} else if err != nil {
		return err
	}
	if err == nil {
		err = e.s.End()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		r.note("the file is cut off behind element %d: %v", r.Lines, err)
		return nil
	}
	if err != nil {
		return &Error{Path: r.File, Line: e.s.Line(), Err: err}
	}
	return nil
}

// elements are those of a list in a file.
type elements struct {
	s    *jsonscan.Stream
	r    *Report
	each func(b []byte, n int) error
	ctx  context.Context
}

func (e *elements) object(key string, about func(key string, b []byte) error) error {
	for e.s.Begin('{'); e.s.More('}'); {
		switch k := string(e.s.Key()); {
		case k == key && e.s.Peek() == '[':
			if err := e.list(); err != nil {
				return err
			}
		default:
			b := e.s.Raw()
			if e.s.Err() != nil {
				return nil // the caller looks
			}
			if err := valid(b); err != nil {
				return err
			}
			if err := about(k, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *elements) list() error {
	for e.s.Begin('['); e.s.More(']'); {
		line := e.s.Line()
		b := e.s.Raw()
		if e.s.Err() != nil {
			return nil // the caller looks
		}
		if err := errors.Join(e.ctx.Err(), valid(b)); err != nil {
			return err
		}
		e.r.Lines++
		if err := e.each(b, line); err != nil {
			return err
		}
	}
	return nil
}

// valid reports what keeps b from being a JSON value, as broken: a Stream looks at brackets and quotes alone.
func valid(b []byte) error {
	if err := jsonscan.Valid(b); err != nil {
		return broken{err}
	}
	return nil
}
