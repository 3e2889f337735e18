package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// MaxLine is the longest line that is read, in bytes with its newline: 128 MiB.
const MaxLine = 128 << 20

const byteOrderMark = "\xef\xbb\xbf"

// broken is what a line's reader returns where the line is not what it has to be. Any other error of it, one of emit, is passed
// on as it is.
type broken struct{ error }

// eachLine gives the lines of a file to each, in order; n counts lines from 1. each decodes the line whole before it emits
// anything. Memory is one line.
//
// A byte order mark, CRLF, empty lines and NUL bytes that a crash left are stepped over. A last line that nothing ends and that is
// broken is said in a note; any other broken line is an *Error. A file whose name ends in .zst is unpacked on the way.
func eachLine(ctx context.Context, path string, r *Report, each func(line []byte, n int) error) error {
	return walk(ctx, path, r, func(line []byte, n int) error {
		if err := jsonscan.ValidUTF8(line); err != nil {
			return broken{err}
		}
		return each(line, n)
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
