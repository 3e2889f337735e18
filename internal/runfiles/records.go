package runfiles

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// Pause is how long Follow waits before it looks again.
const Pause = 200 * time.Millisecond

// Records yields the lines of a trace, without their ends, as far as they are whole. A line is valid until the next. The error,
// at most one and last, wraps ErrNotFound where there is no such run.
func (d *Dir) Records(ctx context.Context, id runtrace.ID) iter.Seq2[[]byte, error] {
	return d.read(ctx, id, false)
}

// Follow is Records, and then those that come, to the record ended or the end of ctx.
func (d *Dir) Follow(ctx context.Context, id runtrace.ID) iter.Seq2[[]byte, error] {
	return d.read(ctx, id, true)
}

func (d *Dir) read(ctx context.Context, id runtrace.ID, follow bool) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		path, err := d.file(id)
		if err != nil {
			yield(nil, err)
			return
		}
		f, err := os.Open(path)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s: %w", id, ErrNotFound)
			}
			yield(nil, err)
			return
		}
		defer f.Close()
		l := &lines{r: bufio.NewReaderSize(f, 64<<10)}
		for {
			line, err := l.next()
			switch {
			case errors.Is(err, io.EOF) && follow:
				if err := pause(ctx); err != nil {
					yield(nil, err)
					return
				}
				continue
			case errors.Is(err, io.EOF):
				return
			case err == nil:
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, fmt.Errorf("%s: line %d: %w", path, l.n, err))
				return
			}
			tag, err := runtrace.Tag(line)
			if err != nil {
				yield(nil, fmt.Errorf("%s: line %d: %w", path, l.n, err))
				return
			}
			if !yield(line, nil) || follow && tag == "ended" {
				return
			}
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(Pause):
		return nil
	}
}

// lines reads a file that grows. io.EOF is no line yet.
type lines struct {
	r    *bufio.Reader
	held []byte // the beginning of a line that has no end yet
	n    int
}

func (l *lines) next() ([]byte, error) {
	for {
		part, err := l.r.ReadSlice('\n')
		l.held = append(l.held, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(l.held) <= runtrace.MaxLine:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("expected lines of at most %d bytes", runtrace.MaxLine)
		case err != nil:
			return nil, err
		}
		line := bytes.TrimSuffix(l.held, []byte("\n"))
		l.held = l.held[:0]
		l.n++
		return line, nil
	}
}
