package websock

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

// Accept upgrades a request to a WebSocket, or answers it with the HTTP error that says why not. Origin and Host are the
// caller's to check before.
func Accept(w http.ResponseWriter, r *http.Request, o *Options) (*Stream, error) {
	key := r.Header.Get("Sec-WebSocket-Key")
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", "websocket")
	if status, why := unfit(r, key); why != "" {
		w.Header().Set("Sec-WebSocket-Version", "13")
		http.Error(w, why, status)
		return nil, fmt.Errorf("upgrade to a WebSocket: %s", why)
	}
	w.Header().Set("Sec-WebSocket-Accept", wsframe.AcceptKey(key))
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("upgrade to a WebSocket: %w", err)
	}
	_ = conn.SetDeadline(time.Time{}) // the server's
	early, _ := rw.Peek(rw.Reader.Buffered())
	beneath := &wire{Conn: conn}
	rw.Reader.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(early)), beneath))
	return newStream(&Stream{wire: beneath, in: rw.Reader, out: conn}, o.filled()), nil
}

// unfit says why a request cannot be upgraded.
func unfit(r *http.Request, key string) (status int, why string) {
	nonce, err := base64.StdEncoding.DecodeString(key)
	switch {
	case r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1):
		return http.StatusMethodNotAllowed, "a WebSocket begins with GET in HTTP/1.1"
	case !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") ||
		!httpguts.HeaderValuesContainsToken(r.Header["Upgrade"], "websocket"):
		return http.StatusUpgradeRequired, "a WebSocket begins with Connection: Upgrade and Upgrade: websocket"
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		return http.StatusBadRequest, "the Sec-WebSocket-Version has to be 13"
	case err != nil || len(nonce) != 16:
		return http.StatusBadRequest, "the Sec-WebSocket-Key has to be 16 bytes in base64"
	}
	return 0, ""
}

// Dial connects to a ws:// or wss:// URL. ctx bounds the handshake alone. No proxy of the environment is asked.
func Dial(ctx context.Context, url string, o *Options) (*Stream, error) {
	f, beneath := o.filled(), &wire{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		beneath.Conn, err = f.DialContext(ctx, network, addr)
		return beneath, err
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(url, "ws"), nil)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	key := base64.StdEncoding.EncodeToString(nonce[:])
	req.Header = http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-WebSocket-Version": {"13"}, "Sec-WebSocket-Key": {key},
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	carrier, ok := resp.Body.(io.ReadWriteCloser)
	switch {
	case resp.StatusCode != http.StatusSwitchingProtocols || !ok:
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 256))
		err = fmt.Errorf("connect: the server answered %s: %s", resp.Status, b)
	case resp.Header.Get("Sec-WebSocket-Accept") != wsframe.AcceptKey(key):
		err = errors.New("connect: the server answered for another request: its Sec-WebSocket-Accept is wrong")
	default:
		return newStream(&Stream{wire: beneath, in: bufio.NewReader(carrier), out: carrier, client: true}, f), nil
	}
	_ = resp.Body.Close()
	return nil, err
}
