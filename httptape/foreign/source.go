package foreign

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/regular"
)

// A source is a foreign file that is read once.
type source struct {
	ctx      context.Context
	path     string
	f        *os.File
	done     int64
	total    int64
	told     int64
	progress func(done, total int64)
}

// progressStep is after how many bytes Progress is told again.
const progressStep = 1 << 20

func openSource(ctx context.Context, path string, progress func(done, total int64)) (*source, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &source{ctx: ctx, path: path, f: f, total: st.Size(), progress: progress}, nil
}

func (s *source) close() error { return s.f.Close() }

// Read implements io.Reader. It ends with the context.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.f.Read(p)
	s.done += int64(n)
	if s.progress != nil && (s.done-s.told >= progressStep || err == io.EOF) {
		s.told = s.done
		s.progress(s.done, max(s.total, s.done))
	}
	return n, err
}

// wrong is the error for something at a place of the file; one that names its place already stays.
func (s *source) wrong(where string, err error) error {
	if ctx := s.ctx.Err(); ctx != nil {
		return ctx
	}
	if read, ok := errors.AsType[*ReadError](err); ok {
		return read
	}
	return &ReadError{Path: s.path, Where: where, Err: err}
}
