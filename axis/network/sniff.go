package network

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// A protocol is what the first bytes of a connection say.
type protocol uint8

const (
	protoNone  protocol = iota // closed before a byte came
	protoTLS                   // a TLS handshake record
	protoHTTP                  // a method and a space, or HTTP/2's preface, which begins like one
	protoOther                 // anything else
)

const (
	recordHandshake = 0x16 // first byte of a TLS handshake record (RFC 8446, 5.1)
	maxMethod       = 24   // bytes: the longest registered HTTP method has 17
	sniffTimeout    = time.Minute
)

// sniff looks at the first bytes of c without taking them. A connection that stays silent for sniffTimeout is
// protoOther: the program waits for the server to speak first, which neither HTTP nor TLS does.
func sniff(c *conn) protocol {
	c.SetReadDeadline(time.Now().Add(sniffTimeout))
	defer c.SetReadDeadline(time.Time{})
	br := bufio.NewReaderSize(c.in, 4096)
	c.in, c.ahead = br, br
	for i := range maxMethod {
		b, err := br.Peek(i + 1)
		switch {
		case err != nil:
			return unfinished(err, i)
		case i == 0 && b[0] == recordHandshake:
			return protoTLS
		case i > 0 && b[i] == ' ':
			return protoHTTP
		case !isMethodByte(b[i]):
			return protoOther
		}
	}
	return protoOther
}

// unfinished judges a connection that ended, or stayed silent, after n bytes.
func unfinished(err error, n int) protocol {
	if n == 0 && !isTimeout(err) {
		return protoNone
	}
	return protoOther
}

// isMethodByte holds for what the registered methods consist of. RFC 9110 allows more, but then the banner of an SSH
// client is one.
func isMethodByte(b byte) bool { return b >= 'A' && b <= 'Z' || b == '-' }

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// errSeen ends the handshake that peekServerName begins.
var errSeen = errors.New("client hello seen")

// peekServerName reads the name that a TLS client asks for, in lower case, and puts all that it read back. It is "" for a
// client that names none, or whose first record is not a client hello.
func peekServerName(c *conn) string {
	c.SetReadDeadline(time.Now().Add(handshakeTimeout))
	defer c.SetReadDeadline(time.Time{})
	var read bytes.Buffer
	var name string
	hello := tls.Server(readOnly{Conn: c, r: io.TeeReader(c, &read)}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name = h.ServerName
			return nil, errSeen
		},
	})
	_ = hello.Handshake() // always fails, with errSeen at the latest
	c.unread(read.Bytes())
	return strings.ToLower(name)
}

// readOnly is a connection that swallows what is written to it.
type readOnly struct {
	net.Conn
	r io.Reader
}

func (c readOnly) Read(b []byte) (int, error)  { return c.r.Read(b) }
func (c readOnly) Write(b []byte) (int, error) { return len(b), nil }
