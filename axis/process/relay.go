package process

import (
	"io"
	"os"
)

// relayBuffer is the size of one read of a relay, in bytes: a pipe's capacity.
const relayBuffer = 64 << 10

// RelayOutput passes what the program writes into from on to the caller's to, and keeps it in s, until from ends. A
// caller that stopped reading closes from, so that the program learns of it by SIGPIPE or EPIPE as it would have without
// us.
func RelayOutput(to io.Writer, from *os.File, s *Stream) error {
	defer from.Close()
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
			return failed // EOF of a pipe, EIO of a terminal whose last user has gone
		}
	}
}

// RelayInput passes the caller's from on to the program's to, and keeps in s what the program's end took, until from ends
// or the program closes its end. It closes to.
func RelayInput(to *os.File, from io.Reader, s *Stream) error {
	defer to.Close()
	buf := make([]byte, relayBuffer)
	var failed error
	for {
		n, err := from.Read(buf)
		if n > 0 {
			// Kept first: what the program has read must be on the tape.
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
