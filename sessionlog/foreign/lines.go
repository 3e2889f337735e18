package foreign

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// MaxLine is the longest line that is read, in bytes with its newline: 128 MiB.
const MaxLine = 128 << 20

// broken is what a line's reader returns where the line is not what it has to be. Any other error of it, one of emit, is passed
// on as it is.
type broken struct{ error }

// eachLine gives the lines of a file to each, in order: s stands before the line's value, n counts lines from 1. each reads the
// value whole, gives broken where s fails, and emits nothing before that is clear. Memory is one line.
//
// A byte order mark, CRLF, empty lines and NUL bytes that a crash left are stepped over. A last line that nothing ends and that is
// broken is said in a note; any other broken line is an *Error. A file whose name ends in .zst is unpacked on the way.
func eachLine(ctx context.Context, path string, r *Report, each func(s *jsonscan.Scanner, n int) error) error {
	return walk(ctx, path, r, func(s *jsonscan.Scanner, n int) error {
		if err := jsonscan.ValidUTF8(s.Rest()); err != nil {
			return broken{err}
		}
		return each(s, n)
	})
}

// walk is eachLine for a first reading of a file that is read once more: it does not ask whether a line is UTF-8.
func walk(ctx context.Context, path string, r *Report, each func(s *jsonscan.Scanner, n int) error) error {
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
	var s jsonscan.Scanner
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
		s.Reset(line)
		err = each(&s, lines.Line())
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

// headLines gives the values of a head's whole lines to look, until it returns true, which headLines then returns.
func headLines(head []byte, look func(s *jsonscan.Scanner) bool) bool {
	head = bytes.TrimPrefix(head, []byte(byteOrderMark))
	var s jsonscan.Scanner
	for line := range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		s.Reset(line)
		if look(&s) {
			return true
		}
	}
	return false
}
