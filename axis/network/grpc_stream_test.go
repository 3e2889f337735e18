package network

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// liveCall is a call whose request goes on while it is answered.
type liveCall struct {
	t    testing.TB
	send *io.PipeWriter
	body io.ReadCloser
	res  *http.Response
}

// openCall begins a call with its first message.
func openCall(t testing.TB, c *http.Client, req *http.Request, first string) *liveCall {
	t.Helper()
	r, w := io.Pipe()
	req.Body = r
	go w.Write(message(first))
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return &liveCall{t: t, send: w, body: res.Body, res: res}
}

// pingPong answers each message by one of its own.
func pingPong(w http.ResponseWriter, r *http.Request) {
	for {
		asked, err := readMessage(r.Body)
		if err != nil {
			break
		}
		w.Write(message("re: " + asked))
		w.(http.Flusher).Flush()
	}
	ended(w, "0", "")
}

// ask sends what comes after the first message, each once the one before was answered.
func (x *liveCall) ask(n int, text func(i int) string) error {
	for i := range n {
		if i > 0 {
			if _, err := x.send.Write(message(text(i))); err != nil {
				return err
			}
		}
		got, err := readMessage(x.body)
		if err != nil {
			return err
		}
		if got != "re: "+text(i) {
			return fmt.Errorf("message %d was answered %q", i, got)
		}
	}
	return nil
}

func numbered(i int) string { return fmt.Sprint("message ", i) }

// TestPingPong records and replays a call that wants an answer to each message before it sends the next.
func TestPingPong(t *testing.T) {
	g := newRig(t, grpcUpstream(grpcServer(t, false, pingPong)))
	check := func(g *rig) {
		t.Helper()
		c := openCall(t, g.client("h2c"), grpcCall(t, "http://api.example.com/a/Chat", nil), numbered(0))
		if err := c.ask(100, numbered); err != nil {
			t.Fatal(err)
		}
		c.send.Close()
		rest, err := io.ReadAll(c.body)
		if err != nil || len(rest) > 0 || c.res.Trailer.Get("Grpc-Status") != "0" {
			t.Fatalf("got %q, %v, %v", rest, err, c.res.Trailer)
		}
	}
	check(g)
	replay := replayRig(g, nil)
	check(replay)
	replay.srv.Close()
	was, now := g.tap.exchanges()[0], replay.tap.exchanges()[0]
	if was.RequestDigest != now.RequestDigest || was.Lane != now.Lane || was.RequestPayload.Hash != now.RequestPayload.Hash || len(was.Stream) != len(now.Stream) {
		t.Errorf("recorded %+v, replayed %+v", was, now)
	}
}

// TestLongCall replays a call whose messages are longer together than what is held of a request to be compared.
func TestLongCall(t *testing.T) {
	const messages, size = 40, 500_000
	g := newRig(t, grpcUpstream(grpcServer(t, false, pingPong)))
	long := func(i int) string { return strings.Repeat("0123456789", size/10) + strconv.Itoa(i) }
	for range 2 {
		c := openCall(t, g.client("h2c"), grpcCall(t, "http://api.example.com/a/Chat", nil), long(0))
		if err := c.ask(messages, long); err != nil {
			t.Fatal(err)
		}
		c.send.Close()
		if _, err := io.Copy(io.Discard, c.body); err != nil || c.res.Trailer.Get("Grpc-Status") != "0" {
			t.Fatal(err, c.res.Trailer)
		}
		g = replayRig(g, nil)
	}
}

// TestPingPongDiffers gives a call that goes on otherwise the recorded answers. What it said stands on the tape, and gates.
func TestPingPongDiffers(t *testing.T) {
	g := newRig(t, grpcUpstream(grpcServer(t, false, pingPong)))
	ask := func(g *rig, messages []string) error {
		c := openCall(t, g.client("h2c"), grpcCall(t, "http://api.example.com/a/Chat", nil), messages[0])
		err := c.ask(len(messages), func(i int) string { return messages[i] })
		c.send.Close()
		io.Copy(io.Discard, c.body)
		g.srv.Close()
		return err
	}
	recorded := []string{numbered(0), numbered(1), numbered(2), numbered(3)}
	if err := ask(g, recorded); err != nil {
		t.Fatal(err)
	}
	was := g.tap.exchanges()[0]
	for name, messages := range map[string][]string{
		"another": {numbered(0), numbered(1), "another", numbered(3)}, "one less": recorded[:3],
	} {
		replay := replayRig(g, nil)
		ask(replay, messages)
		now := replay.tap.exchanges()[0]
		if now.RequestDigest == was.RequestDigest || now.Lane != was.Lane || now.Error != "" || len(now.Stream) == 0 {
			t.Errorf("%s: on the tape %+v", name, now)
		}
	}
}

// TestCallNotOnTape refuses a call in gRPC's own way.
func TestCallNotOnTape(t *testing.T) {
	g := newRig(t, grpcUpstream(grpcServer(t, false, pingPong)))
	call(g.client("h2c"), grpcCall(t, "http://api.example.com/a/Chat", bytes.NewReader(message("x"))))
	replay := replayRig(g, nil)
	res, err := replay.client("h2c").Do(grpcCall(t, "http://api.example.com/a/Other", bytes.NewReader(message("x"))))
	if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Grpc-Status") != "9" || res.ContentLength != 0 {
		t.Errorf("got %+v, %v", res, err)
	}
}

// TestServerAndClientStreaming records and replays many answers to one message, and to many.
func TestServerAndClientStreaming(t *testing.T) {
	g := newRig(t, grpcUpstream(grpcServer(t, true, func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for {
			if _, err := readMessage(r.Body); err != nil {
				break
			}
			n++
		}
		for i := range 50 {
			w.Write(message(fmt.Sprint(n, " ", i)))
			w.(http.Flusher).Flush()
		}
		ended(w, "0", "")
	})))
	ask := func(g *rig, n int) string {
		t.Helper()
		var body bytes.Buffer
		for i := range n {
			body.Write(message(numbered(i)))
		}
		got := call(g.client("h2"), grpcCall(t, "https://api.example.com/a/Many", io.NopCloser(&body)))
		if got.err != nil || got.trailer.Get("Grpc-Status") != "0" {
			t.Fatalf("got %+v", got)
		}
		return got.said
	}
	one, many := ask(g, 1), ask(g, 70)
	replay := replayRig(g, nil)
	if ask(replay, 70) != many || ask(replay, 1) != one {
		t.Error("a replay said something else")
	}
}

// TestCallCut resets a call where its upstream did.
func TestCallCut(t *testing.T) {
	g := newRig(t, grpcUpstream(grpcServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		asked, _ := readMessage(r.Body)
		w.Write(message("re: " + asked))
		w.(http.Flusher).Flush()
		readMessage(r.Body)
		panic(http.ErrAbortHandler)
	})))
	check := func(g *rig) {
		t.Helper()
		c := openCall(t, g.client("h2c"), grpcCall(t, "http://api.example.com/a/Chat", nil), numbered(0))
		if err := c.ask(1, numbered); err != nil {
			t.Fatal(err)
		}
		c.send.Write(message("more"))
		if b, err := io.ReadAll(c.body); err == nil || len(b) > 0 {
			t.Errorf("got %q, %v", b, err)
		}
		g.srv.Close()
		if got := g.tap.exchanges()[0]; got.Error != "the upstream reset the stream: INTERNAL_ERROR" || got.Status != 200 || got.Lane == "unmatched" {
			t.Errorf("on the tape: %+v", got)
		}
	}
	check(g)
	check(replayRig(g, nil))
}
