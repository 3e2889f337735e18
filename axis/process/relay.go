package process

import (
	"io"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/stopread"
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
func RelayInput(to *os.File, from *stopread.Reader, s *Stream) error {
	defer to.Close()
	from.Until(to)
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
