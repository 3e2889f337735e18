package httptape

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// The texts by which the error of an exchange stands on the tape, so that it is known again. Those that package network has
// too read the same.
const (
	textCancelled = "the program ended the request"
	textDeadline  = "the program's deadline passed"
	textRefused   = "connection refused"
	textReset     = "connection reset"
	textTimeout   = "timeout"
	textNoAnswer  = "the connection ended before the answer"
	textCut       = "the connection ended in the middle of the answer"
	textNoHost    = "no such host: "
)

// A RecordedError is an error that an upstream gave while recording, given again. Of the kinds that are known, errors.Is and
// errors.As find what they found then: syscall.ECONNREFUSED, syscall.ECONNRESET, io.EOF, io.ErrUnexpectedEOF,
// os.ErrDeadlineExceeded, *net.DNSError, *net.OpError, net.Error. Of any other only the text is left.
type RecordedError struct {
	Text string // as it stands on the tape
	Err  error  // the same kind of error; nil where the kind is not known
}

func (e *RecordedError) Error() string { return "httptape: recorded error: " + e.Text }

// Unwrap returns Err.
func (e *RecordedError) Unwrap() error { return e.Err }

// Timeout implements net.Error.
func (e *RecordedError) Timeout() bool { return e.Text == textTimeout || e.Text == textDeadline }

// Temporary implements net.Error.
func (e *RecordedError) Temporary() bool { return e.Timeout() }

// errorText says why an upstream gave no answer, or why it ended, in words that do not differ from run to run.
func errorText(ctx context.Context, err error) string {
	var dns *net.DNSError
	var ne net.Error
	var op *net.OpError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return textDeadline
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		return textCancelled
	case errors.As(err, &dns) && dns.IsNotFound:
		return textNoHost + dns.Name
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, refusedHere):
		return textRefused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, resetHere), errors.Is(err, syscall.EPIPE):
		return textReset
	case errors.Is(err, io.ErrUnexpectedEOF):
		return textCut
	case errors.Is(err, io.EOF):
		return textNoAnswer
	case errors.As(err, &ne) && ne.Timeout():
		return textTimeout
	case errors.As(err, &op): // without the ports of sockets
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// recordedError is the error that a text on the tape stands for.
func recordedError(text string) error {
	e := &RecordedError{Text: text}
	name, noHost := strings.CutPrefix(text, textNoHost)
	switch {
	case text == textRefused:
		e.Err = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case text == textReset:
		e.Err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case text == textTimeout:
		e.Err = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case text == textDeadline:
		e.Err = context.DeadlineExceeded
	case text == textCut:
		e.Err = io.ErrUnexpectedEOF
	case text == textNoAnswer:
		e.Err = io.EOF
	case noHost:
		e.Err = &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return e
}
