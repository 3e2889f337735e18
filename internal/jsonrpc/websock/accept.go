package websock

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// Accept upgrades a request to a WebSocket, or answers it with the HTTP error that says why not. Origin and Host are the
// caller's to check before.
func Accept(w http.ResponseWriter, r *http.Request, o *Options) (*Stream, error) {
	f := o.filled()
	hijacker := &hijacker{ResponseWriter: w, guard: &guard{limit: int64(f.Limit), binary: f.binary}}
	ws, err := websocket.Accept(hijacker, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the caller knows which origins are its own
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, fmt.Errorf("upgrade to a WebSocket: %w", err)
	}
	ws.SetReadLimit(-1) // the guard's
	return newStream(ws, hijacker.wire, f), nil
}

// hijacker puts the guard beneath the connection that the library takes over.
type hijacker struct {
	http.ResponseWriter
	guard *guard
	wire  *wire
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, _ := rw.Peek(rw.Reader.Buffered())
	h.wire = &wire{Conn: conn, guard: h.guard, early: append([]byte(nil), early...)}
	rw.Reader.Reset(h.wire)
	rw.Writer.Reset(h.wire)
	return h.wire, rw, nil
}

// DialOptions say how to reach a server.
type DialOptions struct {
	Options
	Header http.Header
	// DialContext makes the connection beneath; nil dials the address of the URL over TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Dial connects to a ws:// or wss:// URL. ctx bounds the handshake alone. No proxy of the environment is asked.
func Dial(ctx context.Context, url string, o *DialOptions) (*Stream, error) {
	if o == nil {
		o = &DialOptions{}
	}
	dial := o.DialContext
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	w := &wire{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		w.Conn = conn
		return w, err
	}}
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{ //nolint:bodyclose // nil, or the library has closed it
		HTTPClient:      &http.Client{Transport: transport},
		HTTPHeader:      o.Header,
		CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		transport.CloseIdleConnections()
		return nil, refusal(err, resp)
	}
	f := o.filled()
	ws.SetReadLimit(int64(f.Limit))
	return newStream(ws, w, f), nil
}

// refusal adds the server's answer to the error of a handshake.
func refusal(err error, resp *http.Response) error {
	if resp == nil {
		return fmt.Errorf("connect: %w", err)
	}
	var b [256]byte
	n, _ := fill(resp.Body, b[:])
	return fmt.Errorf("connect: the server answered %s: %s", resp.Status, b[:n])
}
