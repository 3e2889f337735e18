package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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

// NotOnTape is the type, in an error object, of a request that the tape does not answer.
const NotOnTape = "not_on_tape"

// ErrorBody is the body of an answer of our own: the provider's error object around a message where id, which may be nil,
// names a provider, else {"error":{"type":kind,"message":message}} and a newline.
func ErrorBody(id *Identity, status int, kind, message string) []byte {
	if id != nil && id.ErrorBody != nil {
		return id.ErrorBody(status, message)
	}
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return append(jsonscan.MustMarshal(map[string]detail{"error": {Type: kind, Message: message}}), '\n')
}

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
func ErrorAgain(text string) *RecordedError {
	e := &RecordedError{Text: text}
	name, noHost := strings.CutPrefix(text, NoSuchHost)
	switch {
	case text == Refused:
		e.Err = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case text == Reset:
		e.Err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	case text == Timeout:
		e.Err = &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case text == DeadlinePassed:
		e.Err = context.DeadlineExceeded
	case text == CutShort:
		e.Err = io.ErrUnexpectedEOF
	case text == NoAnswer:
		e.Err = io.EOF
	case noHost:
		e.Err = &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return e
}

func (e *RecordedError) Error() string { return "recorded error: " + e.Text }

// Unwrap returns Err.
func (e *RecordedError) Unwrap() error { return e.Err }

// Timeout implements net.Error.
func (e *RecordedError) Timeout() bool { return e.Text == Timeout || e.Text == DeadlinePassed }

// Temporary implements net.Error.
func (e *RecordedError) Temporary() bool { return e.Timeout() }

// A DamagedError says that a recorded answer cannot be given, for its payload is missing or is not what was recorded.
type DamagedError struct {
	Method, URL string
	Seq         uint64 // of its record
	Err         error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the recorded answer to %s %s (record %d) is damaged: %v", e.Method, e.URL, e.Seq, e.Err)
}

// Unwrap returns what is wrong: a *cas.MissingError, a *cas.CorruptError, or another.
func (e *DamagedError) Unwrap() error { return e.Err }

// streamReset is the error of a stream of HTTP/2 that was reset, which net/http gives to whoever asks for one of its shape
// (errors.As).
type streamReset struct {
	StreamID uint32
	Code     resetCode
	Cause    error
}

type resetCode uint32

// resetCodes are the error codes of HTTP/2 (RFC 9113, 7), by their number.
var resetCodes = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// Error implements error.
func (e streamReset) Error() string { return StreamReset + e.code() }

func (e streamReset) code() string {
	if int(e.Code) < len(resetCodes) {
		return resetCodes[e.Code]
	}
	return strconv.FormatUint(uint64(e.Code), 10)
}
