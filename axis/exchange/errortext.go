package exchange

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// The texts by which the error of an exchange stands on a tape, beside tape.Cancelled, tape.HeldOn and RecorderEnded, so that
// it is known again. They say the same in every run.
const (
	DeadlinePassed = "the program's deadline passed"
	Refused        = "connection refused"
	Reset          = "connection reset"
	Timeout        = "timeout"
	NoAnswer       = "the connection ended before the answer"
	CutShort       = "the connection ended in the middle of the answer"
	NoSuchHost     = "no such host: " // and its name

	StreamReset = "the upstream reset the stream: " // and the name of its code (RFC 9113, 7)
)

// ErrorText says why an upstream gave no answer, or why it ended, in the words of a tape. It leaves out what differs from run
// to run: the local ports of sockets.
func ErrorText(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var timeout net.Error
	var u *url.Error
	var stream streamReset
	switch {
	case errors.As(err, &stream):
		return StreamReset + stream.code()
	case errors.Is(err, context.Canceled):
		return tape.Cancelled
	case errors.As(err, &dns) && dns.IsNotFound:
		return NoSuchHost + dns.Name
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, refusedHere):
		return Refused
	case IsReset(err), errors.Is(err, syscall.EPIPE):
		return Reset
	case errors.Is(err, io.ErrUnexpectedEOF):
		return CutShort
	case errors.Is(err, io.EOF):
		return NoAnswer
	case errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	case errors.As(err, &u):
		return u.Err.Error()
	}
	return err.Error()
}

// IsReset reports whether err says that the other side of a connection reset it.
func IsReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, resetHere)
}
