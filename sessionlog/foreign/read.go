package foreign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err
	}
	var last time.Time
	n := 0
	err = filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !wanted(e.Name()) {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		n++
		if n == 1 || info.ModTime().After(last) || info.ModTime().Equal(last) && file > r.File {
			r.File, last = file, info.ModTime()
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		return &Error{Path: path, Err: fmt.Errorf("%w: no session of %s in this folder", ErrEmpty, r.Format)}
	case n > 1:
		r.note("%s is the newest of %d sessions in the folder", r.File, n)
	default:
		r.note("%s is the session in the folder", r.File)
	}
	return nil
}

// eachElement reads a file that is one object with a list under key: head gets the object without that list first, where it
// stands before it, and each gets the elements. Memory is one element.
func eachElement(ctx context.Context, r *Report, key string, head func(b []byte, n int) error, each func(b []byte, n int) error) error {
	f, err := os.Open(r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	s := jsonscan.NewStream(f, MaxLine)
	fail := func(err error) error {
		if fault, ok := errors.AsType[broken](err); ok {
			return &Error{Path: r.File, Line: s.Line(), Err: fault.error}
		}
		return err
	}
	for s.Begin('{'); s.More('}'); {
		switch k := string(s.Key()); {
		case k == key && s.Peek() == '[':
			for s.Begin('['); s.More(']'); {
				line := s.Line()
				b := s.Raw()
				if s.Err() != nil {
					break
				}
				r.Lines++
				if err := errors.Join(ctx.Err(), jsonscan.ValidUTF8(b)); err != nil {
					return fail(err)
				}
				if err := each(b, line); err != nil {
					return fail(err)
				}
			}
		case k == "session" && s.Peek() == '{':
			if b := s.Raw(); s.Err() == nil {
				if err := head(b, 1); err != nil {
					return fail(err)
				}
			}
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return &Error{Path: r.File, Line: s.Line(), Err: err}
	}
	return nil
}
