package network

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

// talk says each message and takes one for it, and closes.
func talk(t *testing.T, g *rig, url string, mode websocket.CompressionMode, messages []wsText) {
	t.Helper()
	c, res, err := g.wsDial(url, &websocket.DialOptions{CompressionMode: mode, Subprotocols: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Subprotocol() != "b" || res.Header.Get("X-Said") != "yes" {
		t.Errorf("subprotocol %q, header %v", c.Subprotocol(), res.Header)
	}
	for _, m := range messages {
		if err := c.Write(t.Context(), m.kind, []byte(m.text)); err != nil {
			t.Fatal(err)
		}
		kind, b, err := c.Read(t.Context())
		if err != nil || kind != m.kind || string(b) != m.text {
			t.Fatalf("got %v, %d bytes, %v; want %s", kind, len(b), err, m)
		}
	}
	if err := c.Ping(c.CloseRead(t.Context())); err != nil {
		t.Error(err)
	}
	if err := c.Close(4000, "enough"); err != nil {
		t.Error(err)
	}
}

// TestSocketIsReplayed records a conversation, and has it again from the tape: what the program gets is the same, and so is the
// replay's tape.
func TestSocketIsReplayed(t *testing.T) {
	long := strings.Repeat("some words again and again ", 10_000)
	messages := []wsText{
		{websocket.MessageText, `{"a":1}`}, {websocket.MessageBinary, "\xff\x00"}, {websocket.MessageText, ""},
		{websocket.MessageText, long}, {websocket.MessageText, long}, {websocket.MessageText, `{"a":1}`},
	}
	for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover, websocket.CompressionNoContextTakeover} {
		for _, scheme := range []string{"ws", "wss"} {
			t.Run(fmt.Sprintf("%s %d", scheme, mode), func(t *testing.T) {
				answer := wsEcho(&websocket.AcceptOptions{CompressionMode: mode, Subprotocols: []string{"b"}})
				g := newRig(t, upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Said", "yes")
					answer(w, r)
				}))
				talk(t, g, scheme+"://api.example.com/a?b=c", mode, messages)
				rp := replayRig(g, nil)
				talk(t, rp, scheme+"://api.example.com/a?b=c", mode, messages)
				rp.srv.Close()
				wantSaid(t, rp.tap, wsSaid(t, g.tap)...)
				if left := rp.srv.cfg.Book.Unasked(); len(left) != 0 {
					t.Errorf("%d unasked", len(left))
				}
			})
		}
	}
}

// TestSocketSaysWhatIsNotOnTheTape: a message that was not recorded ends the socket with the nearest one, in the reason and on the tape.
func TestSocketSaysWhatIsNotOnTheTape(t *testing.T) {
	g := newRig(t, upstreamOf(t, wsEcho(nil)))
	c, _, err := g.wsDial("wss://api.example.com/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"n":1}`, `{"n":2,"m":"x"}`} {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.Close(websocket.StatusNormalClosure, "")
	rp := replayRig(g, nil)
	if c, _, err = rp.wsDial("wss://api.example.com/a", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), websocket.MessageText, []byte(`{"n":3,"m":"x"}`)); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.Read(t.Context())
	var closed websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != websocket.StatusPolicyViolation || !strings.Contains(closed.Reason, "n: 2 -> 3") {
		t.Errorf("got %v", err)
	}
	rp.srv.Close()
	if said := strings.Join(wsSaid(t, rp.tap), "\n"); !strings.Contains(said, `refused="nearest is record 3`) {
		t.Errorf("on the tape:\n%s", said)
	}
	if _, res, err := replayRig(g, nil).wsDial("wss://api.example.com/b", nil); err == nil || res.StatusCode != http.StatusBadRequest {
		t.Errorf("another URL got %v, %v", res, err)
	}
}

// TestSocketRefusedEnds: a program that says what is not on the tape, and does not heed the close, is left all the same.
func TestSocketRefusedEnds(t *testing.T) {
	change, ends := wsUpstream(t, "", "")
	g := newRig(t, change)
	p, _ := g.program("\r\n")
	up := <-ends
	p.say(masked(wsframe.Text, true, "one"))
	up.hear(masked(wsframe.Text, true, "one"))
	up.say(frame(wsframe.Text, true, "two"))
	p.hear(frame(wsframe.Text, true, "two"))
	up.Close()
	rp := replayRig(g, nil)
	p, _ = rp.program("\r\n")
	p.say(masked(wsframe.Text, true, "other"))
	b, err := io.ReadAll(p.r)
	if err != nil || len(b) < 4 || b[0] != 0x88 || int(b[2])<<8|int(b[3]) != policyViolation {
		t.Errorf("got %q, %v", b, err)
	}
	p.say(masked(wsframe.Text, true, "one")) // which waits for nothing
	rp.srv.Close()
	said := wsSaid(t, rp.tap)
	if last := said[len(said)-1]; !strings.HasPrefix(last, "close 1008 not on the tape: nearest is record 1") {
		t.Errorf("on the tape: %s", last)
	}
}

// TestSocketReplaysAnyTalk: whatever is said, in whatever fragments, a replay says the same messages in the same places, and its tape is the
// recorded one.
func TestSocketReplaysAnyTalk(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			steps := anyTalk(rand.New(rand.NewPCG(seed, 1)))
			change, ends := wsUpstream(t, "", "")
			g := newRig(t, change)
			p, _ := g.program("\r\n")
			up := <-ends
			for _, s := range steps {
				if s.server {
					up.say(s.frames)
					p.hear(s.frames)
				} else {
					p.say(s.frames)
					up.hear(s.frames)
				}
			}
			p.Close()
			up.hearEnd() // else who went first is a matter of moments
			up.Close()
			rp := replayRig(g, nil)
			p, _ = rp.program("\r\n")
			for _, s := range steps {
				if s.server {
					p.hear(rawReplayed([][]byte{s.frames})...)
				} else {
					p.say(s.frames)
				}
			}
			p.Close()
			rp.srv.Close()
			wantSaid(t, rp.tap, wsSaid(t, g.tap)...)
		})
	}
}

// A wsStep is one message, in fragments, with pings of the server between them.
type wsStep struct {
	server bool
	frames []byte
}

func anyTalk(r *rand.Rand) (steps []wsStep) {
	for range 1 + r.IntN(20) {
		s := wsStep{server: r.IntN(2) == 0}
		payload := make([]byte, r.IntN(1<<r.IntN(17)))
		for i := range payload {
			payload[i] = "abc{}\"\xff\x00"[r.IntN(8)]
		}
		opcode := byte(1 + r.IntN(2))
		for more := true; more; opcode = wsframe.Continuation {
			n := len(payload)
			if r.IntN(3) == 0 {
				n = r.IntN(n + 1)
			}
			more = n < len(payload)
			h := wsframe.Header{Fin: !more, Opcode: opcode, Masked: !s.server, Key: [4]byte{1, 2, 3, byte(r.IntN(256))}}
			s.frames = wsframe.AppendFrame(s.frames, h, payload[:n])
			payload = payload[n:]
			if more && s.server && r.IntN(2) == 0 {
				s.frames = wsframe.AppendFrame(s.frames, wsframe.Header{Fin: true, Opcode: wsframe.Ping}, []byte("still there?"))
			}
		}
		steps = append(steps, s)
	}
	return steps
}
