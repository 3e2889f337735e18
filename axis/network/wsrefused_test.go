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
			was := answerInPieces(t, g, rawUpgrade)
			if tt.want != nil && !slices.EqualFunc(was, tt.want, strings.HasSuffix) {
				t.Errorf("recording, it came as %q, want %q", was, tt.want)
			}
			if now := answerInPieces(t, replayRig(g, nil), rawUpgrade); !slices.Equal(was, now) {
				t.Errorf("recording, it came as\n%q\nand on the replay as\n%q", was, now)
			}
		})
	}
}

// TestHeadOfFailure: the head of a failure comes with the first of the body: who tries again as soon as it knows the status does so behind that on
// the replay too. Another head comes at once.
func TestHeadOfFailure(t *testing.T) {
	t.Parallel()
	const date = "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/json\r\n"
	for name, tt := range map[string]struct {
		head, body string
		apart      bool // the head
	}{
		"failure":  {"HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n" + date, "2\r\n{}\r\n0\r\n\r\n", false},
		"document": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + date, "{}", true},
		"stream":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + date, "2\r\n{}\r\n0\r\n\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, sendTo(pieceByPiece(t, []string{tt.head + "\r\n", tt.body})))
			got := answerInPieces(t, g, "GET /v1/x HTTP/1.1\r\nHost: api.example.com\r\n")
			if strings.Contains(got[0], "{}") == tt.apart {
				t.Errorf("it came as %q", got)
			}
		})
	}
}

// answerInPieces asks for something and returns what it gets, by the pieces in which that is written.
func answerInPieces(t *testing.T, g *rig, request string) (pieces []string) {
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
	if _, err := io.WriteString(c, request+"\r\n"); err != nil {
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
