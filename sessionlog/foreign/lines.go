package foreign

import (
	"bytes"
	"cmp"
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

	"github.com/klauspost/compress/zstd"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// MaxLine is the longest line that is read, in bytes with its newline: 128 MiB.
const MaxLine = 128 << 20

const byteOrderMark = "\xef\xbb\xbf"

// broken is what a line's reader returns where the line is not what it has to be. Any other error of it, one of emit, is passed
// on as it is.
type broken struct{ error }

// eachLine gives the lines of the report's file to each, in order; n counts lines from 1. each decodes the line whole before it emits
// anything. Memory is one line.
//
// A byte order mark, CRLF, empty lines and NUL bytes that a crash left are stepped over. A last line that nothing ends and that is
// broken is said in a note; any other broken line is an *Error. A file whose name ends in .zst is unpacked on the way.
func (c *conversation) eachLine(ctx context.Context, each func(line []byte, n int) error) error {
	return walk(ctx, c.r.File, c.r, func(line []byte, n int) error {
		if err := jsonscan.ValidUTF8(line); err != nil {
			return broken{err}
		}
		return cmp.Or(each(line, n), c.failed)
	})
}

// walk is eachLine for a first reading of a file that is read once more: it does not ask whether a line is UTF-8.
func walk(ctx context.Context, path string, r *Report, each func(line []byte, n int) error) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, done, err := plain(f, path)
	if err != nil {
		return err
	}
	defer done()
	lines := jsonscan.NewLines(in, MaxLine)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &Error{Path: path, Line: lines.Line(), Err: err}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if line = trimmed(line, lines.Line(), r); len(line) == 0 {
			continue
		}
		r.Lines++
		err = each(line, lines.Line())
		if fault, ok := errors.AsType[broken](err); ok && lines.Torn() {
			r.Lines--
			r.note("the last line, %d, is cut off and was dropped: %v", lines.Line(), fault.error)
			return nil
		} else if ok {
			return &Error{Path: path, Line: lines.Line(), Err: fault.error}
		}
		if err != nil {
			return err
		}
	}
}

// trimmed is a line without what is no JSON and means nothing.
func trimmed(line []byte, n int, r *Report) []byte {
	if n == 1 {
		line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	}
	if bytes.IndexByte(line, 0) == 0 {
		r.skip("NUL bytes before a line", "what a crash leaves of a line that was never written", n)
		line = bytes.TrimLeft(line, "\x00")
	}
	return bytes.TrimSpace(line)
}

// plain unpacks what is packed with zstd.
func plain(f *os.File, path string) (in io.Reader, done func(), err error) {
	if !strings.HasSuffix(path, ".zst") {
		return f, func() {}, nil
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, nil, &Error{Path: path, Err: err}
	}
	return z, z.Close, nil
}

// withoutMark is how a file begins, without a byte order mark.
func withoutMark(head []byte) []byte { return bytes.TrimPrefix(head, []byte(byteOrderMark)) }

// headLines gives the lines of a head to look, decoded, until it returns true, which headLines then returns. A line that is none
// of JSON, as the last one that is cut off, is not given.
func headLines[T any](head []byte, look func(*T) bool) bool {
	for line := range bytes.Lines(withoutMark(head)) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var v T
		if decode(line, &v) == nil && look(&v) {
			return true
		}
	}
	return false
}

// eachElement reads a file that is one object with a list under key, or that list alone: each gets the elements, in order, with
// the number of the line that they begin on, and about the other keys of the object, whose value it reads or leaves. Memory is one
// element. A file that is cut off behind an element ends there, with a note that calls it what.
func eachElement(ctx context.Context, r *Report, key, what string, about func(key string, s *jsonscan.Stream) error, each func(b []byte, n int) error) error {
	f, err := openFile(r.File)
	if err != nil {
		return err
	}
	defer f.Close()
	s := jsonscan.NewStream(f, MaxLine)
	s.SkipMark()
	list := func() error {
		for s.Begin('['); s.More(']'); {
			line := s.Line()
			b := s.Raw()
			if s.Err() != nil {
				break
			}
			r.Lines++
			if err := ctx.Err(); err != nil {
				return err
			}
			err := valid(b)
			if err == nil {
				err = each(b, line)
			}
			if fault, ok := errors.AsType[broken](err); ok {
				return broken{fmt.Errorf("%s %d: %w", what, r.Lines, fault.error)}
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	if s.Peek() == '[' {
		err = list()
	} else {
		some := false
		err = eachMember(s, func(k string) error {
			switch {
			case k != key || s.Peek() != '[':
				return about(k, s)
			case some:
				return broken{fmt.Errorf("the key %q stands twice", k)}
			}
			some = true
			return list()
		})
	}
	if err == nil {
		err = s.End()
		if errors.Is(err, io.ErrUnexpectedEOF) && r.Lines > 0 {
			r.note("the file is cut off behind %s %d: %v", what, r.Lines, err)
			return nil
		}
		if err != nil {
			err = broken{err}
		}
	}
	if fault, ok := errors.AsType[broken](err); ok {
		return &Error{Path: r.File, Line: s.Line(), Err: fault.error}
	}
	return err
}

// eachMember gives the keys of an object to each; a value that it does not read is stepped over.
func eachMember(s *jsonscan.Stream, each func(key string) error) error {
	for s.Begin('{'); s.More('}'); {
		key, at := string(s.Key()), s.Offset()
		if err := each(key); err != nil {
			return err
		}
		if s.Offset() == at && s.Err() == nil {
			s.Skip()
		}
	}
	return nil
}

// small is the next value of a stream, decoded.
func small(s *jsonscan.Stream, to any) error {
	b := s.Raw()
	if s.Err() != nil {
		return nil // the caller of eachElement looks
	}
	if err := valid(b); err != nil {
		return err
	}
	return decode(b, to)
}

// valid reports what keeps b from being a JSON value, as broken: a Stream looks at brackets and quotes alone.
func valid(b []byte) error {
	if err := jsonscan.Valid(b); err != nil {
		return broken{err}
	}
	return nil
}

// HeadSize is how much of a file Detect looks at, in bytes.
const HeadSize = 64 << 10

// headOf returns how a file begins, nil for a folder.
func headOf(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return nil, err
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, done, err := plain(f, path)
	if err != nil {
		return nil, err
	}
	defer done()
	head, err := io.ReadAll(io.LimitReader(in, HeadSize))
	if err != nil && len(head) == 0 {
		return nil, &Error{Path: path, Err: err}
	}
	if len(strings.TrimSpace(string(head))) == 0 {
		return nil, &Error{Path: path, Err: ErrEmpty}
	}
	return head, nil // a packed file that is cut begins well
}

// openFile opens a transcript, or one of the files of one, which must be a regular file: a FIFO would keep its reader waiting for
// ever, and a device may have no end.
func openFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Path: path, Err: errors.New("expected a regular file")}
	}
	return os.Open(path)
}

var uuid = lazyregexp.New(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// newest sets the file that a report is about: path, or where that is a folder the file below it, of those whose name is wanted,
// that was written last; it is said in a note. suits is asked by how a file begins, the last written first, for folders in which
// sessions lie that nobody means; nil takes all. Where none suits it is the newest.
func newest(r *Report, path string, wanted func(name string) bool, suits func(head []byte) bool) error {
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
	i := slices.IndexFunc(found, func(path string) bool {
		head, err := headOf(path)
		return err == nil && (suits == nil || suits(head))
	})
	r.File = found[max(i, 0)]
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

// filesBelow lists the files below a folder whose name is wanted, those written last first.
func filesBelow(folder string, wanted func(name string) bool) (found []string, err error) {
	at := map[string]time.Time{}
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !wanted(e.Name()) {
			return err
		}
		info, err := e.Info()
		if err == nil {
			found = append(found, path)
			at[path] = info.ModTime()
		}
		return err
	})
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(at[b].Compare(at[a]), strings.Compare(b, a)) })
	return found, err
}
