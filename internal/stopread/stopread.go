// Package stopread reads what a caller types or writes until it is stopped. What comes after that is for whoever reads next, so a
// reader that waits goes without taking it.
//
// Only a file can be waited for without reading it, and only on unix. A Read of anything else that is under way when Stop is called
// takes what comes next.
package stopread

import (
	"io"
	"os"
	"sync"
)

// A Reader reads until it is stopped.
type Reader struct {
	from io.Reader
	file *os.File // from, where it can be waited for; else nil
	to   *os.File // of Until

	wake, alarm *os.File // a pipe whose end wakes a Read
	once        sync.Once
	stopped     chan struct{} // closed by Stop
}

// New returns a Reader of from, which is not to be closed before Stop was called. The error is that of making a pipe.
func New(from io.Reader) (*Reader, error) {
	r := &Reader{from: from, stopped: make(chan struct{})}
	var err error
	if r.wake, r.alarm, err = os.Pipe(); err != nil {
		return nil, err
	}
	if f, ok := from.(*os.File); ok && pollable {
		r.file = f
	}
	return r, nil
}

// Until has r end once nobody can read any more what is written to the pipe to. It is called before the first Read.
func (r *Reader) Until(to *os.File) { r.to = to }

// Read implements io.Reader. The error is os.ErrClosed after Stop and at the end that Until says.
func (r *Reader) Read(p []byte) (int, error) {
	if r.file != nil {
		if err := r.wait(); err != nil {
			return 0, err
		}
	}
	select {
	case <-r.stopped:
		return 0, os.ErrClosed
	default:
		return r.from.Read(p)
	}
}

// Stop ends a Read that waits and every later one; one that has found something to take still takes that. It may be called more than
// once.
func (r *Reader) Stop() {
	r.once.Do(func() {
		close(r.stopped)
		r.alarm.Close()
		r.wake.Close() // returns once no Read waits for it
	})
}
