package client

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
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
	stream, err := websock.Dial(ctx, place, &websock.Options{Limit: limit})
	if err != nil {
		return nil, err
	}
	return stream, nil
}

// socketPath takes unix:PATH and unix://PATH.
func socketPath(path string) string {
	if strings.HasPrefix(path, "//") {
		return strings.TrimPrefix(path, "//")
	}
	return path
}
