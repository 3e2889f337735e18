package network

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

const events = 300

// sse streams events, each one flush, waiting for a token of next before each but the first: what the reader does
// decides what the writer does, so that the boundaries of chunks are exact.
func sse(next <-chan struct{}, compressed bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var out io.Writer = w
		flush := func() {}
		if compressed {
			z := gzip.NewWriter(w)
			defer z.Close()
			out, flush = z, func() { z.Flush() }
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range events {
			if i > 0 {
				select {
				case <-next:
				case <-r.Context().Done():
					return
				}
			}
			fmt.Fprintf(out, "event: delta\ndata: {\"index\":%d,\"text\":%q}\n\n", i, strings.Repeat("é", i%40))
			flush()
			http.NewResponseController(w).Flush()
		}
	}
}

// rawStream asks over a bare HTTP/1.1 connection and returns the chunks of the answer as they stand on the wire. After
// each it puts a token into next. The error is that of an answer that did not end.
func rawStream(g *rig, next chan<- struct{}) (chunks [][]byte, err error) {
	g.t.Helper()
	c, err := g.dial(context.Background(), "tcp", "api.example.com:80")
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST /stream HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 2\r\n\r\n{}")
	br := bufio.NewReader(c)
	for line := "-"; strings.TrimSpace(line) != ""; {
		if line, err = br.ReadString('\n'); err != nil {
			return nil, err
		}
	}
	for {
		size, err := br.ReadString('\n')
		if err != nil {
			return chunks, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(size), 16, 64)
		if err != nil {
			return chunks, err
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(br, chunk); err != nil {
			return chunks, err
		}
		if n == 0 {
			return chunks, nil
		}
		chunks = append(chunks, chunk[:n])
		next <- struct{}{}
	}
}

func TestStreamKeepsItsChunks(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		t.Run(fmt.Sprintf("gzip=%v", compressed), func(t *testing.T) {
			next := make(chan struct{}, 2*events)
			g := newRig(t, upstreamOf(t, sse(next, compressed)))
			want, err := rawStream(g, next)
			if err != nil || len(want) < events {
				t.Fatalf("recording gave %d chunks and %v", len(want), err)
			}
			checkStream(t, g.tap.exchanges()[0], want)
			rp := replayRig(g, nil)
			got, err := rawStream(rp, make(chan struct{}, 2*events))
			if err != nil {
				t.Fatal(err)
			}
			compareChunks(t, want, got)
			checkStream(t, rp.tap.exchanges()[0], want)
		})
	}
}

func compareChunks(t *testing.T, want, got [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("replay gave %d chunks, want %d", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("chunk %d is %q, want %q", i, got[i], want[i])
		}
	}
}

// checkStream compares the chunks on the tape with those that the program got.
func checkStream(t *testing.T, ex *tape.Exchange, want [][]byte) {
	t.Helper()
	if len(ex.Stream) != len(want) {
		t.Fatalf("the tape has %d chunks, the program got %d", len(ex.Stream), len(want))
	}
	var offset int64
	for i, c := range ex.Stream {
		if c.Offset != offset || c.Length != int64(len(want[i])) {
			t.Fatalf("chunk %d on the tape is %+v, want %d bytes at %d", i, c, len(want[i]), offset)
		}
		offset += c.Length
	}
}

func TestGzipStreamOverHTTP2(t *testing.T) {
	next := make(chan struct{}, events)
	for range events {
		next <- struct{}{}
	}
	g := newRig(t, upstreamOf(t, sse(next, true)))
	first := ask(g.client("h2"), "POST", "https://api.example.com/stream", nil)
	second := ask(replayRig(g, nil).client("h2"), "POST", "https://api.example.com/stream", nil)
	compareReplies(t, first, second)
	z, err := gzip.NewReader(bytes.NewReader(second.body))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || strings.Count(string(text), "event: delta") != events {
		t.Errorf("decoded to %d bytes, %v", len(text), err)
	}
}

// rawUpstream answers every connection with what it says and then ends it; reset says how.
func rawUpstream(t *testing.T, says string, reset bool) string {
	l := listenLoopback(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.WriteString(c, says)
			}
			if reset && says == "" {
				c.(*net.TCPConn).SetLinger(0)
			}
			c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestUpstreamDies sees the program's answer end where the upstream's did, and again in the same place on replay.
func TestUpstreamDies(t *testing.T) {
	const chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	tests := []struct {
		name, says string
		status     int
		body       string
	}{
		{"inside a chunk", chunked + "6\r\nfirst \r\n20\r\nonly a part", 200, "first only a part"},
		{"between chunks", chunked + "6\r\nfirst \r\n", 200, "first "},
		{"after the header", chunked, 200, ""},
		{"before the length", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf of it", 200, "half of it"},
		{"before any byte", "", 0, ""},
		{"inside the header", "HTTP/1.1 200 OK\r\nConte", 0, ""},
		{"not HTTP", "220 smtp.example.com ready\r\n", 0, ""},
		{"informational only", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 0, ""},
	}
	for _, tt := range tests {
		for _, protocol := range []string{"h1", "h2"} {
			t.Run(tt.name+" "+protocol, func(t *testing.T) {
				g := newRig(t, sendTo(rawUpstream(t, tt.says, true)))
				first := ask(g.client(protocol), "POST", "https://api.example.com/v1", []byte("{}"))
				if first.err == nil || first.status != tt.status || string(first.body) != tt.body {
					t.Fatalf("recording gave %d %q %v", first.status, first.body, first.err)
				}
				g.srv.Close()
				if ex := g.tap.exchanges()[0]; ex.Status != tt.status || ex.Error == "" {
					t.Errorf("on the tape: %+v", ex)
				}
				rp := replayRig(g, nil)
				second := ask(rp.client(protocol), "POST", "https://api.example.com/v1", []byte("{}"))
				if second.err == nil || second.status != tt.status || string(second.body) != tt.body {
					t.Errorf("replay gave %d %q %v", second.status, second.body, second.err)
				}
				rp.srv.Close()
				if a, b := g.tap.exchanges()[0].Error, rp.tap.exchanges()[0].Error; a != b {
					t.Errorf("the replay's tape says %q, the recording's %q", b, a)
				}
			})
		}
	}
}

// TestProgramCancels ends the request while the answer streams, and again on replay.
func TestProgramCancels(t *testing.T) {
	for _, protocol := range []string{"h1", "h2"} {
		t.Run(protocol, func(t *testing.T) {
			ended := make(chan struct{})
			g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "begun")
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
				close(ended)
			}))
			cancelAfterFirstBytes(t, g.client(protocol))
			<-ended // the upstream was cancelled too
			g.srv.Close()
			checkCancelled(t, g)
			rp := replayRig(g, nil)
			cancelAfterFirstBytes(t, rp.client(protocol))
			rp.srv.Close()
			checkCancelled(t, rp)
		})
	}
}

func cancelAfterFirstBytes(t *testing.T, c *http.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "POST", "https://api.example.com/v1", strings.NewReader("{}"))
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "begun" {
		t.Fatalf("got %q, %v", b, err)
	}
	cancel()
	if _, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func checkCancelled(t *testing.T, g *rig) {
	t.Helper()
	if ex := g.tap.exchanges(); len(ex) != 1 || ex[0].Error != tape.Cancelled || ex[0].Response == nil || ex[0].Response.Len != 5 {
		t.Errorf("on the tape: %+v", ex[0])
	}
}

// TestCloseEndsStreams closes the Server while an answer streams: Close returns when the exchange is on the tape.
func TestCloseEndsStreams(t *testing.T) {
	g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	res, err := g.client("h2").Post("https://api.example.com/v1", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	g.srv.Close()
	checkCancelled(t, g)
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("an answer that was cut ended well")
	}
	if err := g.srv.Serve(listenLoopback(t)); err != nil {
		t.Errorf("serving after Close: %v", err)
	}
}
