package network

import (
	"io"
	"net/http"
	"regexp"
	"testing"
)

// converse sends raw bytes to api.example.com and returns all that comes until the connection ends.
func converse(g *rig, raw string) string {
	g.t.Helper()
	c, err := g.dial(g.t.Context(), "tcp", "api.example.com:80")
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, raw); err != nil {
		g.t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(b)
}

var dateLine = regexp.MustCompile(`Date: .*\r\n`)

// A client of HTTP/1.0 gets no chunks, whatever the upstream speaks: the end of the connection ends an answer without a length.
// It keeps its connection where it asks for that and the answer has one. A replay gives the same bytes.
func TestHTTP10(t *testing.T) {
	streamed := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/whole" {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, "whole")
			return
		}
		for range 3 {
			io.WriteString(w, "part\n")
			http.NewResponseController(w).Flush()
		}
	}
	const end = "Content-Type: text/plain; charset=utf-8\r\n"
	for _, tt := range []struct{ name, raw, want string }{
		{"stream", "GET /parts HTTP/1.0\r\nHost: api.example.com\r\n\r\n",
			"HTTP/1.0 200 OK\r\n" + end + "\r\npart\npart\npart\n"},
		{"stream, asked to keep", "GET /parts HTTP/1.0\r\nHost: api.example.com\r\nConnection: keep-alive\r\n\r\n",
			"HTTP/1.0 200 OK\r\n" + end + "\r\npart\npart\npart\n"},
		{"two on one connection, without a host",
			"GET /whole HTTP/1.0\r\nConnection: keep-alive\r\n\r\nPOST /whole HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi",
			"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n" + end + "Connection: keep-alive\r\n\r\nwhole" +
				"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n" + end + "\r\nwhole"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newRig(t, upstreamOf(t, streamed))
			first := dateLine.ReplaceAllString(converse(g, tt.raw), "")
			if first != tt.want {
				t.Fatalf("got %q, want %q", first, tt.want)
			}
			if second := dateLine.ReplaceAllString(converse(replayRig(g, nil), tt.raw), ""); second != first {
				t.Errorf("replay gave %q, want %q", second, first)
			}
		})
	}
}
