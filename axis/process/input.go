package process

import (
	"io"
	"os"
	"sync"
)

// An Input is the caller's stdin, whose reader can be stopped. What the caller types or writes once the program has ended
// is for whoever reads next, so a reader that waits must go without taking it.
//
// Only a file can be waited for without reading it, and only on unix. A Read of any other reader that is under way when
// Stop is called takes what comes next.
type Input struct {
	from io.Reader
	file *os.File // from, where it can be waited for; else nil
	to   *os.File // the program's end of a pipe: once it is closed there nothing more is read; nil for none

	wake, alarm *os.File // a pipe whose end wakes a Read
	once        sync.Once
	stopped     chan struct{} // closed by Stop
}

// NewInput returns an Input that reads from. Stop must be called in the end; from is not to be closed before. The error
// is that of making a pipe.
func NewInput(from io.Reader) (*Input, error) {
	in := &Input{from: from, stopped: make(chan struct{})}
	var err error
	if in.wake, in.alarm, err = os.Pipe(); err != nil {
		return nil, err
	}
	if f, ok := from.(*os.File); ok && pollable {
		in.file = f
	}
	return in, nil
}

// Read reads what the caller gives. The error is os.ErrClosed after Stop, or the caller's own.
func (in *Input) Read(p []byte) (int, error) {
	if in.file != nil {
		if err := in.wait(); err != nil {
			return 0, err
		}
	}
	select {
	case <-in.stopped:
		return 0, os.ErrClosed
	default:
		return in.from.Read(p)
	}
}

// Stop ends a Read that waits and every later one. A Read that has found something to take still takes that. Stop may be
// called more than once.
func (in *Input) Stop() {
	in.once.Do(func() {
		close(in.stopped)
		in.alarm.Close()
		in.wake.Close() // returns once no Read waits for it
	})
}
