package exchange_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Sockets knows a conversation with models at /talk: the program begins turn N by "N {…}", the server's messages of it begin with "N:",
// and the last one with "N."; one that begins with "S{" is a turn of the server's own.
func (classifier) Sockets(r *exchange.Request) exchange.Turns {
	if !strings.HasSuffix(r.URL, "/talk") {
		return nil
	}
	return talkTurns{r}
}

func (classifier) Rename(message []byte, to func(string) string) []byte {
	return idIn.ReplaceAllFunc(message, func(id []byte) []byte {
		if now := to(string(id[1:])); now != "" {
			return []byte("#" + now)
		}
		return id
	})
}

type talkTurns struct{ opened *exchange.Request }

func (t talkTurns) request(body []byte) *exchange.Request {
	return &exchange.Request{Method: http.MethodGet, URL: t.opened.URL, Header: t.opened.Header, Body: body}
}

func (t talkTurns) Client(_ int, b []byte) exchange.Turn {
	if len(b) < 3 || b[1] != ' ' || b[2] != '{' {
		return exchange.Turn{}
	}
	return exchange.Turn{Part: exchange.TurnBegins, Of: uint64(b[0]), Request: t.request(b[2:]), Refuse: func(m string) []byte {
		return []byte(`{"error":"` + strings.ReplaceAll(m, `"`, "'") + `"}`)
	}}
}

func (t talkTurns) Server(_ int, b []byte) exchange.Turn {
	switch {
	case len(b) > 1 && b[0] == 'S' && b[1] == '{':
		return exchange.Turn{Part: exchange.TurnWhole, Of: 'S', Request: t.request(b[1:])}
	case len(b) > 1 && b[1] == ':':
		return exchange.Turn{Part: exchange.TurnWithin, Of: uint64(b[0])}
	case len(b) > 1 && b[1] == '.':
		return exchange.Turn{Part: exchange.TurnEnds, Of: uint64(b[0])}
	}
	return exchange.Turn{}
}

// upgrade begins a request for a socket.
func (g *rig) upgrade(url string, header ...string) *exchange.Open {
	g.t.Helper()
	h := headers(append([]string{"Upgrade", "websocket", "Connection", "Upgrade"}, header...)...)
	o, err := g.tap.Begin(&exchange.Request{Method: http.MethodGet, URL: url, Header: h})
	if err != nil {
		g.t.Fatal(err)
	}
	return o
}

// socket opens one.
func (g *rig) socket(url string, header ...string) *exchange.Socket {
	g.t.Helper()
	s, err := g.upgrade(url, header...).Opened(headers("Upgrade", "websocket"))
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

// converse passes messages: ">text" the program's, "<text" the server's.
func converse(t testing.TB, s *exchange.Socket, messages ...string) {
	t.Helper()
	for _, m := range messages {
		from := exchange.FromProgram
		if m[0] == '<' {
			from = exchange.FromServer
		}
		msg := &exchange.SocketMessage{Opcode: exchange.TextMessage, Payload: []byte(m[1:]), Masked: from == exchange.FromProgram}
		if err := s.Message(from, msg); err != nil {
			t.Fatal(err)
		}
	}
}

var hungUp = &exchange.SocketEnd{Code: exchange.Abnormal, Gone: exchange.FromProgram}

func closeSocket(t testing.TB, s *exchange.Socket, e *exchange.SocketEnd) {
	t.Helper()
	end := *e
	end.At = s.Ordinal()
	if err := s.Closed(&end); err != nil {
		t.Fatal(err)
	}
}

// said is what stands on the tape: one text a record.
func (g *rig) said() (out []string) {
	g.t.Helper()
	g.flush()
	for _, k := range g.kinds() {
		switch k := k.(type) {
		case *tape.WSOpen:
			out = append(out, fmt.Sprintf("open %s %s %d", k.URL, k.Lane, k.Arrival))
		case *tape.WSMessage:
			refused := ""
			if why := tape.FieldValue(k.Extra, "refused"); why != nil {
				refused = " refused " + string(why)
			}
			out = append(out, fmt.Sprintf("%d %s %s%s", k.Connection, k.Direction, g.payload(k.Payload), refused))
		case *tape.WSClose:
			out = append(out, fmt.Sprintf("%d close %d %s", k.Connection, k.Code, k.Reason))
		case *tape.LLMCall:
			out = append(out, fmt.Sprintf("%d turn %s: %q %s%s", k.Connection, g.payload(k.RequestPayload), g.chunksOf(&k.Exchange), k.Lane[:4], k.Error))
		}
	}
	return out
}

func (g *rig) wantSaid(want ...string) {
	g.t.Helper()
	if got := g.said(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		g.t.Errorf("on the tape:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const talkURL = "https://h.test/talk"

// twoTurns is a conversation with two turns at once, and what lies outside of them.
var twoTurns = []string{
	"<welcome", `>A {"model":"m","messages":["a"]}`, "<A:one", `>B {"model":"m","messages":["b"]}`, "<B:uno", "<A:two", "<limits", "<B.due",
	">noted", "<A.three", "<bye", `<S{"model":"m","messages":["own"]}`,
}

func TestTurnsAreRecorded(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	s := g.socket(talkURL)
	converse(t, s, twoTurns...)
	converse(t, s, `>C {"model":"m","messages":["c"]}`, "<C:half of")
	closeSocket(t, s, hungUp)
	g.wantSaid(
		"open wss://h.test/talk ws:h.test 1", "1 received welcome", "1 received limits",
		`1 turn {"model":"m","messages":["b"]}: ["B:uno\n" "B.due\n"] llm:`, "1 sent noted",
		`1 turn {"model":"m","messages":["a"]}: ["A:one\n" "A:two\n" "A.three\n"] llm:`, "1 received bye",
		`1 turn {"model":"m","messages":["own"]}: ["S{\"model\":\"m\",\"messages\":[\"own\"]}\n"] llm:`,
		`1 turn {"model":"m","messages":["c"]}: ["C:half of\n"] llm:`+tape.Cancelled, "1 close 1006 ",
	)
	if g.partText() != "" {
		t.Error("a part is left")
	}
}

// replay is a rig that plays what g recorded.
func (g *rig) replay() (*rig, *exchange.Book) {
	g.t.Helper()
	g.flush()
	b, err := exchange.NewBook(g.records(), classifier{}, g.store)
	if err != nil {
		g.t.Fatal(err)
	}
	return newRig(g.t, exchange.TapOptions{Replay: true, Closed: true}), b
}

// play opens a socket of a replay.
func (g *rig) play(b *exchange.Book, url string, o *exchange.AnswerOptions, header ...string) (*exchange.Socket, *exchange.SocketPlay) {
	g.t.Helper()
	open := g.upgrade(url, header...)
	if _, ok := open.Take(b); !ok {
		g.t.Fatalf("%s is not on the tape", url)
	}
	s, err := open.Opened(headers("Upgrade", "websocket"))
	if err != nil {
		g.t.Fatal(err)
	}
	return s, s.Play(open.Request(), o, b)
}

// send gives a message of the program, and returns how it was refused.
func send(t testing.TB, p *exchange.SocketPlay, text string) *exchange.SocketRefusal {
	t.Helper()
	r, err := p.Client(&exchange.SocketMessage{Opcode: exchange.TextMessage, Payload: []byte(text), Masked: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// next is the next message of the server; "" for the end.
func next(t testing.TB, p *exchange.SocketPlay) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := p.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if out.Message == nil {
		return ""
	}
	return string(out.Message.Payload)
}

func wantNext(t testing.TB, p *exchange.SocketPlay, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := next(t, p); got != w {
			t.Fatalf("got %q, want %q", got, w)
		}
	}
}

// TestTurnsAreReplayed plays two turns at once, each message at its place, and the same tape comes of it.
func TestTurnsAreReplayed(t *testing.T) {
	var recorded, again []uint64 // what was answered
	g := newRig(t, exchange.TapOptions{Answered: func(_, arrival, _ uint64) (func(), func(bool)) {
		recorded = append(recorded, arrival)
		return func() {}, nil
	}})
	s := g.socket(talkURL)
	converse(t, s, twoTurns...)
	closeSocket(t, s, hungUp)
	_, b := g.replay()
	r := newRig(t, exchange.TapOptions{Replay: true, Closed: true, Answered: func(_, _, of uint64) (func(), func(bool)) {
		again = append(again, of)
		return func() {}, nil
	}})
	s, p := r.play(b, talkURL, nil)
	for _, m := range twoTurns {
		if m[0] == '<' {
			wantNext(t, p, m[1:])
		} else if refused := send(t, p, m[1:]); refused != nil {
			t.Fatalf("%s: refused: %s", m, refused.Why)
		}
	}
	p.Ended(nil)
	wantNext(t, p, "")
	closeSocket(t, s, hungUp)
	r.wantSaid(g.said()...)
	if n := b.Audit(); n != 0 || len(b.Unasked()) != 0 {
		t.Errorf("crossed %d, unasked %d", n, len(b.Unasked()))
	}
	if len(recorded) != 7 || !slices.Equal(again, recorded) || len(slices.Compact(slices.Sorted(slices.Values(recorded)))) != 7 {
		t.Errorf("answered while recording %v, and again %v: want the socket, three messages and three turns", recorded, again)
	}
}

// TestToldWhileTheProgramSpeaks: who is told of a message of the server may wait, and the program's next one does not.
func TestToldWhileTheProgramSpeaks(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	s := g.socket(talkURL)
	converse(t, s, "<welcome", ">noted", "<bye")
	closeSocket(t, s, hungUp)
	_, b := g.replay()
	var p *exchange.SocketPlay
	told := 0
	r := newRig(t, exchange.TapOptions{Replay: true, Closed: true, Answered: func(uint64, uint64, uint64) (begins func(), held func(bool)) {
		begins = func() {}
		if told++; told != 2 { // the socket itself, then the welcome
			return begins, nil
		}
		said := make(chan *exchange.SocketRefusal)
		go func() { said <- send(t, p, "noted") }()
		select {
		case refused := <-said:
			if refused != nil {
				t.Errorf("refused: %s", refused.Why)
			}
		case <-time.After(time.Minute):
			t.Fatal("the program waits")
		}
		return begins, nil
	}})
	s, p = r.play(b, talkURL, nil)
	wantNext(t, p, "welcome", "bye")
	p.Ended(nil)
	wantNext(t, p, "")
	closeSocket(t, s, hungUp)
	r.wantSaid(g.said()...)
}

// TestTurnsInAnotherOrder: a turn gets its own answer, wherever the program asks for it, and on another socket too.
func TestTurnsInAnotherOrder(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	const oneURL, twoURL = "https://h.test/1/talk", "https://h.test/2/talk"
	one, two := g.socket(oneURL), g.socket(twoURL)
	converse(t, one, `>A {"model":"m","messages":["a"]}`, "<A:one", "<A:more", "<A.end", "<idle")
	converse(t, two, `>A {"model":"m","messages":["b"]}`, "<A.uno")
	closeSocket(t, one, hungUp)
	closeSocket(t, two, hungUp)
	r, b := g.replay()
	first, p := r.play(b, oneURL, nil)
	second, q := r.play(b, twoURL, nil)
	for text, play := range map[string]*exchange.SocketPlay{"b": p, "a": q} {
		if refused := send(t, play, `A {"model":"m","messages":["`+text+`"]}`); refused != nil {
			t.Fatal(refused.Why)
		}
	}
	wantNext(t, p, "A.uno", "idle")
	wantNext(t, q, "A:one", "A:more", "A.end")
	if refused := send(t, p, `A {"model":"m","messages":["c"]}`); refused == nil || !strings.Contains(string(refused.Message), `nearest is record`) {
		t.Errorf("got %+v", refused)
	}
	for _, s := range []*exchange.Socket{first, second} {
		closeSocket(t, s, hungUp)
	}
	if n := b.Audit(); n != 0 || len(b.Unasked()) != 0 {
		t.Errorf("crossed %d, unasked %d", n, len(b.Unasked()))
	}
	if said := r.said(); !strings.Contains(strings.Join(said, "\n"), "unma") {
		t.Errorf("the refused turn is not on the tape:\n%s", strings.Join(said, "\n"))
	}
}

// TestSocketHoldsOnce: a message that does not come holds those behind it for as long as it took and two seconds.
func TestSocketHoldsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, exchange.TapOptions{})
		s := g.socket("https://h.test/any")
		converse(t, s, ">one", "<first")
		time.Sleep(5 * time.Second)
		converse(t, s, ">beat", "<second", "<third", ">two", "<fourth")
		time.Sleep(time.Hour)
		closeSocket(t, s, hungUp)
		r, b := g.replay()
		_, p := r.play(b, "https://h.test/any", &exchange.AnswerOptions{Patience: 10 * time.Second})
		begun := time.Now()
		send(t, p, "one")
		wantNext(t, p, "first", "second", "third")
		if took := time.Since(begun); took != 7*time.Second {
			t.Errorf("held for %v", took)
		}
		send(t, p, "two")
		wantNext(t, p, "fourth")
		if refused := send(t, p, "beat"); refused != nil { // late, and recorded all the same
			t.Error(refused.Why)
		}
		out, err := p.Next(t.Context())
		if err != nil || !out.HeldOn || out.Close == nil || time.Since(begun) != 17*time.Second {
			t.Errorf("got %+v, %v after %v", out, err, time.Since(begun))
		}
	})
}

// TestSocketSpeed: with a speed messages come as far apart as they did.
func TestSocketSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, exchange.TapOptions{})
		s := g.socket("https://h.test/any")
		for _, m := range []string{"<a", "<b", ">c", "<d"} {
			time.Sleep(time.Second)
			converse(t, s, m)
		}
		closeSocket(t, s, &exchange.SocketEnd{Code: 1000, First: exchange.FromServer})
		for speed, want := range map[float64]time.Duration{0: 0, 1: 3 * time.Second, 2: 1500 * time.Millisecond} {
			r, b := g.replay()
			_, p := r.play(b, "https://h.test/any", &exchange.AnswerOptions{Speed: speed})
			begun := time.Now()
			wantNext(t, p, "a", "b")
			send(t, p, "c")
			wantNext(t, p, "d", "")
			if took := time.Since(begun); took != want {
				t.Errorf("speed %v took %v, want %v", speed, took, want)
			}
		}
	})
}

// TestSocketSecrets: secrets in the query, in fields, in subprotocols and in messages stand on no tape; a replay with others finds what
// was recorded.
func TestSocketSecrets(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	header := func(key string) []string {
		return []string{
			"Authorization", "Bearer " + key, "Sec-Websocket-Protocol", "realtime, openai-insecure-api-key." + key + "0, access_token, " + key + "1",
			"Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io." + key + "2",
		}
	}
	hello := `{"type":"hello","api_key":"%s3","note":"` + secret + `"}`
	const key = "fq8Rw3Lk2Vb9Nm5Tr1Yp"
	s := g.socket("https://h.test/any?key="+key+"4", header(key)...)
	converse(t, s, ">"+fmt.Sprintf(hello, key), `<{"token":"`+key+`5"}`, ">again "+key+"3")
	converse(t, s, ">\x00\xff"+key+"5")
	closeSocket(t, s, &exchange.SocketEnd{Code: 4000, Reason: "bad key " + key + "3", First: exchange.FromServer})
	g.flush()
	all := g.tape.String()
	for d := range g.store.All() {
		b, _ := g.store.Get(d)
		all += string(b)
	}
	if i := strings.Index(all, key); i >= 0 {
		t.Errorf("the key is kept: …%s", all[max(i-100, 0):min(i+40, len(all))])
	}
	if !strings.Contains(all, "realtime, openai-insecure-api-key.td_") {
		t.Error("what is no key of a subprotocol is not kept")
	}
	r, b := g.replay()
	const other = "aa1Bb2Cc3Dd4Ee5Ff6Gg"
	_, p := r.play(b, "https://h.test/any?key="+key+"4", nil, header(other)...)
	if refused := send(t, p, fmt.Sprintf(hello, other)); refused != nil {
		t.Error(refused.Why)
	}
}

// TestSocketRefuses names the nearest message.
func TestSocketRefuses(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	s := g.socket("https://h.test/any")
	converse(t, s, `>{"n":1,"s":"x"}`, `>{"n":2,"s":"y"}`)
	closeSocket(t, s, hungUp)
	r, b := g.replay()
	s, p := r.play(b, "https://h.test/any", nil)
	refused := send(t, p, `{"n":3,"s":"y"}`)
	if refused == nil || refused.Message != nil || !strings.Contains(refused.Why, "nearest is record 2 (lane ws:h.test), differs in n: 2 -> 3") {
		t.Fatalf("got %+v", refused)
	}
	for _, m := range []string{`{"n":1,"s":"x"}`, `{"n":2,"s":"y"}`} {
		if refused := send(t, p, m); refused != nil {
			t.Error(refused.Why)
		}
	}
	if refused := send(t, p, `{"n":2,"s":"y"}`); refused == nil || !strings.Contains(refused.Why, "nothing more on this socket") {
		t.Errorf("got %+v", refused)
	}
	closeSocket(t, s, hungUp)
	if said := r.said(); !strings.Contains(said[1], "refused") || strings.Contains(said[2], "refused") {
		t.Errorf("on the tape:\n%s", strings.Join(said, "\n"))
	}
}

// TestSocketsSideBySide: of sockets to one URL that were open together each gets what was said to one that asked with the same fields.
func TestSocketsSideBySide(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	a, b := g.socket("https://h.test/any", "X-Who", "a"), g.socket("https://h.test/any", "X-Who", "b")
	converse(t, a, ">hello", "<you are a")
	converse(t, b, ">hello", "<you are b")
	closeSocket(t, a, hungUp)
	closeSocket(t, b, hungUp)
	r, book := g.replay()
	for _, who := range []string{"b", "a"} {
		s, p := r.play(book, "https://h.test/any", nil, "X-Who", who)
		send(t, p, "hello")
		wantNext(t, p, "you are "+who)
		closeSocket(t, s, hungUp)
	}
	if said := r.said(); said[0] != "open wss://h.test/any ws:h.test#2 1" {
		t.Errorf("the lane is not the recorded one's: %s", said[0])
	}
}

// TestTurnAgain: a secret that became known late leaves a turn as it leaves any exchange, and the turn stays one.
func TestTurnAgain(t *testing.T) {
	g := newRig(t, exchange.TapOptions{})
	s := g.socket(talkURL)
	const late = "lAte7Xw2Lk9Vb4Nm6Tr8"
	converse(t, s, `>A {"model":"m","messages":["`+late+`"]}`, "<A:you said "+late, "<A.end")
	closeSocket(t, s, hungUp)
	g.flush()
	for rec, err := range g.records() {
		if err != nil {
			t.Fatal(err)
		}
		was, ok := rec.Kind.(*tape.LLMCall)
		if !ok {
			continue
		}
		connection, at := was.Connection, string(tape.FieldValue(was.Extra, "at"))
		known := scrub.New(scrub.Key{1}, &scrub.Options{Env: []string{"LATE_TOKEN=" + late}})
		if err := exchange.Again(rec, g.store, classifier{}, known, nil); err != nil {
			t.Fatal(err)
		}
		now := rec.Kind.(*tape.LLMCall)
		if now.Connection != connection || string(tape.FieldValue(now.Extra, "at")) != at || now.URL != "wss://h.test/talk" || len(now.Stream) != 2 {
			t.Errorf("it became %+v", now)
		}
		for _, p := range []*tape.Payload{now.RequestPayload, now.Response} {
			if text := g.payload(p); strings.Contains(text, late) || !strings.Contains(text, "td_late_token_") {
				t.Errorf("it holds %s", text)
			}
		}
	}
}
