package process

import (
	"io"
	"os"
	"sync"
)

// relayBuffer is the size of one read of a relay, in bytes: a pipe's capacity.
const relayBuffer = 64 << 10

// RelayOutput passes what the program writes into from on to the caller's to, and keeps it in s, until from ends. It
// closes from, also when the caller stopped reading, so that the program learns of that by SIGPIPE or EPIPE (a terminal's
// by SIGHUP) as it would have without us. The error is that of keeping, which Stream.Finish returns too; the bytes pass
// all the same.
func RelayOutput(to io.Writer, from io.ReadCloser, s *Stream) error {
	defer from.Close()
	return relay(to, from, s) // ends at EOF of a pipe, EIO of a terminal whose last user has gone
}

// RelayInput passes the caller's from on to the program's to, a pipe, until from ends or is stopped or the program closes
// its end, and then closes to. What it takes from the caller is kept in s before it is passed on, so that whatever the
// program has read is on the tape; what the program left unread in the pipe is there too. The error is that of keeping,
// as for RelayOutput.
func RelayInput(to *os.File, from *Input, s *Stream) error {
	defer to.Close()
	from.to = to
	return relay(to, from, s)
}

// relay copies until either side ends. It keeps first, and goes on when that fails.
func relay(to io.Writer, from io.Reader, s *Stream) error {
	buf := make([]byte, relayBuffer)
	var failed error
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, errKeep := s.Write(buf[:n]); errKeep != nil && failed == nil {
				failed = errKeep
			}
			if _, errTo := to.Write(buf[:n]); errTo != nil {
				return failed
			}
		}
		if err != nil {
			return failed
		}
	}
}

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
