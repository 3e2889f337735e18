package door

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
)

// ask sends a request with that Host and those headers, and returns the status of the answer.
func ask(t *testing.T, network, addr, path, host string, headers ...string) (int, string) {
	t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, host, strings.Join(append(headers, ""), "\r\n"))
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "GET"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp.StatusCode, ""
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return resp.StatusCode, string(b)
}

var upgrade = []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}

func TestHostsAndOrigins(t *testing.T) {
	socket := t.TempDir() + "/s"
	var refused atomic.Int64
	d := open(t, &Options{Listen: "127.0.0.1:0", Socket: socket, Refused: func(string) { refused.Add(1) }})
	_, port, _ := net.SplitHostPort(d.Addr())
	tests := []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:PORT", "", 101},
		{"localhost:PORT", "", 101},
		{"LOCALHOST:PORT", "", 101},
		{"[::1]:PORT", "", 101},
		{"127.0.0.9:PORT", "", 101},
		{"[::ffff:127.0.0.1]:PORT", "", 101},
		{"127.0.0.1", "", 421},
		{"127.0.0.1:1", "", 421},
		{"localhost.:PORT", "", 421},
		{"localhost.example.com:PORT", "", 421},
		{"evil.example:PORT", "", 421},
		{"10.0.0.1:PORT", "", 421},
		{"127.1:PORT", "", 421},
		{"0x7f.1:PORT", "", 421},
		{"0.0.0.0:PORT", "", 421},
		{"", "", 421},

		{"127.0.0.1:PORT", "http://127.0.0.1:PORT", 101},
		{"127.0.0.1:PORT", "http://localhost:PORT", 101},
		{"localhost:PORT", "https://localhost:PORT", 101},
		{"127.0.0.1:PORT", "http://evil.example", 403},
		{"127.0.0.1:PORT", "http://evil.example:PORT", 403},
		{"127.0.0.1:PORT", "http://127.0.0.1", 403},
		{"127.0.0.1:PORT", "http://127.0.0.1:PORT.evil.example", 403},
		{"127.0.0.1:PORT", "http://127.0.0.1:PORT@evil.example", 403},
		{"127.0.0.1:PORT", "http://user@127.0.0.1:PORT", 403},
		{"127.0.0.1:PORT", "http://127.0.0.1:PORT/", 403},
		{"127.0.0.1:PORT", "null", 403},
		{"127.0.0.1:PORT", "file://", 403},
		{"127.0.0.1:PORT", "chrome-extension://abcdef", 403},
		{"127.0.0.1:PORT", "http://127.0.0.1:PORT\r\nOrigin: http://evil.example", 403},
		{"127.0.0.1:PORT", " ", 403},
		{"evil.example:PORT", "http://evil.example:PORT", 421}, // rebound: Host and Origin agree
	}
	want := int64(0)
	for _, tt := range tests {
		t.Run(tt.host+" "+tt.origin, func(t *testing.T) {
			headers := upgrade
			if tt.origin != "" {
				headers = slices.Concat(upgrade, []string{"Origin: " + strings.ReplaceAll(tt.origin, "PORT", port)})
			}
			got, body := ask(t, "tcp", d.Addr(), "/", strings.ReplaceAll(tt.host, "PORT", port), headers...)
			if got != tt.want {
				t.Errorf("got %d %s, want %d", got, body, tt.want)
			}
			if tt.want >= 400 {
				want++
			}
		})
	}
	if refused.Load() != want {
		t.Errorf("%d refusals were told, want %d", refused.Load(), want)
	}
	t.Run("other paths too", func(t *testing.T) {
		if got, _ := ask(t, "tcp", d.Addr(), "/metrics", "evil.example:"+port); got != 421 {
			t.Errorf("got %d", got)
		}
	})
	t.Run("over the socket", func(t *testing.T) {
		for origin, want := range map[string]int{"": 101, "http://localhost": 101, "http://evil.example": 403, "http://localhost:80": 403} {
			headers := upgrade
			if origin != "" {
				headers = slices.Concat(upgrade, []string{"Origin: " + origin})
			}
			if got, _ := ask(t, "unix", socket, "/", "anything", headers...); got != want {
				t.Errorf("origin %q: got %d, want %d", origin, got, want)
			}
		}
	})
}

func TestPathsAndMethods(t *testing.T) {
	d := open(t, &Options{Listen: "127.0.0.1:0", HTTP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "healthy "+r.URL.Path)
	})})
	tests := []struct {
		path    string
		headers []string
		want    int
		body    string
	}{
		{"/healthz", nil, 200, "healthy /healthz"},
		{"/", nil, 426, "this is a WebSocket endpoint"},
		{"/", upgrade, 101, ""},
		{"/healthz", upgrade, 200, ""},
		{"/", []string{"Upgrade: h2c", "Connection: Upgrade"}, 426, ""},
		{"/", []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 8", upgrade[3]}, 400, ""},
		{"/", []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"}, 400, ""},
		{"/", []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: short"}, 400, ""},
		{"/", []string{"X: " + strings.Repeat("x", 20<<10)}, 431, ""},
	}
	for _, tt := range tests {
		if got, body := ask(t, "tcp", d.Addr(), tt.path, d.Addr(), tt.headers...); got != tt.want || !strings.HasPrefix(body, tt.body) {
			t.Errorf("%s %.80q: got %d %s, want %d", tt.path, tt.headers, got, body, tt.want)
		}
	}
}

// TestFull turns a conversation too many away, and takes one again when another has ended.
func TestFull(t *testing.T) {
	socket := t.TempDir() + "/s"
	d := open(t, &Options{Listen: "127.0.0.1:0", Socket: socket, Connections: 2})
	var in []*websock.Stream
	for range 2 {
		s, err := websock.Dial(t.Context(), d.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, s)
	}
	if got, _ := ask(t, "tcp", d.Addr(), "/", d.Addr(), upgrade...); got != 503 {
		t.Errorf("got %d", got)
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "{")
	b, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(b), `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,`) {
		t.Errorf("got %s, %v", b, err)
	}
	_ = in[0].Close(0, "")
	for d.Talking() > 1 {
		time.Sleep(time.Millisecond)
	}
	if got, _ := ask(t, "tcp", d.Addr(), "/", d.Addr(), upgrade...); got != 101 {
		t.Errorf("got %d", got)
	}
	_ = in[1].Close(0, "")
}

// TestStop keeps the conversations that there are and lets nobody else in; the end of the context ends them.
func TestStop(t *testing.T) {
	d, err := Open(t.Context(), &Options{Listen: "127.0.0.1:0", Socket: t.TempDir() + "/s", Converse: echo})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	s, err := websock.Dial(t.Context(), d.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Stop()
	if _, err := net.Dial("tcp", d.Addr()); err == nil {
		t.Error("it still listens")
	}
	if _, err := os.Lstat(d.o.Socket); err == nil {
		t.Error("the socket's file is still there")
	}
	talk(t, s)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
