package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
)

// dialStream connects to a URL of the kinds that the comment of the package lists.
func dialStream(ctx context.Context, place string, limit int) (jsonrpc.Stream, error) {
	if path, ok := strings.CutPrefix(place, "unix:"); ok {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socketPath(path))
		if err != nil {
			return nil, err
		}
		return jsonrpc.NewLines(conn, limit, nil), nil
	}
	u, err := url.Parse(place)
	if err != nil || (u.Scheme != "ws" && u.Scheme != "wss") || u.Host == "" {
		return nil, fmt.Errorf("want a URL like ws://127.0.0.1:9100 or unix:/path/to/socket, got %q", place)
	}
	return dialWebSocket(ctx, place, limit)
}

// socketPath takes unix:PATH and unix://PATH.
func socketPath(path string) string {
	if strings.HasPrefix(path, "//") {
		return strings.TrimPrefix(path, "//")
	}
	return path
}

func dialWebSocket(ctx context.Context, place string, limit int) (jsonrpc.Stream, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections() // one that answered otherwise than by an upgrade
	ws, res, err := websocket.Dial(ctx, place, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil && res != nil && res.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("want a WebSocket there, got HTTP status %s", res.Status)
	}
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(int64(limit))
	return &socket{ws}, nil
}

// A socket is a WebSocket as a stream of frames.
type socket struct{ ws *websocket.Conn }

// Read is that of jsonrpc.Stream.
func (s *socket) Read() (frame []byte, held int64, err error) {
	kind, b, err := s.ws.Read(context.Background())
	closed := websocket.CloseError{}
	switch {
	case errors.As(err, &closed) && closed.Code == websocket.StatusNormalClosure:
		return nil, 0, io.EOF
	case errors.As(err, &closed):
		return nil, 0, &jsonrpc.CloseError{Code: int(closed.Code), Reason: closed.Reason}
	case err != nil:
		return nil, 0, err
	case kind != websocket.MessageText:
		return nil, 0, &jsonrpc.CloseError{Code: jsonrpc.CloseUnsupported, Reason: "want text frames, got a binary one"}
	}
	return b, 0, nil
}

// writeTimeout is how long the daemon may take to read a frame.
const writeTimeout = 30 * time.Second

// Write is that of jsonrpc.Stream.
func (s *socket) Write(frame []byte, _ bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	return s.ws.Write(ctx, websocket.MessageText, frame)
}

// Close is that of jsonrpc.Stream.
func (s *socket) Close(code int, reason string) error {
	if code == 0 {
		return s.ws.CloseNow()
	}
	return s.ws.Close(websocket.StatusCode(code), reason)
}
