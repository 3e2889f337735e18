package websock

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAutobahn holds a server to RFC 6455: the cases of the Autobahn test suite's fuzzing client, categories 1 to 7 (framing, pings, reserved bits,
// opcodes, fragmentation, UTF-8, closing), with its strict expectations and its numbers. The server is an echo, of binary messages too. With
// TAPEDECK_WEBSOCKETS it is the daemon at that address (ws://host:port or unix:PATH): none of their messages is JSON, and it answers each so.
func TestAutobahn(t *testing.T) {
	if at := os.Getenv("TAPEDECK_WEBSOCKETS"); at != "" {
		hold(t, Server{Addr: at, NoBinary: true, Async: true, Answer: func(_, got string) bool {
			return strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`)
		}})
		return
	}
	url := serve(t, &Options{binary: true, Limit: 1 << 20}, func(s *Stream) {
		for {
			b, _, err := s.Read()
			if err != nil {
				hangUp(s, err)
				return
			}
			if err := s.send(s.kind, b, false); err != nil {
				return
			}
		}
	})
	hold(t, Server{Addr: url})
}

// A Server is what is tested.
type Server struct {
	Addr string // ws://host:port or unix:PATH
	// NoBinary says that a binary message is answered with close 1003.
	NoBinary bool
	// Answer reports whether got is a right answer to a message; nil wants an echo.
	Answer func(sent, got string) bool
	// Async says that a message is answered while the next frame is read: where that is a close, the answer may be lost.
	Async bool
}

// A step is what the client writes, in pieces of chop bytes (0: at once).
type step struct {
	frames []Frame
	chop   int
	cut    [2]int        // of their bytes, only those from and to; zero: all
	after  time.Duration // wait before it
}

// A test is a case of the suite.
type test struct {
	name  string
	steps []step
	want  []Event // messages stand here as they were sent
	// closes are the codes with which the server may end it; nil: the client ends it, with 1000.
	closes []int
	// fast says that the server has to close before the last step is sent.
	fast bool
	// slow cases run in the long form of the tests alone.
	slow bool
}

// hold holds the server to every case, with TAPEDECK_LONG to those too that take their time.
func hold(t *testing.T, s Server) {
	for _, tt := range slices.Concat(framing(), pings(), reserved(), opcodes(), fragments(), utf8Cases(), closing()) {
		t.Run(tt.name, func(t *testing.T) {
			if tt.slow && os.Getenv("TAPEDECK_LONG") == "" {
				t.Skip("set TAPEDECK_LONG=1")
			}
			t.Parallel()
			tt.run(t, s)
		})
	}
}

func (tt *test) run(t *testing.T, s Server) {
	c, err := dialRaw(t.Context(), s.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want, closes := tt.want, tt.closes
	if s.NoBinary && tt.has(Binary) {
		want, closes = nil, []int{1003}
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		tt.send(c)
	}()
	if s.Async && tt.has(Close) {
		want = nil
	}
	for _, w := range want {
		got, err := c.Next()
		if err != nil {
			t.Fatalf("want %s, got %v", describe(w), err)
		}
		if !s.matches(w, got) {
			t.Fatalf("want %s, got %s", describe(w), describe(got))
		}
	}
	if closes == nil {
		<-sent
		_ = c.Send(Frame{Fin: true, Op: Close, Payload: ClosePayload(1000, "")})
	}
	tt.finish(t, c, closes, sent)
}

// has reports whether the client sends a frame of that kind.
func (tt *test) has(op byte) bool {
	for _, s := range tt.steps {
		for _, f := range s.frames {
			if f.Op == op && f.RSV == 0 {
				return true
			}
		}
	}
	return false
}

// send writes what the case has to say. Writing fails once the server has closed.
func (tt *test) send(c *Client) {
	for i, s := range tt.steps {
		if tt.fast && i == len(tt.steps)-1 {
			return // the server has to close before
		}
		time.Sleep(s.after)
		var b []byte
		for _, f := range s.frames {
			b = f.Append(b)
		}
		if s.cut[1] > 0 {
			b = b[s.cut[0]:s.cut[1]]
		}
		if s.chop == 0 {
			s.chop = max(len(b), 1)
		}
		for piece := range slices.Chunk(b, s.chop) {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	}
}

// finish sees the connection end as it should.
func (tt *test) finish(t *testing.T, c *Client, closes []int, sent <-chan struct{}) {
	if closes == nil {
		closes = []int{1000}
	}
	got, err := c.Next()
	for err == nil && got.Op != Close && tt.has(Close) && len(tt.want) > 0 {
		got, err = c.Next() // an answer that was not lost
	}
	if err != nil {
		t.Fatalf("want close %v, got %v", closes, err)
	}
	if got.Op != Close || !slices.Contains(closes, got.Code) {
		t.Fatalf("want close %v, got %s", closes, describe(got))
	}
	<-sent
	if tt.closes != nil && !tt.has(Close) {
		_ = c.Send(Frame{Fin: true, Op: Close, Payload: ClosePayload(1000, "")})
	}
	if err := c.End(); err != nil {
		t.Errorf("after the close: %v", err)
	}
}

func (s Server) matches(want, got Event) bool {
	if want.Op != got.Op {
		return want.Op == Binary && s.Answer != nil && s.Answer(want.Payload, got.Payload)
	}
	if want.Op <= Binary && s.Answer != nil {
		return s.Answer(want.Payload, got.Payload)
	}
	return want.Payload == got.Payload
}

func describe(e Event) string {
	name := map[byte]string{Text: "text", Binary: "binary", Close: "close", Pong: "pong"}[e.Op]
	p := e.Payload
	if len(p) > 40 {
		p = p[:40] + "…"
	}
	if e.Op == Close {
		return strings.TrimSpace(name + " " + string(bytes.TrimSpace([]byte(itoa(e.Code)+" "+p))))
	}
	return name + " \"" + p + "\""
}
