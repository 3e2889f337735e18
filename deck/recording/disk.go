package recording

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Gone is err, unless it says that something was removed while it was looked at.
func Gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// NotEOF is err, unless it is the end of what was read.
func NotEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Exists reports whether anything stands at path, a link that leads nowhere too.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// IsDir reports whether path leads to a directory.
func IsDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// OpenRegular opens a file to read, and nothing else than a file: a FIFO would keep its reader waiting for ever.
func OpenRegular(path string) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return os.Open(path)
}

// ReadBounded reads a whole file of at most limit bytes.
func ReadBounded(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if st, err := f.Stat(); err == nil {
		b.Grow(int(min(st.Size(), limit)) + bytes.MinRead) // one that grows meanwhile is read all the same
	}
	if _, err := b.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > limit {
		return nil, fmt.Errorf("%s: longer than %d bytes", path, limit)
	}
	return b.Bytes(), nil
}

// IsMissing reports that a blob is not in its store.
func IsMissing(err error) bool {
	var missing *cas.MissingError
	return errors.As(err, &missing)
}

// WriteWith writes a file atomically through a buffer.
func WriteWith(path string, fill func(io.Writer) error, sync bool) error {
	return writeWith(path, fill, &durable.Options{Mode: 0o644, Sync: sync})
}

// WritePrivate is WriteWith for what nobody else on the machine is to read.
func WritePrivate(path string, fill func(io.Writer) error) error {
	return writeWith(path, fill, &durable.Options{Mode: 0o600})
}

func writeWith(path string, fill func(io.Writer) error, o *durable.Options) error {
	f, err := durable.Create(filepath.Dir(path), o)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := errors.Join(fill(w), w.Flush()); err != nil {
		f.Discard()
		return err
	}
	return f.Commit(path)
}

// Each calls do for 0 to n-1, so many at once, until ctx ends. 0 jobs are as many as there are processors.
func Each(ctx context.Context, n, jobs int, do func(i int)) {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, jobs) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}
