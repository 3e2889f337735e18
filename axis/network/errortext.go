package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
)

// unexpectedStatus is an informational answer where a final one belongs.
type unexpectedStatus struct{ code int }

func (e *unexpectedStatus) Error() string {
	return fmt.Sprintf("the upstream answered %d to a request that asked for no upgrade", e.code)
}

// errorText says why an upstream gave no answer, or why it ended. It leaves out what differs from run to run: the local
// ports of sockets.
func errorText(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var forbidden *ForbiddenError
	switch {
	case errors.Is(err, errCancelled), errors.Is(err, context.Canceled):
		return Cancelled
	case errors.As(err, &forbidden):
		return forbidden.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host: " + dns.Name
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case isReset(err), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the connection ended in the middle of the answer"
	case isTimeout(err):
		return "timeout"
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}
