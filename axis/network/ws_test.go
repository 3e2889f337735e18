package network

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// wsEcho answers each message with itself, until the program closes.
func wsEcho(o *websocket.AcceptOptions) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, o)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		for {
			kind, b, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if c.Write(r.Context(), kind, b) != nil {
				return
			}
		}
	}
}

// wsDial opens a socket as a program in a jail would.
func (g *rig) wsDial(url string, o *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
	var opts websocket.DialOptions
	if o != nil {
		opts = *o
	}
	opts.HTTPClient = g.client("h1")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, res, err := websocket.Dial(ctx, url, &opts)
	if err == nil {
		c.SetReadLimit(-1)
		g.t.Cleanup(func() { c.CloseNow() })
	}
	return c, res, err
}

// wsSaid is what stands on a tape: one text for each record.
func wsSaid(t testing.TB, tt *testTap) (out []string) {
	t.Helper()
	for r, err := range tt.reader().Records() {
		if err != nil {
			t.Fatal(err)
		}
		switch k := r.Kind.(type) {
		case *tape.WSOpen:
			out = append(out, "open "+k.URL+" "+k.Lane+extras(k.Extra))
		case *tape.WSMessage:
			out = append(out, k.Direction+" "+k.Opcode+" "+wsPayload(t, tt, k.Payload)+extras(k.Extra))
		case *tape.WSClose:
			out = append(out, fmt.Sprintf("close %d %s%s", k.Code, k.Reason, extras(k.Extra)))
		case *tape.HTTPExchange:
			out = append(out, fmt.Sprintf("http %s %d %s", k.URL, k.Status, k.Error))
		default:
			out = append(out, r.Kind.Name())
		}
	}
	return out
}

// wsPayload is a payload for people.
func wsPayload(t testing.TB, tt *testTap, p *tape.Payload) string {
	if p == nil {
		return "nothing"
	}
	b, err := p.Bytes(tt.store)
	if err != nil {
		t.Fatal(err)
	}
	return shortened(string(b))
}

func shortened(s string) string {
	if len(s) > 40 {
		return fmt.Sprint(len(s), " bytes")
	}
	return s
}

func extras(fields []tape.Field) (out string) {
	for _, f := range fields {
		if f.Name != "at" {
			out += " " + f.Name + "=" + string(f.Value)
		}
	}
	return out
}

func wantSaid(t testing.TB, tt *testTap, want ...string) {
	t.Helper()
	if got := wsSaid(t, tt); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("on the tape:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

type wsText struct {
	kind websocket.MessageType
	text string
}

func (m wsText) String() string {
	return map[websocket.MessageType]string{websocket.MessageText: "text", websocket.MessageBinary: "binary"}[m.kind] + " " + shortened(m.text)
}

func TestSocketIsRecorded(t *testing.T) {
	long := strings.Repeat("some words again and again ", 10_000)
	messages := []wsText{
		{websocket.MessageText, "one"}, {websocket.MessageBinary, "\xff\x00"}, {websocket.MessageText, ""},
		{websocket.MessageText, long}, {websocket.MessageText, long},
	}
	for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover} {
		for _, scheme := range []string{"ws", "wss"} {
			t.Run(fmt.Sprintf("%s %d", scheme, mode), func(t *testing.T) {
				g := newRig(t, upstreamOf(t, wsEcho(&websocket.AcceptOptions{CompressionMode: mode, Subprotocols: []string{"b"}})))
				c, res, err := g.wsDial(scheme+"://api.example.com/a?b=c", &websocket.DialOptions{CompressionMode: mode, Subprotocols: []string{"a", "b"}})
				if err != nil {
					t.Fatal(err)
				}
				if c.Subprotocol() != "b" || res.Header.Get("Upgrade") != "websocket" {
					t.Errorf("subprotocol %q, header %v", c.Subprotocol(), res.Header)
				}
				said := []string{"open " + scheme + "://api.example.com/a?b=c ws:api.example.com"}
				for _, m := range messages {
					if err := c.Write(t.Context(), m.kind, []byte(m.text)); err != nil {
						t.Fatal(err)
					}
					kind, b, err := c.Read(t.Context())
					if err != nil || kind != m.kind || string(b) != m.text {
						t.Fatalf("got %v, %d bytes, %v", kind, len(b), err)
					}
					said = append(said, "sent "+m.String(), "received "+m.String())
				}
				if err := c.Close(4000, "enough"); err != nil {
					t.Error(err)
				}
				g.srv.Close()
				wantSaid(t, g.tap, append(said, `close 4000 enough direction="sent" answer=[4000,"enough"]`)...)
			})
		}
	}
}

func TestSocketRefusedByUpstream(t *testing.T) {
	g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusTeapot)
	}))
	_, res, err := g.wsDial("wss://api.example.com/a", nil)
	if err == nil || res.StatusCode != http.StatusTeapot {
		t.Fatalf("got %v, %v", res, err)
	}
	if b, _ := io.ReadAll(res.Body); string(b) != "no\n" {
		t.Errorf("got %q", b)
	}
	g.srv.Close()
	wantSaid(t, g.tap, "http https://api.example.com/a 418 ")
}
