package httptape

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A RecordedError is an error that an upstream gave while recording, given again. Of the kinds that are known, errors.Is and
// errors.As find what they found then: syscall.ECONNREFUSED, syscall.ECONNRESET, io.EOF, io.ErrUnexpectedEOF,
// os.ErrDeadlineExceeded, *net.DNSError, *net.OpError, net.Error. Of any other only the text is left.
type RecordedError struct {
	Text string // as it stands on the tape; tape.HeldOn where the caller did not cancel what it had cancelled then
	Err  error  // the same kind of error; nil where the kind is not known
}

func (e *RecordedError) Error() string { return "httptape: recorded error: " + e.Text }

// Unwrap returns Err.
func (e *RecordedError) Unwrap() error { return e.Err }

// Timeout implements net.Error.
func (e *RecordedError) Timeout() bool {
	return e.Text == exchange.Timeout || e.Text == exchange.DeadlinePassed
}

// Temporary implements net.Error.
func (e *RecordedError) Temporary() bool { return e.Timeout() }

// errorText says why an upstream gave no answer, or why it ended, in the words of a tape. What ctx says goes first.
func errorText(ctx context.Context, err error) string {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return exchange.DeadlinePassed
	case ctx.Err() != nil:
		return tape.Cancelled
	}
	return exchange.ErrorText(err)
}

// asRecorded makes a *RecordedError of an answer's cut; any other error stays.
func asRecorded(err error) error {
	var cut *exchange.CutError
	if errors.As(err, &cut) {
		return recordedError(cut.Text)
	}
	return err
}

// recordedError is the error that a text on the tape stands for.
func recordedError(text string) error {
	e := &RecordedError{Text: text}
	name, noHost := strings.CutPrefix(text, exchange.NoSuchHost)
	switch {
	case text == exchange.Refused:
		e.Err = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case text == exchange.Reset:
		e.Err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case text == exchange.Timeout:
		e.Err = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case text == exchange.DeadlinePassed:
		e.Err = context.DeadlineExceeded
	case text == exchange.CutShort:
		e.Err = io.ErrUnexpectedEOF
	case text == exchange.NoAnswer:
		e.Err = io.EOF
	case noHost:
		e.Err = &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return e
}
