package network

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRefusedUpgrade: who asked for a WebSocket and got something else reads the head with the first of the body, however they came, and so
// on the replay: what it says of the failure may depend on it.
func TestRefusedUpgrade(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: text/plain\r\n"
	for name, tt := range map[string]struct {
		pieces []string // of the upstream
		want   []string // how those end in which it is passed on
	}{
		"at once":                        {[]string{head + "Content-Length: 12\r\n\r\nno WebSocket"}, []string{"no WebSocket"}},
		"body apart":                     {[]string{head + "Content-Length: 12\r\n\r\n", "no WebSocket"}, []string{"no WebSocket"}},
		"no body":                        {[]string{head + "Content-Length: 0\r\n\r\n"}, []string{"\r\n\r\n"}},
		"more than is read in one piece": {[]string{head + "Content-Length: 20000\r\n\r\n" + strings.Repeat("no", 10_000)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pieceByPiece(t, tt.pieces)
			g := newRig(t, func(cfg *Config) { sendTo(url)(cfg) })
			was := refusedUpgrade(t, g)
			if tt.want != nil && !slices.EqualFunc(was, tt.want, strings.HasSuffix) {
				t.Errorf("recording, it came as %q, want %q", was, tt.want)
			}
			if now := refusedUpgrade(t, replayRig(g, nil)); !slices.Equal(was, now) {
				t.Errorf("recording, it came as\n%q\nand on the replay as\n%q", was, now)
			}
		})
	}
}

// refusedUpgrade asks for a WebSocket and returns what it gets instead, by the pieces in which that is written.
func refusedUpgrade(t *testing.T, g *rig) (pieces []string) {
	t.Helper()
	var mu sync.Mutex
	g.wrote = func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		pieces = append(pieces, string(b))
	}
	c, err := g.dial(context.Background(), "tcp", "api.example.com:80")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, rawUpgrade+"\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("%q, %v", b, err)
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(pieces)
}

// pieceByPiece is the URL of an upstream that answers one request in pieces.
func pieceByPiece(t *testing.T, pieces []string) string {
	l := listenLoopback(t)
	go func() { // ends with its connection, or its listener
		c, err := l.Accept()
		if err != nil {
			return
		}
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			t.Error(err)
		}
		for _, p := range pieces {
			if _, err := io.WriteString(c, p); err != nil {
				t.Error(err)
			}
		}
		_, _ = io.Copy(io.Discard, c)
		c.(*net.TCPConn).Close()
	}()
	return "http://" + l.Addr().String()
}
