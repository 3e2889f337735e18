package websock

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Opcodes.
const (
	Continuation = 0
	Text         = 1
	Binary       = 2
	Close        = 8
	Ping         = 9
	Pong         = 10
)

// A Frame as it stands on the wire.
type Frame struct {
	Fin     bool
	RSV     byte // the three reserved bits
	Op      byte
	Payload []byte
}

// Append appends the frame of a client, masked.
func (f Frame) Append(dst []byte) []byte {
	b := f.RSV<<4 | f.Op
	if f.Fin {
		b |= 0x80
	}
	dst = append(dst, b)
	switch n := len(f.Payload); {
	case n <= 125:
		dst = append(dst, 0x80|byte(n))
	case n <= 0xffff:
		dst = binary.BigEndian.AppendUint16(append(dst, 0x80|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, 0x80|127), uint64(n))
	}
	mask := [4]byte{0x37, 0xfa, 0x21, 0x3d}
	dst = append(dst, mask[:]...)
	for i, c := range f.Payload {
		dst = append(dst, c^mask[i&3])
	}
	return dst
}

// A Client is a WebSocket client that does as it is told: it writes frames as broken as a case wants them, in as many pieces, and reads what comes back
// no less strictly.
type Client struct {
	net.Conn
	r *bufio.Reader
	// Response is the server's to the upgrade.
	Response *http.Response
}

// dialRaw makes a connection with dial and upgrades it. header is added to the request's, and may replace Host.
func dialRaw(ctx context.Context, addr string, header http.Header) (*Client, error) {
	network := "tcp"
	if u, err := url.Parse(addr); err == nil && u.Host != "" {
		addr = u.Host
	} else if len(addr) > 5 && addr[:5] == "unix:" {
		network, addr = "unix", addr[5:]
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return upgradeRaw(conn, addr, header)
}

// upgradeRaw asks for a WebSocket on a connection to host. A connection that stays none is closed.
func upgradeRaw(conn net.Conn, host string, header http.Header) (*Client, error) {
	c := &Client{Conn: conn, r: bufio.NewReader(conn)}
	_ = conn.SetDeadline(time.Now().Add(patience))
	if err := c.upgrade(host, header); err != nil {
		_ = conn.Close()
		return c, err
	}
	return c, nil
}

// patience is how long a case may take.
const patience = 60 * time.Second

func (c *Client) upgrade(host string, header http.Header) error {
	if h := header.Get("Host"); h != "" {
		host = h
	} else if host[0] == '/' {
		host = "localhost"
	}
	req := "GET / HTTP/1.1\r\nHost: " + host + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for k, vs := range header {
		for _, v := range vs {
			if k != "Host" {
				req += k + ": " + v + "\r\n"
			}
		}
	}
	if _, err := io.WriteString(c, req+"\r\n"); err != nil {
		return err
	}
	var err error
	if c.Response, err = http.ReadResponse(c.r, &http.Request{Method: "GET"}); err != nil {
		return err
	}
	if c.Response.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("the server answered %s", c.Response.Status)
	}
	if got := c.Response.Header.Get("Sec-WebSocket-Accept"); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		return fmt.Errorf("wrong Sec-WebSocket-Accept %q", got)
	}
	return nil
}

// Send writes a frame at once.
func (c *Client) Send(f Frame) error {
	_, err := c.Write(f.Append(nil))
	return err
}

// ReadFrame reads a server's frame.
func (c *Client) ReadFrame() (Frame, error) {
	var head [10]byte
	if _, err := io.ReadFull(c.r, head[:2]); err != nil {
		return Frame{}, err
	}
	f := Frame{Fin: head[0]&0x80 != 0, RSV: head[0] >> 4 & 7, Op: head[0] & 15}
	n := uint64(head[1] & 0x7f)
	switch {
	case f.RSV != 0:
		return f, fmt.Errorf("reserved bits %d", f.RSV)
	case head[1]&0x80 != 0:
		return f, errors.New("a server's frame is masked")
	case n == 126:
		if _, err := io.ReadFull(c.r, head[2:4]); err != nil {
			return f, err
		}
		if n = uint64(binary.BigEndian.Uint16(head[2:])); n < 126 {
			return f, errors.New("length in more bytes than it needs")
		}
	case n == 127:
		if _, err := io.ReadFull(c.r, head[2:10]); err != nil {
			return f, err
		}
		if n = binary.BigEndian.Uint64(head[2:]); n <= 0xffff || n > 1<<30 {
			return f, fmt.Errorf("length %d in eight bytes", n)
		}
	}
	f.Payload = make([]byte, n)
	_, err := io.ReadFull(c.r, f.Payload)
	return f, err
}

// An Event is a message, a pong or the close that a server sent.
type Event struct {
	Op      byte
	Payload string
	Code    int // of a close; 1005 where it has none
}

// Next reads the next message, pong or close.
func (c *Client) Next() (Event, error) {
	var e Event
	for begun := false; ; {
		f, err := c.ReadFrame()
		if err != nil {
			return e, err
		}
		switch {
		case f.Op >= Close:
			if !f.Fin || len(f.Payload) > 125 {
				return e, errors.New("a control frame is fragmented or too long")
			}
			if f.Op == Ping {
				continue
			}
			return control(f)
		case (f.Op == Continuation) != begun:
			return e, fmt.Errorf("opcode %d where a message has begun: %v", f.Op, begun)
		case !begun:
			e.Op, begun = f.Op, true
		}
		e.Payload += string(f.Payload)
		if f.Fin {
			return e, nil
		}
	}
}

func control(f Frame) (Event, error) {
	e := Event{Op: f.Op, Payload: string(f.Payload)}
	if f.Op != Close {
		return e, nil
	}
	switch {
	case len(f.Payload) == 0:
		e.Code = 1005
	case len(f.Payload) == 1:
		return e, errors.New("a close with half a code")
	default:
		e.Code = int(binary.BigEndian.Uint16(f.Payload))
		e.Payload = string(f.Payload[2:])
	}
	return e, nil
}

// End reads until the server has closed the connection, and says what else came.
func (c *Client) End() error {
	b, err := io.ReadAll(c.r)
	if len(b) > 0 {
		return fmt.Errorf("%d bytes behind the close frame", len(b))
	}
	return err
}

// ClosePayload makes the payload of a close frame.
func ClosePayload(code int, reason string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)
}
