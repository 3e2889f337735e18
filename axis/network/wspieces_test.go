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

// TestRefusedUpgradeInPieces: who asked for a WebSocket and got something else reads header and body in the pieces in which they came,
// with the same framing, and so on the replay: what it says of the failure may depend on it.
func TestRefusedUpgradeInPieces(t *testing.T) {
	const (
		head   = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: text/plain\r\n"
		length = head + "Content-Length: 12\r\n\r\n"
		coded  = head + "Transfer-Encoding: chunked\r\n\r\n"
		closed = head + "Connection: close\r\n\r\n"
	)
	for name, tt := range map[string]struct {
		pieces []string // of the upstream, each when what came before has been passed on
		want   []string // how those end in which it is passed on
	}{
		"length, at once":                {[]string{length + "no WebSocket"}, []string{"no WebSocket"}},
		"length, body apart":             {[]string{length, "no WebSocket"}, []string{"\r\n\r\n", "no WebSocket"}},
		"length, half a body apart":      {[]string{length + "no Web", "Socket"}, []string{"no Web", "Socket"}},
		"length, no body":                {[]string{head + "Content-Length: 0\r\n\r\n"}, []string{"\r\n\r\n"}},
		"chunked, at once":               {[]string{coded + "c\r\nno WebSocket\r\n0\r\n\r\n"}, []string{"c\r\nno WebSocket\r\n0\r\n\r\n"}},
		"chunked, body apart":            {[]string{coded, "c\r\nno WebSocket\r\n0\r\n\r\n"}, []string{"\r\n\r\n", "c\r\nno WebSocket\r\n0\r\n\r\n"}},
		"chunked, end apart":             {[]string{coded + "c\r\nno WebSocket\r\n", "0\r\n\r\n"}, []string{"c\r\nno WebSocket\r\n", "0\r\n\r\n"}},
		"chunked, everything apart":      {[]string{coded, "6\r\nno Web\r\n", "6\r\nSocket\r\n", "0\r\n\r\n"}, []string{"\r\n\r\n", "6\r\nno Web\r\n", "6\r\nSocket\r\n", "0\r\n\r\n"}},
		"until it closes, at once":       {[]string{closed + "no WebSocket", ""}, []string{"no WebSocket\r\n", "0\r\n\r\n"}},
		"until it closes, body apart":    {[]string{closed, "no WebSocket", ""}, []string{"\r\n\r\n", "no WebSocket\r\n", "0\r\n\r\n"}},
		"more than is read in one piece": {[]string{head + "Content-Length: 20000\r\n\r\n" + strings.Repeat("no", 10_000)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pieces := make(chan string, 100)
			url := pieceByPiece(t, tt.pieces, pieces)
			g := newRig(t, func(cfg *Config) { sendTo(url)(cfg) })
			was := refusedUpgrade(t, g, pieces)
			if tt.want != nil && !slices.EqualFunc(was, tt.want, strings.HasSuffix) {
				t.Errorf("recording, it came as %q, want %q", was, tt.want)
			}
			if now := refusedUpgrade(t, replayRig(g, nil), nil); !slices.Equal(was, now) {
				t.Errorf("recording, it came as\n%q\nand on the replay as\n%q", was, now)
			}
		})
	}
}

// refusedUpgrade asks for a WebSocket and returns what it gets instead, by the pieces in which that is written. told gets them too.
func refusedUpgrade(t *testing.T, g *rig, told chan<- string) (pieces []string) {
	t.Helper()
	var mu sync.Mutex
	g.wrote = func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		pieces = append(pieces, string(b))
		if told != nil {
			told <- string(b)
		}
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

// pieceByPiece is the URL of an upstream that answers one request in pieces: one whenever passed has one. It closes at an empty one.
func pieceByPiece(t *testing.T, pieces []string, passed <-chan string) string {
	l := listenLoopback(t)
	go func() { // ends with its connection, or its listener
		c, err := l.Accept()
		if err != nil {
			return
		}
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			t.Error(err)
		}
		for i, p := range pieces {
			if i > 0 {
				<-passed
			}
			if p == "" {
				break
			}
			if _, err := io.WriteString(c, p); err != nil {
				t.Error(err)
			}
		}
		if pieces[len(pieces)-1] != "" {
			_, _ = io.Copy(io.Discard, c)
		}
		c.(*net.TCPConn).Close()
	}()
	return "http://" + l.Addr().String()
}
