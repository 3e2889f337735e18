package jsonrpc

import "fmt"

// A Stream carries frames. One goroutine reads, another writes, any may close.
type Stream interface {
	// Read returns the next frame, whose memory is the caller's, and how many bytes of the Budget it holds, which the caller
	// gives back. It returns io.EOF when the peer writes no more but may still read; a *CloseError when the peer closed the
	// stream, or broke a rule (Ours): then the caller closes it with that code; ErrTooLong (wrapped) and another error otherwise.
	// After an error it is not called again. Close makes it return.
	Read() (frame []byte, held int64, err error)
	// Write sends one frame. Where more is true another Write follows at once, and the stream may hold the frame until then.
	Write(frame []byte, more bool) error
	// Short(true) has Read take no frame above DefaultAllowance, and so nothing of a Budget, from the next one on: a longer one
	// ends the stream with ClosePolicy. Short(false) lifts that. It is called before Read, or by the goroutine that reads.
	Short(only bool)
	// Close ends the stream: in good order with a code of RFC 6455 and a reason of at most 123 bytes, where it has such a
	// thing; at once with code 0, which also ends a Close that takes its time. It is harmless when repeated.
	Close(code int, reason string) error
}

// Close codes of RFC 6455 that are used here.
const (
	CloseNormal      = 1000
	CloseGoingAway   = 1001 // shutting down
	CloseProtocol    = 1002
	CloseUnsupported = 1003 // a binary frame
	CloseNoCode      = 1005 // the peer gave no code; never sent
	CloseNotUTF8     = 1007
	ClosePolicy      = 1008 // not authenticated, or too slow
	CloseTooLong     = 1009
	CloseTryAgain    = 1013 // no memory left for a frame of that length
)

// ErrShort is what Read returns for a long frame after Short(true).
var ErrShort = &CloseError{Code: ClosePolicy, Reason: "not authenticated: no frame above 64 KiB", Ours: true}

// A CloseError says how a stream was closed by the other side, or why this one has to close it.
type CloseError struct {
	Code   int
	Reason string
	Ours   bool
}

func (e *CloseError) Error() string { return fmt.Sprintf("closed with %d: %s", e.Code, e.Reason) }

// clean reports whether the stream was closed in good order.
func (e *CloseError) clean() bool {
	return e.Code == CloseNormal || e.Code == CloseGoingAway || e.Code == CloseNoCode
}
