package network

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

// An end is one end of a socket, byte by byte.
type end struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// say writes frames as they are.
func (e *end) say(frames ...[]byte) {
	e.t.Helper()
	if _, err := e.Write(bytes.Join(frames, nil)); err != nil {
		e.t.Fatal(err)
	}
}

// hear reads as many bytes as want has, and fails where they are others.
func (e *end) hear(want ...[]byte) {
	e.t.Helper()
	all := bytes.Join(want, nil)
	got := make([]byte, len(all))
	if n, err := io.ReadFull(e.r, got); err != nil || !bytes.Equal(got, all) {
		e.t.Fatalf("heard %q, %v; want %q", got[:n], err, all)
	}
}

// hearEnd waits for the end of what the other side says, and returns what it was: io.EOF, or a reset.
func (e *end) hearEnd() error {
	e.t.Helper()
	b, err := io.ReadAll(e.r)
	if len(b) > 0 {
		e.t.Errorf("heard %q", b)
	}
	switch {
	case err == nil:
		return io.EOF
	case exchange.IsReset(err):
		return errReset
	}
	return err
}

var errReset = errors.New("reset")

// reset ends the connection by a reset.
func (e *end) reset() {
	reset(e.Conn)
	e.Close()
}

func (e *end) closeWrite() {
	e.t.Helper()
	if err := halfClose(e.Conn); err != nil {
		e.t.Fatal(err)
	}
}

const rawUpgrade = "GET /raw HTTP/1.1\r\nHost: api.example.com\r\nConnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// rawAccept is the proof for that key (RFC 6455, 1.3).
const rawAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

// program opens a socket to http://api.example.com/raw; behind are header fields and an empty line, and what is sent with them.
func (g *rig) program(behind string) (*end, *http.Response) {
	g.t.Helper()
	c, err := g.dial(context.Background(), "tcp", "api.example.com:80")
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, rawUpgrade+behind); err != nil {
		g.t.Fatal(err)
	}
	p := &end{Conn: c, t: g.t, r: bufio.NewReader(c)}
	res, err := http.ReadResponse(p.r, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return p, res
}

// wsUpstream accepts sockets, with further header fields and what is sent behind them, and gives each away.
func wsUpstream(t testing.TB, fields, behind string) (func(*Config), <-chan *end) {
	ends := make(chan *end, 10)
	return upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "HTTP/1.1 101 Web Socket Protocol Handshake\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Accept: %s\r\n%s\r\n%s", wsframe.AcceptKey(r.Header.Get(wsKey)), fields, behind)
		ends <- &end{Conn: c, t: t, r: rw.Reader}
	}), ends
}

func frame(opcode byte, fin bool, payload string) []byte {
	return wsframe.AppendFrame(nil, wsframe.Header{Fin: fin, Opcode: opcode}, []byte(payload))
}

func masked(opcode byte, fin bool, payload string) []byte {
	return wsframe.AppendFrame(nil, wsframe.Header{Fin: fin, Opcode: opcode, Masked: true, Key: [4]byte{9, 8, 7, 6}}, []byte(payload))
}

func closeFrame(code int, reason string) string {
	return string(wsframe.AppendClose(nil, code, reason))
}

// TestSocketPassesBytes: what passes is what was sent, to the byte, whatever of it is no protocol; the tape has what can be read of it.
func TestSocketPassesBytes(t *testing.T) {
	const text, binary, more = wsframe.Text, wsframe.Binary, wsframe.Continuation
	reserved := frame(text, true, "x")
	reserved[0] |= 0x20
	long := strings.Repeat("long ", 20_000)
	for _, tt := range []struct {
		name     string
		sent     [][]byte
		received [][]byte
		said     []string
	}{
		{"whole messages", [][]byte{masked(text, true, "a"), masked(binary, true, "b")}, [][]byte{frame(text, true, "c")}, []string{
			"sent text a", "sent binary b", "received text c",
		}},
		{"fragments, and control frames between them", [][]byte{masked(text, false, "a"), masked(wsframe.Ping, true, "p"), masked(more, true, "b")},
			[][]byte{frame(text, false, ""), frame(wsframe.Pong, true, "p"), frame(wsframe.Ping, true, ""), frame(more, false, "c"), frame(more, true, "d")},
			[]string{"sent text ab", "received text cd"}},
		{"64-bit lengths", [][]byte{masked(binary, true, long)}, [][]byte{frame(text, true, long)}, []string{
			"sent binary 100000 bytes", "received text 100000 bytes",
		}},
		{"no mask where there must be one, and the other way round", [][]byte{frame(text, true, "a")}, [][]byte{masked(text, true, "b")}, []string{
			"sent text a masked=false", "received text b masked=true",
		}},
		{"text that is no UTF-8", [][]byte{masked(text, true, "\xff\xfe")}, [][]byte{frame(text, true, "\xff")}, []string{
			"sent text \xff\xfe", "received text \xff",
		}},
		{"broken by the program", [][]byte{masked(text, true, "a"), masked(more, true, "x"), masked(text, true, "late")}, [][]byte{frame(text, true, "c")}, []string{
			"sent text a", "sent raw \x80\x81\x09\x08\x07\x06", "received text c", `the program broke the protocol: a fragment continues no message`,
		}},
		{"broken by the upstream", [][]byte{masked(text, true, "a")}, [][]byte{reserved, frame(text, true, "late")}, []string{
			"sent text a", "received raw \xa1\x01", `the upstream broke the protocol: a frame has a reserved bit that nobody agreed on`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change, ends := wsUpstream(t, "", "")
			g := newRig(t, change)
			p, res := g.program("\r\n")
			if res.Status != "101 Web Socket Protocol Handshake" || res.Header.Get(wsAccept) != rawAccept {
				t.Errorf("got %s, %v", res.Status, res.Header)
			}
			up := <-ends
			p.say(tt.sent...)
			up.hear(tt.sent...)
			up.say(tt.received...)
			p.hear(tt.received...)
			p.Close()
			up.hearEnd() // else who went first is a matter of moments
			up.Close()
			g.srv.Close()
			said := strings.Join(wsSaid(t, g.tap)[1:], "\n")
			if want := strings.Join(tt.said, "\n"); !strings.HasPrefix(strings.ReplaceAll(said, `close 1006  gone="program" error="`, ""), want) {
				t.Errorf("on the tape:\n%s\nwant:\n%s", said, want)
			}
			if tt.name == "broken by the program" {
				return // it says what the tape has no more
			}
			rp := replayRig(g, nil)
			p, _ = rp.program("\r\n")
			p.say(tt.sent...)
			if bytes.Contains(bytes.Join(tt.sent, nil), masked(wsframe.Ping, true, "p")) { // which is answered at once
				p.hear(frame(wsframe.Pong, true, "p"))
			}
			p.hear(rawReplayed(tt.received)...)
		})
	}
}

// rawReplayed is what a replay says for what was said: messages are whole, pings are not said again, nothing is behind what is broken.
func rawReplayed(frames [][]byte) (out [][]byte) {
	_ = wsframe.NewAssembler(nil).Feed(bytes.Join(frames, nil), func(e *wsframe.Event) error {
		switch e.Kind {
		case wsframe.Message:
			out = append(out, wsframe.AppendFrame(nil, wsframe.Header{Fin: true, Opcode: byte(e.Opcode), Masked: e.Masked}, e.Payload))
		case wsframe.Broken:
			out = append(out, bytes.Clone(e.Payload))
		case wsframe.Control, wsframe.Closing:
		}
		return nil
	})
	return out
}

// TestSocketEnds: each side gets the end that the other one made, in recording; and the program on the replay.
func TestSocketEnds(t *testing.T) {
	const farewell = wsframe.Close
	for _, tt := range []struct {
		name   string
		talk   func(p, up *end) // up is nil on the replay, where there is none
		closed string           // on the tape
	}{
		{"the program closes", func(p, up *end) {
			p.say(masked(farewell, true, closeFrame(4001, "done")))
			if up != nil {
				up.hear(masked(farewell, true, closeFrame(4001, "done")))
				up.say(frame(farewell, true, closeFrame(4001, "")))
				up.Close()
			}
			p.hear(frame(farewell, true, closeFrame(4001, "")))
			wantEnd(p, io.EOF)
		}, `close 4001 done direction="sent" answer=[4001,""]`},
		{"the upstream closes", func(p, up *end) {
			if up != nil {
				up.say(frame(farewell, true, closeFrame(1011, "Deadline expired")))
			}
			p.hear(frame(farewell, true, closeFrame(1011, "Deadline expired")))
			p.say(masked(farewell, true, closeFrame(1011, "")))
			if up != nil {
				up.hear(masked(farewell, true, closeFrame(1011, "")))
				up.Close()
			}
			wantEnd(p, io.EOF)
		}, `close 1011 Deadline expired direction="received" answer=[1011,""]`},
		{"a close without a code, and no answer", func(p, up *end) {
			if up != nil {
				up.say(frame(farewell, true, ""))
				up.Close()
			}
			p.hear(frame(farewell, true, ""))
			wantEnd(p, io.EOF)
		}, `close 1005  direction="received" gone="server"`},
		{"the program hangs up", func(p, up *end) {
			p.Close()
			if up != nil {
				wantEnd(up, io.EOF)
				up.Close()
			}
		}, `close 1006  gone="program"`},
		{"the upstream hangs up", func(p, up *end) {
			if up != nil {
				up.Close()
			}
			wantEnd(p, io.EOF)
		}, `close 1006  gone="server"`},
		{"the upstream resets", func(p, up *end) {
			if up != nil {
				up.reset()
			}
			wantEnd(p, errReset)
		}, `close 1006  gone="server" error="connection reset"`},
		{"the program resets", func(p, up *end) {
			p.reset()
			if up != nil {
				wantEnd(up, errReset)
			}
		}, `close 1006  gone="program" error="connection reset"`},
		{"the program has said all, and listens on", func(p, up *end) {
			p.closeWrite()
			if up != nil {
				wantEnd(up, io.EOF)
				up.say(frame(wsframe.Text, true, "still here"))
				up.Close()
			}
			p.hear(frame(wsframe.Text, true, "still here"))
			wantEnd(p, io.EOF)
		}, `close 1006  gone="program"`},
		{"cut in the middle of a message", func(p, up *end) {
			if up != nil {
				up.say(frame(wsframe.Text, false, "half of"), frame(wsframe.Continuation, true, "it")[:3])
				up.Close()
			}
			want := frame(wsframe.Text, false, "half of")
			if up == nil {
				want = frame(wsframe.Text, false, "half ofi")
			} else {
				want = append(want, frame(wsframe.Continuation, true, "it")[:3]...)
			}
			p.hear(want)
			wantEnd(p, io.EOF)
		}, `close 1006  gone="server"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change, ends := wsUpstream(t, "", "")
			g := newRig(t, change)
			greet := func(p, up *end) {
				p.say(masked(wsframe.Text, true, "hello"))
				if up != nil {
					up.hear(masked(wsframe.Text, true, "hello"))
					up.say(frame(wsframe.Text, true, "hello you"))
				}
				p.hear(frame(wsframe.Text, true, "hello you"))
			}
			p, _ := g.program("\r\n")
			up := <-ends
			greet(p, up)
			tt.talk(p, up)
			p.Close()
			g.srv.Close()
			said := wsSaid(t, g.tap)
			if got := said[len(said)-1]; got != tt.closed {
				t.Errorf("on the tape: %s\nwant: %s", got, tt.closed)
			}
			rp := replayRig(g, nil)
			p, _ = rp.program("\r\n")
			greet(p, nil)
			tt.talk(p, nil)
			p.Close()
			rp.srv.Close()
			if again := wsSaid(t, rp.tap); again[0] != said[0] || len(again) != len(said) {
				t.Errorf("on the replay's tape:\n%s\nrecorded:\n%s", strings.Join(again, "\n"), strings.Join(said, "\n"))
			}
		})
	}
}

func wantEnd(e *end, want error) {
	e.t.Helper()
	if got := e.hearEnd(); !errors.Is(got, want) {
		e.t.Errorf("got the end %v, want %v", got, want)
	}
}

// TestSocketTogether: what the upstream sends with its answer, and what the program sends with its request, is not lost.
func TestSocketTogether(t *testing.T) {
	change, ends := wsUpstream(t, "X-More: yes\r\n", string(frame(wsframe.Text, true, "at once")))
	g := newRig(t, change)
	p, res := g.program("\r\n" + string(masked(wsframe.Text, true, "me too")))
	if res.Header.Get("X-More") != "yes" {
		t.Errorf("got %v", res.Header)
	}
	p.hear(frame(wsframe.Text, true, "at once"))
	up := <-ends
	up.hear(masked(wsframe.Text, true, "me too"))
	g.srv.Close() // which waits for neither
	if said := strings.Join(wsSaid(t, g.tap), "\n"); !strings.Contains(said, "received text at once") || !strings.Contains(said, "sent text me too") ||
		!strings.HasSuffix(said, `close 1006  gone="program"`) {
		t.Errorf("on the tape:\n%s", said)
	}
}

// TestSocketRequest: the request reaches the upstream as the program sent it, but for extensions that nobody here can read.
func TestSocketRequest(t *testing.T) {
	got := make(chan http.Header, 1)
	g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		h := r.Header.Clone()
		h.Set("Seen-URL", r.URL.RequestURI())
		got <- h
		http.Error(w, "no", http.StatusForbidden)
	}))
	_, res := g.program("Origin: https://a.example\r\nCookie: a=b\r\nSec-WebSocket-Protocol: one, two\r\n" +
		"Sec-WebSocket-Extensions: x-strange, permessage-deflate; client_max_window_bits, permessage-deflate\r\nProxy-Connection: x\r\n\r\n")
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("got %s", res.Status)
	}
	h := <-got
	for name, want := range map[string]string{
		"Seen-URL": "/raw", "Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Origin": "https://a.example", "Cookie": "a=b",
		wsKey: "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Version": "13", wsProtocol: "one, two",
		wsExtensions: "permessage-deflate; client_max_window_bits, permessage-deflate", "Proxy-Connection": "", "User-Agent": "",
	} {
		if got := strings.Join(h.Values(name), "|"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	g.srv.Close()
	if ex := g.tap.exchanges(); len(ex) != 1 || ex[0].Status != http.StatusForbidden || exchange.HeaderOf(ex[0].RequestHeaders).Get(wsKey) != "" {
		t.Errorf("on the tape: %+v", ex)
	}
}
