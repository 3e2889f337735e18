package exchange

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// ErrorTextIn is ErrorText for a program that asks with a context: what that says goes first.
func ErrorTextIn(ctx context.Context, err error) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return DeadlinePassed
	case ctx.Err() != nil:
		return tape.Cancelled
	}
	return ErrorText(err)
}

// A RecordedError is an error that an upstream gave while recording, given again. Of the kinds that are known, errors.Is and
// errors.As find what they found then: syscall.ECONNREFUSED, syscall.ECONNRESET, io.EOF, io.ErrUnexpectedEOF,
// os.ErrDeadlineExceeded, context.DeadlineExceeded, *net.DNSError, *net.OpError, net.Error. Of any other only the text is left.
type RecordedError struct {
	Text string // as it stands on the tape; tape.HeldOn where the program did not end what it had ended then
	Err  error  // the same kind of error; nil where the kind is not known
}

// ErrorAgain is the error that a text on a tape stands for.
func ErrorAgain(text string) *RecordedError { return &RecordedError{Text: text, Err: kindOf(text)} }

func (e *RecordedError) Error() string { return "recorded error: " + e.Text }

// Unwrap returns Err.
func (e *RecordedError) Unwrap() error { return e.Err }

// Timeout implements net.Error.
func (e *RecordedError) Timeout() bool { return e.Text == Timeout || e.Text == DeadlinePassed }

// Temporary implements net.Error.
func (e *RecordedError) Temporary() bool { return e.Timeout() }

// kindOf is an error of the kind that a text on a tape stands for; nil where only the text is left.
func kindOf(text string) error {
	name, noHost := strings.CutPrefix(text, NoSuchHost)
	switch {
	case text == Refused:
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case text == Reset:
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case text == Timeout:
		return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case text == DeadlinePassed:
		return context.DeadlineExceeded
	case text == CutShort:
		return io.ErrUnexpectedEOF
	case text == NoAnswer:
		return io.EOF
	case noHost:
		return &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return nil
}

// linger is how long an answer whose program closed it before it saw the end is read on. A JSON decoder reads a value and never
// the end behind it, and an answer that has come whole is not one that was cut.
const linger = 200 * time.Millisecond

// maxLinger bounds, in bytes, what is read then.
const maxLinger = 64 << 10

// Rest reads what is left of an answer that its program has closed, for linger at most; false where the end did not come. stop
// ends a read that waits, and is called where it has to.
func Rest(from io.Reader, stop func()) ([]byte, bool) {
	type rest struct {
		p  []byte
		ok bool
	}
	came := make(chan rest, 1)
	go func() { // ends with the answer, or by stop
		p, err := io.ReadAll(io.LimitReader(from, maxLinger))
		came <- rest{p, err == nil && len(p) < maxLinger}
	}()
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case r := <-came:
		return r.p, r.ok
	case <-timer.C:
		stop()
		<-came
		return nil, false
	}
}
